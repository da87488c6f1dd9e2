package pg

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/domain/fault"
)

// ErrQueueFull is returned when the queue of a committer is full; see MaxQueue.
var ErrQueueFull = fault.New(fault.Unavailable, "overloaded", "too many requests at once; try again")

// errLeft is returned when the caller's context ended before its operation was taken into a
// group. Nothing was stored.
var errLeft = fault.New(fault.Unavailable, "overloaded", "this took too long, and nothing was stored; try again")

// Committer coalesces concurrent operations into groups. One statement stores a group, so that
// N callers share one fsync. A worker takes the operations that queued while its previous
// group was being stored. With Gather set, the worker also waits a moment for more operations,
// as long as groups have several operations. Operations with equal keys never share a group:
// the later operation waits for the next group. Without a key function all operations may
// share a group, in order of arrival.
type Committer[K comparable, Op, Res any] struct {
	cfg      GroupConfig
	key      func(Op) K
	template func(Op) int64
	flush    func(context.Context, []Op) ([]Res, error)
	queue    *fairQueue[Op, Res]
	// gathering is a lock: while small groups are committed one at a time, or a worker waits
	// for more operations, only one worker fills the next group. This worker blocks until an
	// operation arrives, so a worker that holds deferred operations never takes the lock.
	gathering chan struct{}
	// shared says that the last group had several operations.
	shared atomic.Bool
	spent  sync.Pool // of *pending that were answered
	done   sync.WaitGroup
	apart  sync.WaitGroup // the worker of apart.go
}

type pending[Op, Res any] struct {
	op     Op
	answer chan answer[Res]
	ctx    context.Context   // of a traced caller, otherwise nil
	next   *pending[Op, Res] // in its lane of the queue
	// state decides the race between a caller that stops waiting and a worker that takes the
	// operation into a group: the first to set state wins.
	state atomic.Int32
}

// The states of a pending operation after it was queued, which is 0.
const (
	taken int32 = iota + 1
	left
)

// leave returns the error for a caller that stops waiting: why, and whether p may have been
// stored. A worker that later finds p in state left recycles p.
func (p *pending[Op, Res]) leave(why error) error {
	if p.state.CompareAndSwap(0, left) {
		return fmt.Errorf("%w (%w)", errLeft, why)
	}
	return fmt.Errorf("%w (%w)", fault.ErrOutcomeUnknown, why)
}

// reset makes p ready for another operation.
func (p *pending[Op, Res]) reset() {
	var none Op
	p.op, p.ctx = none, nil
	p.state.Store(0)
}

type answer[Res any] struct {
	res Res
	err error
}

// NewCommitter starts the workers. flush stores a group and returns a result for
// each operation, in order; key may be nil.
func NewCommitter[K comparable, Op, Res any](cfg GroupConfig, key func(Op) K,
	flush func(context.Context, []Op) ([]Res, error),
) *Committer[K, Op, Res] {
	return NewFairCommitter(cfg, key, func(Op) int64 { return 0 }, flush)
}

// NewFairCommitter starts a [Committer] that gives equal shares of each group to all templates
// with waiting operations. A rush for one drop delays operations of other templates by no more
// than its own share of the group. Above MaxQueue waiting operations, operations of the
// templates with the most waiting operations are refused.
func NewFairCommitter[K comparable, Op, Res any](cfg GroupConfig, key func(Op) K, template func(Op) int64,
	flush func(context.Context, []Op) ([]Res, error),
) *Committer[K, Op, Res] {
	c := &Committer[K, Op, Res]{
		cfg: cfg, key: key, template: template, flush: flush, queue: newFairQueue[Op, Res](cfg.MaxQueue),
		gathering: make(chan struct{}, 1),
	}
	work := c.work
	if cfg.SideBySide > 0 && key == nil {
		work = c.workInTurn
	}
	for range cfg.Workers {
		c.done.Go(work)
	}
	if cfg.LockWait > 0 {
		c.apart.Go(c.workApart)
	}
	return c
}

