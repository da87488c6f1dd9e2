package claim_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// fakeStores is the gate and the stores of a prefilter, and counts calls.
type fakeStores struct {
	mu      sync.Mutex
	now     time.Time
	ahead   time.Duration // of the database's clock
	away    bool          // the database does not tell the time
	drops   map[int64]template.Template
	cached  map[int64]template.Template
	known   map[claim.RepeatKey]claim.Claim
	holders []user.ID
	answer  error // of the gate

	gate, looks, sets, clocks, fromMemory, readings, forgotten int
	prefilter                                                  *claim.Prefilter
}

func newFakeStores(drops ...template.Template) *fakeStores {
	h := &fakeStores{now: opens.Add(10 * time.Minute), drops: map[int64]template.Template{}, known: map[claim.RepeatKey]claim.Claim{}}
	for _, d := range drops {
		h.drops[d.ID] = d
	}
	h.cached = maps.Clone(h.drops)
	h.prefilter = &claim.Prefilter{Gate: h, Templates: h, Record: h, Now: func() time.Time { return h.now },
		Answered: func(error) { h.fromMemory++ }}
	return h
}

func (h *fakeStores) Claim(context.Context, claim.Request) (claim.Claim, error) {
	h.gate++
	return claim.Claim{ID: 1, State: claim.Issued}, h.answer
}

func (h *fakeStores) Template(_ context.Context, id int64) (template.Template, error) {
	if t, ok := h.cached[id]; ok {
		return t, nil
	}
	return template.Template{}, template.ErrNotFound
}

func (h *fakeStores) Shared(ctx context.Context, id int64) (*template.Template, error) {
	t, err := h.Template(ctx, id)
	return &t, err
}

func (h *fakeStores) Current(_ context.Context, id int64) (*template.Template, error) {
	h.readings++
	if t, ok := h.drops[id]; ok {
		return &t, nil
	}
	return nil, template.ErrNotFound
}

func (h *fakeStores) Forget(id int64) {
	h.forgotten++
	h.cached[id] = h.drops[id]
}

// set changes the template in the store and in the cache.
func (h *fakeStores) set(t template.Template) { h.cached[t.ID], h.drops[t.ID] = t, t }

func (h *fakeStores) Repetition(_ context.Context, k claim.RepeatKey) (claim.Claim, error) {
	h.looks++
	if c, ok := h.known[k]; ok {
		return c, nil
	}
	return claim.Claim{}, claim.ErrNotFound
}

func (h *fakeStores) Holders(context.Context, int64) (func(user.ID) bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sets++
	return func(by user.ID) bool {
		for _, id := range h.holders {
			if id == by {
				return true
			}
		}
		return false
	}, nil
}

func (h *fakeStores) Clock(context.Context) (time.Time, error) {
	h.clocks++
	if h.away {
		return time.Time{}, claim.ErrOverloaded
	}
	return h.now.Add(h.ahead), nil
}

func (h *fakeStores) tap(by user.ID, key string) error {
	r := claim.Request{ID: 9, TemplateID: 1, UserID: by, Origin: claim.ByTap, Key: key}
	_, err := h.prefilter.Claim(context.Background(), r)
	return err
}

func soldOut(t *template.Template) { t.Issued = t.Stock }

func TestSoldOutCostsNothing(t *testing.T) {
	h := newFakeStores(drop(soldOut))
	for by := range user.ID(1000) {
		if err := h.tap(by+1, "key"); !errors.Is(err, claim.ErrSoldOut) {
			t.Fatalf("user %d: %v", by+1, err)
		}
	}
	if h.gate != 0 || h.looks != 0 || h.sets != 1 || h.clocks != 1 || h.fromMemory != 1000 {
		t.Errorf("a thousand refusals asked the gate %d times, for keys %d, for holders %d, for the time %d", h.gate, h.looks, h.sets, h.clocks)
	}
}

