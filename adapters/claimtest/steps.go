package claimtest

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// result is the answer to one claim of a rush.
type result struct {
	asked claim.Request
	got   claim.Claim
	err   error
}

// rush sends n requests at once and returns their answers.
func rush(t *testing.T, h Harness, n int, request func(i int) claim.Request) []result {
	t.Helper()
	results := make([]result, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			r := request(i)
			<-start
			got, err := h.Claim(t.Context(), r)
			results[i] = result{r, got, err}
		})
	}
	close(start)
	all.Wait()
	return results
}

// claims sends r and fails the test if the answer is not want.
func claims(t testing.TB, h Harness, r claim.Request, want error) claim.Claim {
	t.Helper()
	got, err := h.Claim(t.Context(), r)
	if late, ok := h.(Later); ok && err == nil && errors.Is(want, claim.ErrIdempotency) {
		if got = late.Outcome(got.UserID, got.ID); got.State == claim.Failed && got.Reason == claim.ErrIdempotency.Code {
			return got
		}
	}
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		t.Errorf("user %d: %+v, %v, want error %v", r.UserID, got, err, want)
	}
	return got
}

// Holds checks the stored rows: want coupons, no user above the limit, no claim twice, and a
// counter of issued coupons that agrees. It returns the coupons.
func Holds(t testing.TB, h Harness, id int64, want, limit int) []claim.Claim {
	t.Helper()
	coupons, perUser, ids := h.Coupons(id), map[user.ID]int{}, map[claim.ID]bool{}
	for _, c := range coupons {
		if ids[c.ID] {
			t.Errorf("claim %d has two coupons", c.ID)
		}
		ids[c.ID] = true
		if perUser[c.UserID]++; perUser[c.UserID] > limit {
			t.Errorf("user %d has %d coupons, limit %d", c.UserID, perUser[c.UserID], limit)
		}
	}
	total, issued := h.Balance(id)
	if len(coupons) != want || issued != int64(want) || issued > total {
		t.Errorf("%d coupons are stored and %d of %d counted, want %d", len(coupons), issued, total, want)
	}
	return coupons
}

func repetitions(t *testing.T, h Harness) {
	drop := h.Open(2, 1, nil)
	first := claims(t, h, Tap(drop, 1, "mine"), nil)
	again := func(when string) {
		t.Helper()
		got, err := h.Claim(t.Context(), Tap(drop, 1, "mine"))
		if err != nil || got.ID != first.ID || !got.At.Equal(first.At) || got.CouponID != first.CouponID && first.CouponID != 0 {
			t.Errorf("%s the repetition is answered %+v, %v; the first time %+v", when, got, err, first)
		}
	}
	again("at once")
	claims(t, h, Tap(drop, 1, "another"), claim.ErrLimit)
	claims(t, h, Tap(drop, 2, "mine"), nil) // another user's key is another key
	claims(t, h, Tap(drop, 3, ""), claim.ErrSoldOut)
	again("when sold out")
	h.Do(drop.ID, template.Pausing)
	again("when paused")
	h.Do(drop.ID, template.Resuming)
	h.Do(drop.ID, template.Closing)
	again("when closed")
	Holds(t, h, drop.ID, 2, 1)
}

func repetitionsAtOnce(t *testing.T, h Harness) {
	drop := h.Open(100, 5, nil)
	results := rush(t, h, 60, func(i int) claim.Request { return Tap(drop, user.ID(1+i%3), "same") })
	first := map[user.ID]claim.ID{}
	for _, r := range results {
		by := r.asked.UserID
		if first[by] == 0 {
			first[by] = r.got.ID
		}
		if r.err != nil || r.got.ID != first[by] {
			t.Errorf("user %d: %+v, %v, want claim %d", by, r.got, r.err, first[by])
		}
	}
	Holds(t, h, drop.ID, 3, 1)
}

func keysBelongToOneClaim(t *testing.T, h Harness) {
	drop, other := h.Open(10, 2, nil), h.Open(10, 2, nil)
	claims(t, h, Tap(drop, 1, "mine"), nil)
	Holds(t, h, drop.ID, 1, 1)
	claims(t, h, Tap(other, 1, "mine"), claim.ErrIdempotency)
	stolen := Tap(drop, 2, "")
	stolen.Key = claim.TapKey(1, "mine")
	claims(t, h, stolen, claim.ErrIdempotency)
	// A key that was refused is free.
	h.Do(drop.ID, template.Pausing)
	claims(t, h, Tap(drop, 3, "free"), template.ErrNotOpen)
	claims(t, h, Tap(other, 3, "free"), nil)
	Holds(t, h, drop.ID, 1, 1)
	Holds(t, h, other.ID, 1, 1)
}

