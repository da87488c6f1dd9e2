package pg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/domain/fault"
)

// op is one operation: its key and its place in the order of arrival.
type op struct{ key, n int }

// fakeStore stores groups in memory. While hold is not nil, a group waits to
// receive a value from hold.
type fakeStore struct {
	mu     sync.Mutex
	groups [][]op
	hold   chan struct{}
	inside atomic.Int32 // groups that are being stored
	fail   func(group []op, call int) error
	calls  int
}

func (p *fakeStore) flush(ctx context.Context, group []op) ([]string, error) {
	p.inside.Add(1)
	defer p.inside.Add(-1)
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if p.fail != nil {
		if err := p.fail(group, p.calls); err != nil {
			return nil, err
		}
	}
	p.groups = append(p.groups, slices.Clone(group))
	res := make([]string, len(group))
	for i, o := range group {
		res[i] = fmt.Sprint(o)
	}
	return res, nil
}

func (p *fakeStore) sizes() []int {
	var list []int
	for _, g := range p.groups {
		list = append(list, len(g))
	}
	return list
}

func committerOn(p *fakeStore, change func(*GroupConfig)) *Committer[int, op, string] {
	cfg := DefaultGroups()
	cfg.Workers = 1
	if change != nil {
		change(&cfg)
	}
	return NewCommitter(cfg, func(o op) int { return o.key }, p.flush)
}

// submit starts one caller for each operation, in order. The returned function
// waits for all answers and returns their errors in the order of the operations.
func submit(t *testing.T, c *Committer[int, op, string], ops []op) func() []error {
	t.Helper()
	errs := make([]error, len(ops))
	var all sync.WaitGroup
	for i, o := range ops {
		all.Go(func() {
			res, err := c.Do(context.Background(), o)
			if errs[i] = err; err == nil && res != fmt.Sprint(o) {
				t.Errorf("%v was answered %s", o, res)
			}
		})
		synctest.Wait() // it has queued before the next one
	}
	return func() []error { all.Wait(); return errs }
}

func distinctOps(n int) []op {
	list := make([]op, n)
	for i := range list {
		list[i] = op{i, i}
	}
	return list
}

// TestSmallGroupsStandAlone: while a small group is stored, the next group grows,
// however many workers there are. A large group is stored concurrently with the
// next group.
func TestSmallGroupsStandAlone(t *testing.T) {
	for _, c := range []struct {
		arriving, atOnce []int // how many come at a time, and how many statements wait then
		sizes            []int
	}{
		{[]int{1, 2, 3}, []int{1, 1, 1}, []int{1, 5}},
		{[]int{1, 6, 2}, []int{1, 1, 1}, []int{1, 4, 4}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeStore{hold: make(chan struct{})}
			cfg := DefaultGroups()
			cfg.SideBySide, cfg.MaxGroup = 4, 4
			if c.sizes[1] > 4 {
				cfg.MaxGroup = 256
			}
			var waiting atomic.Int32
			flush := func(ctx context.Context, group []op) ([]string, error) {
				waiting.Add(1)
				defer waiting.Add(-1)
				return p.flush(ctx, group)
			}
			k := NewCommitter[int](cfg, nil, flush)
			var all sync.WaitGroup
			for i, n := range c.arriving {
				for range n {
					all.Go(func() {
						if _, err := k.Do(context.Background(), op{}); err != nil {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				if n := int(waiting.Load()); n != c.atOnce[i] {
					t.Errorf("%d statements at once after %v", n, c.arriving[:i+1])
				}
			}
			p.hold <- struct{}{} // the small one is stored
			synctest.Wait()
			if n, large := int(waiting.Load()), min(len(c.sizes)-1, cfg.Workers); n != large {
				t.Errorf("%d statements at once, want %d", n, large)
			}
			close(p.hold)
			all.Wait()
			k.Close()
			if !slices.Equal(p.sizes(), c.sizes) {
				t.Errorf("groups of %v, want %v", p.sizes(), c.sizes)
			}
		})
	}
}

func TestWhateverQueuedIsOneGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		var told []int
		c := committerOn(p, func(cfg *GroupConfig) { cfg.Observe = func(n int, _ time.Duration) { told = append(told, n) } })
		answers := submit(t, c, distinctOps(601))
		close(p.hold)
		for i, err := range answers() {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		c.Close()
		// The first operation did not wait; the other operations came while it
		// was stored.
		if want := []int{1, 256, 256, 88}; !slices.Equal(p.sizes(), want) || !slices.Equal(told, want) {
			t.Errorf("groups of %v, told %v, want %v", p.sizes(), told, want)
		}
	})
}

// TestACrowdMakesLargerGroups: while more operations wait than fit into one group
// of each worker, groups grow up to a limit.
func TestACrowdMakesLargerGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		c := committerOn(p, func(cfg *GroupConfig) { cfg.MaxGroup, cfg.MaxCrowd = 4, 16 })
		answers := submit(t, c, distinctOps(1+16+16+14))
		close(p.hold)
		for i, err := range answers() {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		c.Close()
		if want := []int{1, 16, 16, 14}; !slices.Equal(p.sizes(), want) {
			t.Errorf("groups of %v, want %v", p.sizes(), want)
		}
	})
}

func TestEqualKeysWaitForTheNextGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		c := committerOn(p, func(cfg *GroupConfig) { cfg.MaxGroup = 8 })
		var ops []op
		for i := range 200 {
			ops = append(ops, op{key: rand.IntN(1 + i%20), n: i})
		}
		answers := submit(t, c, ops)
		close(p.hold)
		answers()
		c.Close()
		last := map[int]int{}
		stored := 0
		for _, g := range p.groups {
			seen := map[int]bool{}
			for _, o := range g {
				if seen[o.key] {
					t.Fatalf("key %d stands twice in %v", o.key, g)
				}
				if before, ok := last[o.key]; ok && before > o.n {
					t.Fatalf("key %d: %d was stored after %d", o.key, o.n, before)
				}
				seen[o.key], last[o.key] = true, o.n
				stored++
			}
			if len(g) > 8 {
				t.Errorf("a group of %d", len(g))
			}
		}
		if stored != len(ops) {
			t.Errorf("%d of %d stored", stored, len(ops))
		}
	})
}

func TestSeveralWorkersKeepEqualKeysApart(t *testing.T) {
	p := &fakeStore{}
	c := committerOn(p, func(cfg *GroupConfig) { cfg.Workers, cfg.MaxGroup = 3, 16 })
	var all sync.WaitGroup
	for i := range 2000 {
		all.Go(func() {
			if _, err := c.Do(t.Context(), op{i % 7, i}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c.Close()
	stored := 0
	for _, g := range p.groups {
		stored += len(g)
		keys := map[int]bool{}
		for _, o := range g {
			keys[o.key] = true
		}
		if len(keys) != len(g) {
			t.Fatalf("equal keys in %v", g)
		}
	}
	if stored != 2000 {
		t.Errorf("%d stored", stored)
	}
}

func TestARefusedRowFailsAlone(t *testing.T) {
	for _, code := range []string{"23514", "22003", "22021"} {
		synctest.Test(t, func(t *testing.T) {
			bad := map[int]bool{17: true, 18: true, 200: true}
			p := &fakeStore{hold: make(chan struct{}), fail: func(g []op, _ int) error {
				if slices.ContainsFunc(g, func(o op) bool { return bad[o.n] }) {
					return &pgconn.PgError{Code: code}
				}
				return nil
			}}
			c := committerOn(p, nil)
			answers := submit(t, c, distinctOps(257)) // one alone, then 256 together
			close(p.hold)
			for n, err := range answers() {
				pg, ok := errors.AsType[*pgconn.PgError](err)
				if code == "22021" { // which says what is wrong with the text
					ok, pg = errors.Is(err, fault.ErrInvalid), &pgconn.PgError{Code: code}
				}
				if ok != bad[n] || ok && pg.Code != code {
					t.Errorf("%s: operation %d: %v", code, n, err)
				}
			}
			c.Close()
			if p.calls > 1+3*2*8 {
				t.Errorf("%s: %d statements to find three rows", code, p.calls)
			}
		})
	}
}

func TestOtherErrorsFailTheGroupAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		err         error
		calls       int
		unavailable bool
	}{
		"the connection broke":   {&pgconn.PgError{Code: "57P01"}, 1, true},
		"a bug in the statement": {&pgconn.PgError{Code: "42703"}, 1, false},
		"a deadlock, twice":      {&pgconn.PgError{Code: "40P01"}, 2, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeStore{hold: make(chan struct{}), fail: func(g []op, call int) error {
				if call > 1 { // the first one went alone
					return c.err
				}
				return nil
			}}
			com := committerOn(p, nil)
			answers := submit(t, com, distinctOps(11))
			close(p.hold)
			for n, err := range answers() {
				if (err == nil) != (n == 0) || n > 0 && (fault.KindOf(err) == fault.Unavailable) != c.unavailable {
					t.Errorf("%s: operation %d: %v", name, n, err)
				}
			}
			com.Close()
			if p.calls != 1+c.calls {
				t.Errorf("%s: %d statements, want %d", name, p.calls-1, c.calls)
			}
		})
	}
}

func TestADeadlockIsTriedAgain(t *testing.T) {
	p := &fakeStore{fail: func(_ []op, call int) error {
		if call == 1 {
			return &pgconn.PgError{Code: "40P01"}
		}
		return nil
	}}
	c := committerOn(p, nil)
	defer c.Close()
	if _, err := c.Do(t.Context(), op{1, 1}); err != nil || p.calls != 2 {
		t.Errorf("%v after %d statements", err, p.calls)
	}
}

func TestWithoutKeysArrivalIsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		cfg := DefaultGroups()
		cfg.Workers, cfg.MaxGroup = 1, 4
		c := NewCommitter[int](cfg, nil, p.flush)
		ops := []op{{0, 0}, {1, 1}, {1, 2}, {2, 3}, {1, 4}, {1, 5}}
		wait := submit(t, c, ops)
		close(p.hold)
		for i, err := range wait() {
			if err != nil {
				t.Errorf("operation %d: %v", i, err)
			}
		}
		c.Close()
		if got := slices.Concat(p.groups...); !slices.Equal(got, ops) || len(p.groups) != 3 {
			t.Errorf("stored %v, want the order of arrival in groups of 1, 4 and 1", p.groups)
		}
	})
}

