package pg

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/fault"
)

func TestAFullQueueRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		c := committerOn(p, func(cfg *GroupConfig) { cfg.MaxQueue, cfg.MaxGroup = 10, 4 })
		answers := submit(t, c, distinctOps(11)) // one is being stored, ten wait
		if _, err := c.Do(t.Context(), op{99, 99}); !errors.Is(err, ErrQueueFull) || fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%v", err)
		}
		close(p.hold)
		for n, err := range answers() {
			if err != nil {
				t.Errorf("operation %d: %v", n, err)
			}
		}
		if _, err := c.Do(t.Context(), op{99, 99}); err != nil {
			t.Errorf("once there is room: %v", err)
		}
		c.Close()
	})
}

func TestCloseAnswersEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		c := committerOn(p, func(cfg *GroupConfig) { cfg.MaxGroup = 4 })
		ops := distinctOps(30)
		for i := range ops {
			ops[i].key = i % 3 // some are put off to later groups
		}
		answers := submit(t, c, ops)
		closed := make(chan struct{})
		go func() { c.Close(); close(closed) }()
		synctest.Wait()
		if _, err := c.Do(t.Context(), op{99, 99}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("after closing: %v", err)
		}
		select {
		case <-closed:
			t.Error("closed before everybody was answered")
		default:
		}
		close(p.hold)
		for n, err := range answers() {
			if err != nil {
				t.Errorf("operation %d: %v", n, err)
			}
		}
		<-closed
		c.Close() // a second time does nothing
	})
}

// TestCloseUnderLoad: an operation that arrives during Close is either stored or
// gets an error.
func TestCloseUnderLoad(t *testing.T) {
	for range 50 {
		p := &fakeStore{}
		c := committerOn(p, func(cfg *GroupConfig) { cfg.Workers = 2 })
		var all sync.WaitGroup
		var mu sync.Mutex
		accepted := 0
		for i := range 100 {
			all.Go(func() {
				_, err := c.Do(context.Background(), op{i, i})
				if err != nil && !errors.Is(err, ErrUnavailable) {
					t.Error(err)
				}
				if err == nil {
					mu.Lock()
					accepted++
					mu.Unlock()
				}
			})
			if i == 50 {
				all.Go(c.Close)
			}
		}
		all.Wait()
		stored := 0
		for _, g := range p.groups {
			stored += len(g)
		}
		if stored != accepted {
			t.Fatalf("%d stored, %d told so", stored, accepted)
		}
	}
}

func TestACallerWhoLeavesHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		c := committerOn(p, nil)
		first := submit(t, c, distinctOps(1))
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := c.Do(ctx, op{500, 500})
			left <- err
		}()
		synctest.Wait()
		others := submit(t, c, []op{{501, 501}, {500, 502}})
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left: %v", err)
		}
		close(p.hold)
		for _, err := range append(first(), others()...) {
			if err != nil {
				t.Errorf("the others: %v", err)
			}
		}
		c.Close()
		// The caller that left was told that nothing was stored, so its operation
		// must be absent.
		if stored := slices.Concat(p.groups...); slices.Contains(stored, op{500, 500}) || len(stored) != 3 {
			t.Errorf("stored %v", stored)
		}
	})
}

func TestAStatementThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		c := committerOn(p, nil)
		start := time.Now()
		if _, err := c.Do(t.Context(), op{1, 1}); fault.KindOf(err) != fault.Unavailable || time.Since(start) != 15*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		close(p.hold)
		if _, err := c.Do(t.Context(), op{1, 2}); err != nil {
			t.Errorf("the next one: %v", err)
		}
		c.Close()
	})
}