func pauseAndResume(t *testing.T, h Harness) {
	drop := h.Open(30, 1, nil)
	var next atomic.Int64
	fresh := func(int) claim.Request { return Tap(drop, user.ID(next.Add(1)), "k") }
	rush(t, h, 10, fresh)
	h.Do(drop.ID, template.Pausing)
	for _, r := range rush(t, h, 20, fresh) {
		if !errors.Is(r.err, template.ErrNotOpen) {
			t.Errorf("while paused: %+v, %v", r.got, r.err)
		}
	}
	Holds(t, h, drop.ID, 10, 1)
	h.Do(drop.ID, template.Resuming)
	won := 0
	for _, r := range rush(t, h, 60, fresh) {
		if r.err == nil {
			won++
		}
	}
	if won != 20 {
		t.Errorf("%d were won after resuming, want what was left: 20", won)
	}
	Holds(t, h, drop.ID, 30, 1)
}

func stockRaisedInTheRush(t *testing.T, h Harness) {
	const stock, raised = 40, 90
	drop := h.Open(stock, 1, nil)
	var won, lost atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 40 { // until the stock is exhausted
				switch _, err := h.Claim(t.Context(), Tap(drop, user.ID(1+8*k+i), "")); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, claim.ErrSoldOut):
					lost.Add(1)
				case !errors.Is(err, template.ErrNotOpen):
					t.Errorf("in the rush: %v", err)
				}
			}
		})
	}
	h.Do(drop.ID, template.Pausing)
	h.Raise(drop.ID, stock+10)
	h.Do(drop.ID, template.Resuming)
	h.Raise(drop.ID, raised)
	all.Wait()
	for k := user.ID(1000); won.Load() < raised; k++ {
		if _, err := h.Claim(t.Context(), Tap(drop, k, "")); err != nil {
			t.Fatalf("%d of %d are won, and nobody gets the next: %v", won.Load(), raised, err)
		}
		won.Add(1)
	}
	claims(t, h, Tap(drop, 5000, ""), claim.ErrSoldOut)
	Holds(t, h, drop.ID, raised, 1)
}

// model is the expected state of a gate that gets one claim at a time.
type model struct {
	stock, issued int64
	limit         int
	paused, ended bool
	count         map[user.ID]int
	keys          map[string]claim.ID
}

func (m *model) claim(r claim.Request) (repeated claim.ID, err error) {
	if id, ok := m.keys[r.Key]; ok && r.Key != "" {
		return id, nil
	}
	switch {
	case m.ended:
		return 0, claim.ErrEnded
	case m.paused:
		return 0, template.ErrNotOpen
	case m.issued >= m.stock:
		return 0, claim.ErrSoldOut
	case m.count[r.UserID] >= m.limit:
		return 0, claim.ErrLimit
	}
	m.issued++
	m.count[r.UserID]++
	m.keys[r.Key] = r.ID
	return r.ID, nil
}

// histories is how many random histories of some 30 steps anyOrderOfSteps draws for each gate. Each
// run of the contract draws other histories, and seven gates are held to it.
const histories = "25"

// anyOrderOfSteps compares a gate with the model, step by step.
func anyOrderOfSteps(t *testing.T, h Harness) {
	checks := flag.Lookup("rapid.checks").Value
	usual := checks.String()
	defer func() { _ = checks.Set(usual) }()
	if err := checks.Set(histories); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{stock: rapid.Int64Range(1, 6).Draw(rt, "stock"), limit: rapid.IntRange(1, 3).Draw(rt, "limit"),
			count: map[user.ID]int{}, keys: map[string]claim.ID{}}
		drop := h.Open(m.stock, m.limit, nil)
		salt := fmt.Sprint(rand.Uint64())
		ask := func(rt *rapid.T) {
			key := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "key")
			if key != "" {
				key += salt
			}
			r := Tap(drop, user.ID(rapid.IntRange(1, 4).Draw(rt, "user")), key)
			want, wantErr := m.claim(r)
			got, err := h.Claim(t.Context(), r)
			if wantErr != nil && !errors.Is(err, wantErr) || wantErr == nil && (err != nil || got.ID != want) {
				rt.Fatalf("claim %+v, %v, want %d, %v", got, err, want, wantErr)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"claim": ask, "claim again": ask, "claim once more": ask,
			"pause or resume": func(*rapid.T) {
				if m.ended {
					return
				}
				h.Do(drop.ID, map[bool]template.Transition{false: template.Pausing, true: template.Resuming}[m.paused])
				m.paused = !m.paused
			},
			"raise": func(rt *rapid.T) {
				if m.ended {
					return
				}
				m.stock += rapid.Int64Range(1, 2).Draw(rt, "more")
				h.Raise(drop.ID, m.stock)
			},
			"close": func(rt *rapid.T) {
				if !m.ended && rapid.IntRange(0, 9).Draw(rt, "really") == 0 {
					h.Do(drop.ID, template.Closing)
					m.ended = true
				}
			},
		})
		if total, issued := h.Balance(drop.ID); total != m.stock || issued != m.issued || len(h.Coupons(drop.ID)) != int(m.issued) {
			rt.Fatalf("%d of %d are counted and %d stored, want %d of %d", issued, total, len(h.Coupons(drop.ID)), m.issued, m.stock)
		}
		if !m.ended { // else the gate's keepers and writers look at the drops of all cases
			h.Do(drop.ID, template.Closing)
		}
	})
}