func TestARepetitionIsAnsweredWhenAllIsGone(t *testing.T) {
	h := newFakeStores(drop(soldOut))
	h.holders = []user.ID{7, 8}
	mine := claim.RepeatKey{Origin: claim.ByTap, Key: "mine"}
	h.known[mine] = claim.Claim{ID: 3, TemplateID: 1, UserID: 7, State: claim.Issued}
	r := claim.Request{ID: 9, TemplateID: 1, UserID: 7, Origin: claim.ByTap, Key: "mine"}
	for _, change := range []func(*template.Template){soldOut,
		func(t *template.Template) { t.Stored = template.Paused },
		func(t *template.Template) { t.Stored = template.Closed },
		func(t *template.Template) { t.Stored = template.Cancelled }} {
		h.set(drop(change))
		if c, err := h.prefilter.Claim(t.Context(), r); err != nil || c.ID != 3 {
			t.Errorf("the holder's repetition: %+v, %v", c, err)
		}
	}
	h.set(drop(soldOut))
	if err := h.tap(8, "mine"); !errors.Is(err, claim.ErrIdempotency) {
		t.Errorf("somebody else's key: %v", err)
	}
	if err := h.tap(8, "other"); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("a holder's new key: %v", err)
	}
	if h.gate != 0 {
		t.Errorf("the gate was asked %d times", h.gate)
	}
}

// TestAKeyOfAnotherDrop: when a drop is sold out, the key is looked up only for a user
// who may hold a coupon of this drop.
func TestAKeyOfAnotherDrop(t *testing.T) {
	h := newFakeStores(drop(soldOut))
	h.known[claim.RepeatKey{Origin: claim.ByTap, Key: "mine"}] = claim.Claim{ID: 3, TemplateID: 2, UserID: 7, State: claim.Issued}
	if err := h.tap(7, "mine"); !errors.Is(err, claim.ErrSoldOut) || h.looks != 0 {
		t.Errorf("who holds none: %v after %d looks", err, h.looks)
	}
	h = newFakeStores(drop(soldOut))
	h.known[claim.RepeatKey{Origin: claim.ByTap, Key: "mine"}] = claim.Claim{ID: 3, TemplateID: 2, UserID: 7, State: claim.Issued}
	h.holders = []user.ID{7}
	if err := h.tap(7, "mine"); !errors.Is(err, claim.ErrIdempotency) || h.looks != 1 {
		t.Errorf("who holds one: %v after %d looks", err, h.looks)
	}
}

func TestRaisedStockIsSeen(t *testing.T) {
	h := newFakeStores(drop(soldOut))
	if err := h.tap(1, "k"); !errors.Is(err, claim.ErrSoldOut) {
		t.Fatal(err)
	}
	raised := drop(func(t *template.Template) { t.Stock, t.Issued = 20, 10 })
	h.set(raised)
	if err := h.tap(1, "k"); err != nil || h.gate != 1 {
		t.Fatalf("after raising: %v, the gate was asked %d times", err, h.gate)
	}
	// Sold out again: the holders are others than before.
	h.set(drop(func(t *template.Template) { t.Stock, t.Issued = 20, 20 }))
	h.holders = []user.ID{1}
	h.known[claim.RepeatKey{Origin: claim.ByTap, Key: "k"}] = claim.Claim{ID: 4, TemplateID: 1, UserID: 1}
	if err := h.tap(1, "k"); err != nil || h.sets != 2 {
		t.Errorf("whoever got one in between: %v, holders were read %d times", err, h.sets)
	}
}

// TestAnOutdatedRefusalIsNotGiven: another process has changed the template, issued a
// coupon to user 1 and perhaps sold out again; the cached template is older. The
// repetition gets its coupon, and the template is judged as it is now.
func TestAnOutdatedRefusalIsNotGiven(t *testing.T) {
	early := func(t *template.Template) { t.OpensAt = opens.Add(time.Hour) }
	raised := func(t *template.Template) { t.Stock, t.Issued = 20, 11 }
	for _, c := range []struct {
		name     string
		was, now func(*template.Template)
		gate     int // the requests of three that the gate decides
		stranger error
	}{
		{"raised", soldOut, raised, 3, nil},
		{"raised and sold out again", soldOut, func(t *template.Template) { t.Stock, t.Issued = 20, 20 }, 0, claim.ErrSoldOut},
		{"opened earlier", early, nil, 3, nil},
		{"opened earlier and sold out", early, soldOut, 0, claim.ErrSoldOut},
		{"resumed", func(t *template.Template) { t.Stored = template.Paused }, nil, 3, nil},
		{"end moved", func(t *template.Template) { t.ClosesAt = opens.Add(time.Minute) }, nil, 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newFakeStores(drop(c.now))
			h.cached[1] = drop(c.was)
			h.holders = []user.ID{1}
			mine := claim.Claim{ID: 1, TemplateID: 1, UserID: 1, State: claim.Issued}
			h.known[claim.RepeatKey{Origin: claim.ByTap, Key: "k"}] = mine
			for range 2 {
				r := claim.Request{ID: 9, TemplateID: 1, UserID: 1, Origin: claim.ByTap, Key: "k"}
				if got, err := h.prefilter.Claim(t.Context(), r); err != nil || got.ID != mine.ID {
					t.Errorf("the repetition: %+v, %v", got, err)
				}
			}
			if err := h.tap(2, ""); !errors.Is(err, c.stranger) {
				t.Errorf("another user: %v, want %v", err, c.stranger)
			}
			if h.gate != c.gate || c.stranger == nil && h.forgotten != 1 {
				t.Errorf("the gate decided %d, the cached state was dropped %d times", h.gate, h.forgotten)
			}
		})
	}
}

