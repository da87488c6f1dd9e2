package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/adapters/lookup"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// source counts its calls. Ids up to newest exist, except gaps.
type source struct {
	mu      sync.Mutex
	newest  int64
	gaps    map[int64]bool
	name    string
	err     error
	loads   map[int64]int
	newests int
	rounds  [][]int64     // ids of each call of TemplatesNow
	hold    chan struct{} // if not nil, loads wait until it is closed
	waiting atomic.Int64
}

func newSource(newest int64) *source {
	return &source{newest: newest, name: "first", gaps: map[int64]bool{}, loads: map[int64]int{}}
}

func (s *source) Template(ctx context.Context, id int64) (template.Template, error) {
	if s.hold != nil {
		s.waiting.Add(1)
		<-s.hold
		if err := ctx.Err(); err != nil {
			return template.Template{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads[id]++
	if s.err != nil {
		return template.Template{}, s.err
	}
	if id > s.newest || s.gaps[id] {
		return template.Template{}, template.ErrNotFound
	}
	return template.Template{ID: id, Spec: template.Spec{Name: s.name}}, nil
}

func (s *source) TemplatesNow(ctx context.Context, ids []int64) (list []template.Template, err error) {
	if s.hold != nil {
		s.waiting.Add(1)
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds = append(s.rounds, ids)
	for _, id := range ids {
		if id <= s.newest && !s.gaps[id] {
			list = append(list, template.Template{ID: id, Spec: template.Spec{Name: s.name}})
		}
	}
	return list, s.err
}

func (s *source) NewestTemplate(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newests++
	return s.newest, s.err
}

func (s *source) set(change func(*source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *source) counts(id int64) (loads, newests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads[id], s.newests
}

// watch is a clock that stands still unless it is moved.
type watch struct{ at atomic.Int64 }

func (w *watch) now() time.Time          { return time.Unix(1_800_000_000, w.at.Load()) }
func (w *watch) advance(d time.Duration) { w.at.Add(int64(d)) }

func cacheOf(t *testing.T, s *source, now func() time.Time) *lookup.Templates {
	t.Helper()
	c, err := lookup.New(s, now)
	musttest.OK(t, err)
	return c
}

// eventually fails unless ok becomes true within the time given.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

func TestManyCallersOneLoad(t *testing.T) {
	s := newSource(10)
	s.hold = make(chan struct{})
	c := cacheOf(t, s, time.Now)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if got, err := c.Template(t.Context(), 7); err != nil || got.ID != 7 {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
	eventually(t, 5*time.Second, "somebody loads", func() bool { return s.waiting.Load() > 0 })
	close(s.hold)
	all.Wait()
	if n := s.waiting.Load(); n != 1 {
		t.Errorf("%d loads for 100 callers", n)
	}
}

// TestOneLoadsForMany: the caller that loads for several callers may hang up. The other callers
// still get their answer.
func TestOneLoadsForMany(t *testing.T) {
	s := newSource(10)
	s.hold = make(chan struct{})
	c := cacheOf(t, s, time.Now)
	ctx, hangUp := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _, _ = c.Template(ctx, 7) })
	eventually(t, 5*time.Second, "the first loads", func() bool { return s.waiting.Load() == 1 })
	errs := make(chan error, 1)
	all.Go(func() {
		_, err := c.Template(t.Context(), 7)
		errs <- err
	})
	hangUp()
	close(s.hold)
	all.Wait()
	if err := <-errs; err != nil || s.waiting.Load() != 1 {
		t.Errorf("the second caller: %v after %d loads", err, s.waiting.Load())
	}
}

// TestAskingForWhatIsNotThere: an attacker looks up a list of unknown ids. For any number of
// requests and ids, the database gets twenty queries a second.
func TestAskingForWhatIsNotThere(t *testing.T) {
	s, w := newSource(10), &watch{}
	c := cacheOf(t, s, w.now)
	for round := range 5 {
		var all sync.WaitGroup
		for asker := range 200 {
			all.Go(func() {
				for i := range 20 {
					if _, err := c.Template(t.Context(), int64(11+asker*1000+i)); !errors.Is(err, template.ErrNotFound) {
						t.Errorf("%v", err)
					}
				}
			})
		}
		all.Wait()
		if _, newests := s.counts(0); newests != round+1 {
			t.Errorf("round %d: %d queries", round, newests)
		}
		w.advance(49 * time.Millisecond)
		_, _ = c.Template(t.Context(), 1<<40)
		if _, newests := s.counts(0); newests != round+1 {
			t.Errorf("round %d, 49 ms later: %d queries", round, newests)
		}
		w.advance(time.Millisecond)
	}
	if len(s.loads) != 0 || c.Size() != 0 {
		t.Errorf("%d loads, %d entries", len(s.loads), c.Size())
	}
}

func TestIdsThatCannotBe(t *testing.T) {
	s := newSource(10)
	c := cacheOf(t, s, time.Now)
	for _, id := range []int64{0, -1, -1 << 63} {
		if _, err := c.Template(t.Context(), id); !errors.Is(err, template.ErrNotFound) {
			t.Errorf("%d: %v", id, err)
		}
	}
	if len(s.loads) != 0 || s.newests != 0 {
		t.Errorf("%d loads and %d queries", len(s.loads), s.newests)
	}
}

func TestANewTemplateIsFoundOnceItMayBe(t *testing.T) {
	s, w := newSource(10), &watch{}
	c := cacheOf(t, s, w.now)
	if _, err := c.Template(t.Context(), 11); !errors.Is(err, template.ErrNotFound) {
		t.Fatalf("%v", err)
	}
	s.set(func(s *source) { s.newest = 11 })
	w.advance(50 * time.Millisecond)
	if got, err := c.Template(t.Context(), 11); err != nil || got.ID != 11 {
		t.Errorf("%+v %v", got, err)
	}
	// A clock that was set back must not keep new templates away for hours.
	s.set(func(s *source) { s.newest = 12 })
	w.advance(-time.Hour)
	if got, err := c.Template(t.Context(), 12); err != nil || got.ID != 12 {
		t.Errorf("after the clock went back: %+v %v", got, err)
	}
}

func TestAGapIsRemembered(t *testing.T) {
	s := newSource(10)
	s.gaps[5] = true
	c := cacheOf(t, s, (&watch{}).now)
	for range 50 {
		if _, err := c.Template(t.Context(), 5); !errors.Is(err, template.ErrNotFound) {
			t.Fatalf("%v", err)
		}
	}
	if loads, newests := s.counts(5); loads != 1 || newests != 1 {
		t.Errorf("%d loads and %d queries for one id", loads, newests)
	}
}

func TestForgetLoadsAgain(t *testing.T) {
	s := newSource(10)
	c := cacheOf(t, s, time.Now)
	name := func() string {
		got, err := c.Template(t.Context(), 7)
		if err != nil {
			t.Error(err)
		}
		return got.Name
	}
	if got := name(); got != "first" {
		t.Fatalf("%q", got)
	}
	s.set(func(s *source) { s.name = "second" })
	c.Forget(7)
	c.Forget(8) // was never asked for
	if got := name(); got != "second" {
		t.Errorf("%q after the event", got)
	}
	if loads, _ := s.counts(7); loads != 2 {
		t.Errorf("%d loads", loads)
	}
}

// TestAChangeIsSeenWithinASecond: a change is seen within a second even if its event never
// arrives. This holds for a template that is looked up all the time and for a template that is
// not.
func TestAChangeIsSeenWithinASecond(t *testing.T) {
	for _, busy := range []bool{true, false} {
		t.Run(fmt.Sprintf("busy=%v", busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the second is of the bubble's clock
				s := newSource(10)
				c := cacheOf(t, s, time.Now)
				defer lookup.Stop(c)
				if _, err := c.Template(t.Context(), 7); err != nil {
					t.Fatal(err)
				}
				s.set(func(s *source) { s.name = "second" })
				quiet := time.Now().Add(950 * time.Millisecond)
				eventually(t, time.Second, "the change is seen", func() bool {
					if !busy && time.Now().Before(quiet) {
						return false
					}
					got, err := c.Template(t.Context(), 7)
					if err != nil {
						t.Error(err)
					}
					return got.Name == "second"
				})
			})
		})
	}
}

func TestAnErrorIsNotRemembered(t *testing.T) {
	s, w := newSource(10), &watch{}
	c := cacheOf(t, s, w.now)
	if _, err := c.Template(t.Context(), 3); err != nil { // now ids up to 10 are known
		t.Fatal(err)
	}
	broken := errors.New("connection refused")
	s.set(func(s *source) { s.err = broken })
	for range 3 {
		if _, err := c.Template(t.Context(), 7); !errors.Is(err, broken) {
			t.Fatalf("%v", err)
		}
	}
	w.advance(50 * time.Millisecond)
	_, before := s.counts(0)
	for range 100 {
		if _, err := c.Template(t.Context(), 11); !errors.Is(err, broken) {
			t.Errorf("an id beyond the newest: %v; nobody knows that it does not exist", err)
		}
	}
	if _, after := s.counts(0); after != before+1 {
		t.Errorf("%d askers asked a database that is away %d times", 100, after-before)
	}
	s.set(func(s *source) { s.err = nil })
	w.advance(50 * time.Millisecond)
	if _, err := c.Template(t.Context(), 11); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if got, err := c.Template(t.Context(), 7); err != nil || got.ID != 7 {
		t.Errorf("%+v %v", got, err)
	}
}

// TestAnOldAnswerIsNotKeptForEver: while the database does not answer, known templates are
// returned for less than a second, and then an error.
func TestAnOldAnswerIsNotKeptForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(10)
		c := cacheOf(t, s, time.Now)
		defer lookup.Stop(c)
		if _, err := c.Template(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("connection refused")
		s.set(func(s *source) { s.err = broken })
		eventually(t, time.Second, "the error shows", func() bool {
			_, err := c.Template(t.Context(), 7)
			return errors.Is(err, broken)
		})
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	const ids = 60_000
	s := newSource(ids)
	c := cacheOf(t, s, time.Now)
	most := 0
	for id := int64(1); id <= ids; id++ {
		if _, err := c.Template(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		most = max(most, c.Size())
	}
	// Evicted entries are removed a little after the entries that replace them come.
	if most < 1_000 || most > 21_000 {
		t.Errorf("%d entries at once, 20,000 allowed", most)
	}
}

// TestMadeHereIsFoundAtOnce: a template that was created in this process is found at once, even
// right after a look-up that found no newer id.
func TestMadeHereIsFoundAtOnce(t *testing.T) {
	s := newSource(1)
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	templates, err := lookup.New(s, func() time.Time { return now })
	musttest.OK(t, err)
	if _, err := templates.Template(t.Context(), 2); !errors.Is(err, template.ErrNotFound) {
		t.Fatalf("%v before it was made", err)
	}
	s.set(func(s *source) { s.newest = 2 })
	templates.Forget(2)
	if _, err := templates.Template(t.Context(), 2); err != nil {
		t.Errorf("%v after it was made", err)
	}
	if _, err := templates.Template(t.Context(), 3); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("%v for one that was not", err)
	}
}