// TestQuietTemplateAmongBusyOnes: a group takes operations from each template in
// turn. The operations of a template come in their order of arrival. However many
// operations of a busy template came before, a quiet template gets its turn.
func TestQuietTemplateAmongBusyOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeStore{hold: make(chan struct{})}
		cfg := DefaultGroups()
		cfg.Workers, cfg.MaxGroup = 1, 4
		c := NewFairCommitter[int](cfg, nil, func(o op) int64 { return int64(o.key) }, p.flush)
		const busy, quiet = 1, 2
		ops := []op{{busy, 0}}
		for n := 1; n < 12; n++ {
			ops = append(ops, op{busy, n})
		}
		ops = append(ops, op{quiet, 0}, op{quiet, 1}, op{3, 0})
		wait := submit(t, c, ops)
		for range 5 {
			p.hold <- struct{}{}
			synctest.Wait()
		}
		if err := errors.Join(wait()...); err != nil {
			t.Error(err)
		}
		c.Close()
		place := func(o op) int { return slices.IndexFunc(p.groups, func(g []op) bool { return slices.Contains(g, o) }) }
		if len(p.groups[0]) != 1 {
			t.Fatalf("the first group was not stored at once: %v", p.groups)
		}
		for _, o := range []op{{quiet, 0}, {3, 0}} {
			if place(o) != 1 {
				t.Errorf("%v is in group %d of %v", o, place(o), p.groups)
			}
		}
		for n := 1; n < 12; n++ {
			if place(op{busy, n}) < place(op{busy, n - 1}) {
				t.Errorf("operations of a template changed their order: %v", p.groups)
			}
		}
	})
}

// TestFullQueueRefusesTheBusiest: above MaxQueue waiting operations, operations
// of the template that has its equal share are refused and other templates'
// operations are accepted. At twice MaxQueue all operations are refused.
func TestFullQueueRefusesTheBusiest(t *testing.T) {
	q := newFairQueue[op, string](10)
	push := func(template int64, n int) (accepted int) {
		for range n {
			if q.push(template, &pending[op, string]{}) == nil {
				accepted++
			}
		}
		return accepted
	}
	if n := push(1, 15); n != 10 {
		t.Errorf("%d of one template were accepted", n)
	}
	if n := push(2, 20); n != 10 {
		t.Errorf("%d of another template were accepted beside ten", n)
	}
	if n := push(3, 1); n != 0 || q.len() != 20 {
		t.Errorf("%d more than twice as many were accepted, of %d", n, q.len())
	}
	q.close()
	if err := q.push(4, &pending[op, string]{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a closed queue answered %v", err)
	}
	list, open := q.take(nil, 15, true)
	if len(list) != 15 || !open {
		t.Errorf("%d taken, open %v", len(list), open)
	}
	if list, open = q.take(list, 15, true); len(list) != 20 || open || len(q.lanes) != 0 || len(q.turns) != 0 {
		t.Errorf("%d taken, open %v, %d lanes left", len(list), open, len(q.lanes))
	}
}
