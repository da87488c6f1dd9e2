package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// lockedStore stores groups in memory. A group with a template whose rows are locked fails
// after the time that the group may wait for a lock.
type lockedStore struct {
	mu     sync.Mutex
	locked map[int]bool // templates
	// row is an operation that meets a lock even if its template is not locked.
	row    op
	groups [][]op
	// timedOut is how many groups ended without their locks.
	timedOut int
}

func (s *lockedStore) lock(templates ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked = map[int]bool{}
	for _, t := range templates {
		s.locked[t] = true
	}
}

func (s *lockedStore) meets(o op) bool { return s.locked[o.key] || s.row != op{} && s.row == o }

func (s *lockedStore) flush(ctx context.Context, group []op) ([]op, error) {
	s.mu.Lock()
	met := slices.ContainsFunc(group, s.meets)
	s.mu.Unlock()
	if met {
		wait, err := time.ParseDuration(LockTimeout(ctx) + "ms")
		if err != nil {
			return nil, err
		}
		if !s.free(group, wait) {
			return nil, &pgconn.PgError{Code: "55P03"}
		}
	}
	time.Sleep(5 * time.Millisecond) // by the clock of the synctest bubble, as all times here: storing a group
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, slices.Clone(group))
	return group, nil
}

// free waits for the locks that the group meets, and reports whether they ended in time.
func (s *lockedStore) free(group []op, wait time.Duration) bool {
	for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // of the bubble's clock
		s.mu.Lock()
		met := slices.ContainsFunc(group, s.meets)
		s.mu.Unlock()
		if !met {
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timedOut++
	return false
}

func (s *lockedStore) timeouts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timedOut
}

func (s *lockedStore) find(_ context.Context, templates []int64) (found []int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range templates {
		if s.locked[int(t)] {
			found = append(found, t)
		}
	}
	return found, nil
}

func apartOn(s *lockedStore, change func(*GroupConfig)) *Committer[op, op, op] {
	cfg := DefaultGroups()
	cfg.LockWait, cfg.Locked, cfg.Log = LockWait, s.find, slog.New(slog.DiscardHandler)
	if change != nil {
		change(&cfg)
	}
	return NewFairCommitter(cfg, func(o op) op { return o }, func(o op) int64 { return int64(o.key) }, s.flush)
}

// TestALockedTemplateIsKeptApart sends requests for a locked template all the time. Each
// worker has at most one group that waits for the lock; afterwards only groups of that
// template wait.
func TestALockedTemplateIsKeptApart(t *testing.T) {
	for name, change := range map[string]func(*GroupConfig){
		"usual": nil, "it cannot be told which is locked": func(c *GroupConfig) { c.Locked = nil },
		"small groups one at a time": func(c *GroupConfig) { c.SideBySide = 128 },
		"groups that gather":         func(c *GroupConfig) { c.Gather, c.Enough = 4*time.Millisecond, 64 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lockedStore{}
				s.lock(1)
				c := apartOn(s, change)
				const each = 300
				var all sync.WaitGroup
				took := make(chan time.Duration, 20*each)
				for template := range 20 {
					all.Go(func() {
						for n := range each {
							start := time.Now()
							got, err := c.Do(t.Context(), op{template, n})
							switch {
							case template == 1 && !errors.Is(err, ErrUnavailable):
								t.Errorf("an operation on locked rows: %v, %v", got, err)
							case template != 1 && (err != nil || got != op{template, n}):
								t.Errorf("%v was answered %v, %v", op{template, n}, got, err)
							case template != 1:
								took <- time.Since(start)
							}
							time.Sleep(10 * time.Millisecond) // of the bubble's clock: the next request of this caller
						}
					})
				}
				all.Wait()
				close(took)
				late := 0
				var last time.Duration
				for d := range took {
					if last = max(last, d); d > 50*time.Millisecond {
						late++
					}
				}
				if late > 2*20*2 || last > 2*LockWait {
					t.Errorf("%d of %d operations of other templates were late, by up to %v", late, 19*each, last)
				}
				s.lock()
				if _, err := c.Do(t.Context(), op{1, -1}); err != nil {
					t.Errorf("after the lock: %v", err)
				}
				c.Close()
			})
		})
	}
}