// Do returns when the group that holds op is committed or refused. It returns
// [ErrQueueFull] at once when the queue is full. If ctx ends while op is queued,
// op is never stored; if it ends while the group of op is being stored, storing
// continues, and the error is [fault.ErrOutcomeUnknown].
func (c *Committer[K, Op, Res]) Do(ctx context.Context, op Op) (Res, error) {
	p := c.pend(op)
	if c.cfg.Traced && sampled(ctx) {
		p.ctx = ctx
	}
	var none Res
	if err := c.queue.push(c.template(op), p); err != nil {
		return none, err
	}
	select {
	case a := <-p.answer: // the last that is done with p
		p.reset()
		c.spent.Put(p)
		return a.res, a.err
	case <-ctx.Done():
		return none, p.leave(ctx.Err())
	}
}

func (c *Committer[K, Op, Res]) pend(op Op) *pending[Op, Res] {
	p, ok := c.spent.Get().(*pending[Op, Res])
	if !ok {
		p = &pending[Op, Res]{answer: make(chan answer[Res], 1)}
	}
	p.op = op
	return p
}

// Close refuses new operations and returns when all accepted operations are answered.
func (c *Committer[K, Op, Res]) Close() {
	c.queue.close()
	c.done.Wait()
	c.queue.closeApart()
	c.apart.Wait()
}

func (c *Committer[K, Op, Res]) work() {
	var later []*pending[Op, Res]
	for {
		wait := c.cfg.Gather > 0 && len(later) == 0
		if wait {
			c.gathering <- struct{}{}
			c.await()
		}
		group, rest, open := c.gather(later)
		c.shared.Store(len(group) > 1)
		// A worker with deferred operations must not wait for another worker that waits for
		// new operations.
		alone := wait && c.small() && len(rest) == 0 && len(group) > 0 && len(group) < c.cfg.Enough
		if wait && !alone {
			<-c.gathering
		}
		if len(group) == 0 && !open {
			return
		}
		later = rest
		if alone {
			c.commitAlone(group)
			continue
		}
		c.commit(group)
	}
}

// aloneFor is how long a small group prevents the next group from starting. A group that takes
// longer waits for a lock and must not delay other operations.
const aloneFor = 50 * time.Millisecond

// commitAlone stores the group and then lets another worker gather.
func (c *Committer[K, Op, Res]) commitAlone(group []*pending[Op, Res]) {
	next := sync.OnceFunc(func() { <-c.gathering })
	defer next()
	late := time.AfterFunc(aloneFor, next)
	defer late.Stop()
	c.commit(group)
}

// await returns when the queue holds operations or is closed. While groups have several
// operations, await waits for more operations as long as they arrive.
func (c *Committer[K, Op, Res]) await() {
	c.queue.take(nil, 0, true)
	if !c.shared.Load() || !c.small() {
		return
	}
	const steps = 4
	for range steps {
		before := c.queue.len()
		if before >= c.cfg.Enough {
			return
		}
		time.Sleep(c.cfg.Gather / steps) // woken by each arrival instead, a worker would take a processor from the callers
		if c.queue.len() == before {
			return
		}
	}
}

func (c *Committer[K, Op, Res]) small() bool { return c.cfg.Small == nil || c.cfg.Small() }

// workInTurn is work for committers that store small groups one at a time.
func (c *Committer[K, Op, Res]) workInTurn() {
	for {
		c.gathering <- struct{}{}
		c.yieldToCallers()
		group, _, open := c.gather(nil)
		alone := len(group) > 0 && len(group) < c.cfg.SideBySide
		if !alone {
			<-c.gathering
		}
		if len(group) == 0 && !open {
			return
		}
		if alone {
			c.commitAlone(group)
			continue
		}
		c.commit(group)
	}
}

// yieldToCallers yields the processor while the queue keeps growing, so that callers
// about to enqueue join this group. On an idle machine a yield returns at once and
// delays no caller.
func (c *Committer[K, Op, Res]) yieldToCallers() {
	for before := 0; ; runtime.Gosched() {
		n := c.queue.len()
		if n <= before || n >= c.cfg.SideBySide {
			return
		}
		before = n
	}
}