// TestWhatCannotChangeIsNotReadAgain: no coupon can be claimed any more, so refusals
// need no further read of the template.
func TestWhatCannotChangeIsNotReadAgain(t *testing.T) {
	for _, state := range []template.State{template.Closed, template.Cancelled} {
		h := newFakeStores(drop(func(t *template.Template) { t.Stored = state }))
		for by := range user.ID(10) {
			if err := h.tap(by+1, ""); err == nil {
				t.Errorf("%s: issued", state)
			}
		}
		if h.readings != 0 || h.gate != 0 {
			t.Errorf("%s: read %d times, %d questions to the gate", state, h.readings, h.gate)
		}
	}
}

// TestARefusalThatCannotBeConfirmedIsNotGiven: better no answer than a wrong one.
func TestARefusalThatCannotBeConfirmedIsNotGiven(t *testing.T) {
	h := newFakeStores(drop(soldOut))
	h.prefilter.Templates = unreadable{h}
	if err := h.tap(1, "k"); fault.KindOf(err) != fault.Unavailable || h.gate != 0 || h.fromMemory != 0 {
		t.Errorf("%v", err)
	}
}

type unreadable struct{ *fakeStores }

func (unreadable) Current(context.Context, int64) (*template.Template, error) {
	return nil, claim.ErrOverloaded
}

func TestTheGateSaysSoldOutFirst(t *testing.T) {
	h := newFakeStores(drop(nil))
	h.answer = claim.ErrSoldOut
	h.drops[1] = drop(soldOut) // the stored state by now
	for range 50 {
		if err := h.tap(1, ""); !errors.Is(err, claim.ErrSoldOut) {
			t.Fatal(err)
		}
	}
	if h.gate != 1 {
		t.Errorf("the gate was asked %d times for what it had said once", h.gate)
	}
}

// TestEdgesBelongToTheDatabase moves through opening and closing with clocks
// that differ, or are not known to agree.
func TestEdgesBelongToTheDatabase(t *testing.T) {
	closes := opens.Add(time.Hour)
	for _, c := range []struct {
		name  string
		at    time.Time // by the database's clock
		ahead time.Duration
		away  bool
		want  error // from memory; nil = the gate decides
	}{
		{"long before", opens.Add(-time.Minute), 0, false, claim.ErrNotStarted},
		{"a second before", opens.Add(-time.Second), 0, false, claim.ErrNotStarted},
		{"a moment before", opens.Add(-100 * time.Millisecond), 0, false, nil},
		{"open", opens.Add(time.Minute), 0, false, nil},
		{"a moment after", closes.Add(100 * time.Millisecond), 0, false, nil},
		{"a second after", closes.Add(time.Second), 0, false, claim.ErrEnded},
		{"our clock is slow: open", opens.Add(time.Second), 30 * time.Second, false, nil},
		{"our clock is fast: closed before", opens.Add(-time.Second), -30 * time.Second, false, claim.ErrNotStarted},
		{"our clock is slow: ended", closes.Add(time.Second), 30 * time.Second, false, claim.ErrEnded},
		{"unknown, before", opens.Add(-time.Minute), 0, true, nil},
		{"unknown, long before", opens.Add(-2 * time.Hour), 0, true, claim.ErrNotStarted},
		{"unknown, after", closes.Add(time.Minute), 0, true, nil},
		{"unknown, long after", closes.Add(2 * time.Hour), 0, true, claim.ErrEnded},
	} {
		h := newFakeStores(drop(nil))
		h.now, h.ahead, h.away = c.at.Add(-c.ahead), c.ahead, c.away
		err := h.tap(1, "")
		if c.want == nil && (err != nil || h.gate != 1) || c.want != nil && (!errors.Is(err, c.want) || h.gate != 0) {
			t.Errorf("%s: %v and %d questions to the gate, want %v", c.name, err, h.gate, c.want)
		}
	}
}