// TestALockedTemplateWaitsForAMoment ends the lock before the template's operations are
// refused. Each operation is stored once, and operations with the same key are stored in their
// order.
func TestALockedTemplateWaitsForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lockedStore{}
		s.lock(1)
		c := apartOn(s, nil)
		time.AfterFunc(2*LockWait-50*time.Millisecond, func() { s.lock() })
		var all sync.WaitGroup
		for n := range 100 {
			for range 2 { // with one key
				all.Go(func() {
					if _, err := c.Do(t.Context(), op{1 + n%2, n}); err != nil {
						t.Errorf("%d: %v", n, err)
					}
				})
			}
		}
		all.Wait()
		c.Close()
		stored := map[op]int{}
		for _, g := range s.groups {
			seen := map[op]bool{}
			for _, o := range g {
				if seen[o] {
					t.Errorf("two operations with one key in %v", g)
				}
				seen[o] = true
				stored[o]++
			}
		}
		for o, n := range stored {
			if n != 2 {
				t.Errorf("%v was stored %d times", o, n)
			}
		}
		if len(stored) != 100 {
			t.Errorf("%d were stored", len(stored))
		}
	})
}

// TestALockedRowOfOneUser repeats the only operation of a template that meets a lock. The
// template is isolated, and its other operations are stored.
func TestALockedRowOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lockedStore{row: op{1, 0}}
		c := apartOn(s, nil)
		var all sync.WaitGroup
		over := make(chan struct{})
		all.Go(func() {
			for {
				if _, err := c.Do(t.Context(), op{1, 0}); !errors.Is(err, ErrUnavailable) {
					t.Errorf("the locked row: %v", err)
				}
				select {
				case <-over:
					return
				case <-time.After(time.Second):
				}
			}
		})
		time.Sleep(5 * time.Second) // of the bubble's clock: the lane of the locked rows is in use
		before := s.timeouts()
		for n := range 1000 {
			start := time.Now()
			if _, err := c.Do(t.Context(), op{2, n}); err != nil || time.Since(start) > 10*time.Millisecond {
				t.Fatalf("another template after %v: %v", time.Since(start), err)
			}
			if _, err := c.Do(t.Context(), op{1, 1 + n}); n%100 == 0 && err != nil {
				t.Logf("another row of the template: %v", err)
			}
		}
		if s.timeouts() == before {
			t.Error("the locked row was not attempted meanwhile")
		}
		close(over)
		all.Wait()
		c.Close()
	})
}

// TestManyLockedTemplates locks more templates than any committer has workers. The templates
// take turns, and each template's operations are stored soon after its lock has ended.
func TestManyLockedTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lockedStore{}
		var locked []int
		for n := range 30 {
			locked = append(locked, n)
		}
		s.lock(locked...)
		c := apartOn(s, nil)
		over, freed := make(chan struct{}), make(chan int, 30)
		var all sync.WaitGroup
		for _, template := range locked {
			all.Go(func() {
				for n := 0; ; n++ {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					_, err := c.Do(ctx, op{template, n})
					cancel()
					if err == nil {
						freed <- template
						return
					}
					if !errors.Is(err, ErrUnavailable) && !errors.Is(err, errLeft) {
						t.Errorf("%d: %v", template, err)
					}
				}
			})
		}
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				start := time.Now()
				if _, err := c.Do(t.Context(), op{99, n}); err != nil || time.Since(start) > 2*LockWait {
					t.Errorf("a template that is not locked after %v: %v", time.Since(start), err)
				}
			}
		})
		time.Sleep(30 * time.Second) // of the bubble's clock: all callers have been answered several times
		s.lock(locked[1:]...)
		start := time.Now()
		if got := <-freed; got != locked[0] || time.Since(start) > 5*time.Second {
			t.Errorf("%d went on, after %v", got, time.Since(start))
		}
		close(over)
		s.lock()
		all.Wait()
		c.Close()
	})
}

// TestAClosedCommitterAnswersWhatIsKeptApart closes a committer with isolated operations.
func TestAClosedCommitterAnswersWhatIsKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lockedStore{}
		s.lock(1)
		c := apartOn(s, nil)
		var all sync.WaitGroup
		for n := range 500 {
			all.Go(func() {
				if _, err := c.Do(context.Background(), op{1, n}); !errors.Is(err, ErrUnavailable) {
					t.Error(fmt.Errorf("%d: %w", n, err))
				}
			})
		}
		synctest.Wait()
		c.Close()
		all.Wait()
	})
}