// gather returns the next group: first the deferred operations, then the queued ones. gather
// blocks only if there are no operations at all. later are operations deferred to the next
// group. open is false once the queue is closed and empty. Operations whose callers have left
// are dropped.
func (c *Committer[K, Op, Res]) gather(deferred []*pending[Op, Res]) (group, later []*pending[Op, Res], open bool) {
	limit := max(c.cfg.MaxGroup, min(c.cfg.MaxCrowd, c.queue.len()/c.cfg.Workers))
	var keys map[K]struct{}
	if c.key != nil {
		keys = make(map[K]struct{}, limit)
	}
	add := func(p *pending[Op, Res]) {
		var k K
		if c.key != nil {
			k = c.key(p.op)
			if _, dup := keys[k]; dup || len(group) >= limit {
				later = append(later, p)
				return
			}
		}
		if !p.state.CompareAndSwap(0, taken) {
			p.reset()
			c.spent.Put(p)
			return
		}
		if c.key != nil {
			keys[k] = struct{}{}
		}
		group = append(group, p)
	}
	for _, p := range deferred {
		if !c.queue.deferApart(c.template(p.op), p) {
			add(p)
		}
	}
	open = true
	for open && len(group) < limit && len(later) < limit {
		var batch []*pending[Op, Res]
		batch, open = c.queue.take(nil, limit-len(group), len(group) == 0)
		for _, p := range batch {
			add(p)
		}
		if len(batch) == 0 {
			break
		}
	}
	return group, later, open
}

// commit stores the group, and divides it if it meets a lock.
func (c *Committer[K, Op, Res]) commit(group []*pending[Op, Res]) {
	wait := c.cfg.LockWait
	if slices.ContainsFunc(group, func(p *pending[Op, Res]) bool { return c.template(p.op) != c.template(group[0].op) }) {
		wait /= sharedPart
	}
	c.store(group, wait, c.divide)
}

// store stores the group and answers its callers. Operations that met a lock are not answered
// but passed to met. A row that the database refuses must not fail the other rows, so such a
// group is halved until the refused row is alone.
func (c *Committer[K, Op, Res]) store(group []*pending[Op, Res], wait time.Duration, met func([]*pending[Op, Res])) {
	ops := make([]Op, len(group))
	for i, p := range group {
		ops[i] = p.op
	}
	start := time.Now()
	ctx := traceOfGroup(group)
	if wait > 0 {
		ctx = WaitingFor(ctx, wait)
	}
	results, err := c.attempt(ctx, ops)
	switch {
	case err == nil:
		for i, p := range group {
			p.answer <- answer[Res]{res: results[i]}
		}
		if c.cfg.Observe != nil {
			c.cfg.Observe(len(group), time.Since(start))
		}
	case c.cfg.LockWait > 0 && LockTimedOut(err):
		met(group)
	case len(group) > 1 && RefusedData(err):
		c.store(group[:len(group)/2], wait, met)
		c.store(group[len(group)/2:], wait, met)
	default:
		for _, p := range group {
			p.answer <- answer[Res]{err: Translate(err)}
		}
	}
}

// traceOfGroup returns a context that never ends. It carries the trace of the first caller
// that is traced.
func traceOfGroup[Op, Res any](group []*pending[Op, Res]) context.Context {
	for _, p := range group {
		if p.ctx != nil {
			return Unlimited(context.WithoutCancel(p.ctx))
		}
	}
	return context.Background()
}

// attempt runs the statement, and runs it once more after a deadlock.
func (c *Committer[K, Op, Res]) attempt(ctx context.Context, ops []Op) ([]Res, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	results, err := c.flush(ctx, ops)
	if Raced(err) && !LockTimedOut(err) {
		return c.flush(ctx, ops)
	}
	return results, err
}

// Raced reports whether a concurrent transaction was the reason for a rollback: a deadlock, or
// a lock that was not granted in time.
func Raced(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(pg.Code, "40") || LockTimedOut(err)
}

// RefusedData reports whether the database refused a value (SQLSTATE classes 22 and 23). Such
// an error concerns one row and not the whole group.
func RefusedData(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
}
