package pg

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSharedGroupsWaitForMore: the operation of a single caller is stored at once. While
// groups have several operations, a worker waits for more operations as long as they arrive,
// until enough are together. The test uses the fake clock of synctest, so sleeping takes no
// real time.
func TestSharedGroupsWaitForMore(t *testing.T) {
	const step = time.Second // a quarter of Gather
	for name, c := range map[string]struct {
		arriving []int // operations that have arrived at the begin, and during each step
		waited   time.Duration
		sizes    []int
	}{
		"no other follows":    {[]int{1}, step, []int{1}},
		"one, then none":      {[]int{1, 1}, 2 * step, []int{2}},
		"one in each step":    {[]int{1, 1, 1, 1, 1}, 4 * step, []int{5}},
		"enough soon":         {[]int{1, 8}, step, []int{9}},
		"enough at once":      {[]int{8}, step, []int{8}},
		"too many for Gather": {[]int{1, 1, 1, 1, 1, 1}, 4 * step, []int{5, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeStore{}
				k := committerOn(p, func(cfg *GroupConfig) { cfg.Workers, cfg.Gather, cfg.Enough = 2, 4*step, 8 })
				defer k.Close()
				k.shared.Store(true) // as after a group of several
				began, n := time.Now(), 0
				var first time.Duration
				var answers []func() []error
				for i, arrive := range c.arriving {
					if i > 0 {
						time.Sleep(step - time.Millisecond)
					}
					ops := make([]op, arrive)
					for i := range ops {
						n++
						ops[i] = op{n, n}
					}
					wait := submit(t, k, ops)
					answers = append(answers, wait)
					if i == 0 {
						go func() { wait(); first = time.Since(began) }()
					}
					if i > 0 {
						time.Sleep(time.Millisecond)
					}
				}
				for _, wait := range answers {
					for _, err := range wait() {
						if err != nil {
							t.Error(err)
						}
					}
				}
				synctest.Wait()
				if first != c.waited || !slices.Equal(p.sizes(), c.sizes) {
					t.Errorf("the first waited for %s, groups of %v; want %s and %v", first, p.sizes(), c.waited, c.sizes)
				}
			})
		})
	}
}

// TestOneAloneNeverWaits: the operation of a single caller never waits for other operations.
func TestOneAloneNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := committerOn(&fakeStore{}, func(cfg *GroupConfig) { cfg.Workers, cfg.Gather, cfg.Enough = 2, time.Second, 4 })
		defer c.Close()
		began := time.Now()
		for i := range 3 {
			submit(t, c, []op{{i, i}})()
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("callers who were alone waited for %s", d)
		}
	})
}

// TestAGroupThatWaitsHoldsUpNoOther: a small group is normally stored alone. A small group
// that waits for a locked row delays the next group only for a moment.
func TestAGroupThatWaitsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		c := committerOn(p, func(cfg *GroupConfig) { cfg.Workers, cfg.Gather, cfg.Enough = 2, time.Second, 4 })
		defer c.Close()
		first := submit(t, c, []op{{1, 1}})
		synctest.Wait() // the first group is being stored
		second := submit(t, c, []op{{2, 2}})
		synctest.Wait()
		if n := p.inside.Load(); n != 1 {
			t.Errorf("%d groups are stored at once", n)
		}
		time.Sleep(aloneFor) // moves the clock of synctest, and takes no time
		synctest.Wait()
		if n := p.inside.Load(); n != 2 {
			t.Errorf("after %s %d groups are stored", aloneFor, n)
		}
		close(p.hold)
		first()
		second()
	})
}

// TestLargeOperationsWaitForNoOthers: large operations wait neither for more operations nor
// for the previous group.
func TestLargeOperationsWaitForNoOthers(t *testing.T) {
	for _, small := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeStore{hold: make(chan struct{})}
			c := committerOn(p, func(cfg *GroupConfig) {
				cfg.Workers, cfg.Gather, cfg.Enough, cfg.Small = 2, 4*time.Second, 4, func() bool { return small }
			})
			defer c.Close()
			first := submit(t, c, []op{{1, 1}})
			synctest.Wait()
			second := submit(t, c, []op{{2, 2}})
			synctest.Wait()
			if alone := p.inside.Load() == 1; alone != small {
				t.Errorf("small %t, a group is stored alone %t", small, alone)
			}
			close(p.hold)
			first()
			second()
			c.shared.Store(true)
			began := time.Now()
			submit(t, c, []op{{3, 3}})()
			if waited := time.Since(began) > 0; waited != small {
				t.Errorf("small %t, waited for more %t", small, waited)
			}
		})
	}
}