func TestClocksAreComparedNowAndThen(t *testing.T) {
	h := newFakeStores(drop(nil))
	h.now = opens.Add(-time.Hour)
	for range 600 { // a minute
		if err := h.tap(1, ""); !errors.Is(err, claim.ErrNotStarted) {
			t.Fatal(err)
		}
		h.now = h.now.Add(100 * time.Millisecond)
	}
	if h.clocks < 6 || h.clocks > 20 || h.gate != 0 {
		t.Errorf("the time was asked %d times in a minute, the gate %d times", h.clocks, h.gate)
	}
	h.now = h.now.Add(-time.Minute) // a clock that is set back is no longer known
	before := h.clocks
	if err := h.tap(1, ""); !errors.Is(err, claim.ErrNotStarted) || h.clocks != before+1 {
		t.Errorf("after the clock was set back: %v, asked %d times", err, h.clocks-before)
	}
}

func TestNobodyWaitsForALookThatFails(t *testing.T) {
	h := newFakeStores(drop(nil))
	failing := claim.Prefilter{Gate: h, Templates: broken{h}, Record: h, Now: func() time.Time { return h.now }}
	if _, err := failing.Claim(t.Context(), claim.Request{TemplateID: 1}); fault.KindOf(err) != fault.Unavailable || h.gate != 0 {
		t.Errorf("without a template: %v", err)
	}
}

type broken struct{ *fakeStores }

func (broken) Shared(context.Context, int64) (*template.Template, error) {
	return nil, claim.ErrOverloaded
}

// TestAPrefilterPassesOn: a claim that another gate decides is not refused from memory.
func TestAPrefilterPassesOn(t *testing.T) {
	other := newFakeStores()
	h := newFakeStores(drop(nil), drop(func(t *template.Template) {
		t.ID, t.ClaimMode, t.Issued, t.ClosesAt = 2, template.Gate, t.Stock, opens.Add(-time.Minute)
	}))
	h.prefilter.Others = map[template.ClaimMode]claim.Gate{template.Gate: other}
	for id := int64(1); id <= 2; id++ {
		if _, err := h.prefilter.Claim(t.Context(), claim.Request{TemplateID: id, Origin: claim.ByTap}); err != nil {
			t.Errorf("template %d: %v", id, err)
		}
	}
	if h.gate != 1 || other.gate != 1 {
		t.Errorf("the gate was asked %d times, the other %d", h.gate, other.gate)
	}
	if _, err := h.prefilter.Claim(t.Context(), claim.Request{TemplateID: 3}); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("no template: %v", err)
	}
}

func TestGatesByMode(t *testing.T) {
	durable, other := newFakeStores(), newFakeStores()
	mode := func(t *template.Template) { t.ClaimMode = template.Gate }
	h := newFakeStores(drop(nil), drop(func(t *template.Template) { t.ID = 2; mode(t) }))
	ask := func(g claim.Gate, id int64) error {
		_, err := g.Claim(t.Context(), claim.Request{TemplateID: id})
		return err
	}
	alone := claim.Gates{Templates: h, Durable: durable}
	both := claim.Gates{Templates: h, Durable: durable, Others: map[template.ClaimMode]claim.Gate{template.Gate: other}}
	for _, id := range []int64{1, 2} {
		if err := errors.Join(ask(alone, id), ask(both, id)); err != nil {
			t.Fatal(err)
		}
	}
	if durable.gate != 3 || other.gate != 1 {
		t.Errorf("the durable gate was asked %d times, the other %d", durable.gate, other.gate)
	}
	if err := ask(both, 3); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("no template: %v", err)
	}
}
