package delivery

import (
	"context"
	"sync"
	"time"
)

// A leasedBatch is a batch under the lease of one run. It keeps the lease alive, knows how long it
// certainly lasts, and records checkpoints under it.
type leasedBatch struct {
	lease Lease
	batch *Batch
	// now is this machine's clock, and drift the database's clock minus this machine's.
	now   func() time.Time
	drift time.Duration
	// lasting is [Service.LeaseFor], and uptime is [Service.Uptime]. begun is the instant of the
	// lease request, by uptime.
	lasting time.Duration
	uptime  func() time.Duration
	begun   time.Duration
	term    term
	// unsaved are skips that the next checkpoint records. A separate checkpoint for them would
	// cost as much as the whole delivery in the app, where recording a message sends it, and in
	// small batches. A worker that takes the batch over before that checkpoint finds the same
	// skips itself.
	unsaved []Exception
}

// clock returns the database's time, so that a worker with a wrong clock neither sends too late
// nor expires recipients too early.
func (l *leasedBatch) clock() time.Time { return l.now().Add(l.drift) }

// save is a checkpoint that survives shutdown and a database that is away for a while.
func (l *leasedBatch) save(ctx context.Context, p Progress) (stop string, err error) {
	p.Exceptions = append(p.Exceptions[:len(p.Exceptions):len(p.Exceptions)], l.unsaved...)
	err = untilRecorded(ctx, func(ctx context.Context) error {
		asked := l.uptime()
		if stop, err = l.lease.Checkpoint(ctx, p); err == nil {
			l.term.renewed(asked, l.lasting/2)
		}
		return err
	})
	if err == nil {
		l.unsaved = nil
	}
	return stop, err
}

// lasts reports whether a call may begin: the lease must last for at least another quarter of its
// length, within which the next renewal is due. If the lease may end earlier, lasts renews it
// first, and returns false if the renewal fails.
func (l *leasedBatch) lasts(ctx context.Context) bool {
	if l.term.left(l.uptime()) >= l.lasting/4 {
		return true
	}
	// A reason to stop comes with the next checkpoint too.
	_, err := l.extend(ctx)
	return err == nil
}

// tired reports whether the run has gone on for [runFor].
func (l *leasedBatch) tired() bool { return l.uptime()-l.begun >= runFor }

// lookEvery is how often a batch's stop reason is read while calls are in flight or wait for
// admission and no checkpoint returns the stop reason.
const lookEvery = time.Second

// extend renews the lease, during a shutdown too: calls in flight are left to finish then, and a
// worker that took their batch over would repeat them.
func (l *leasedBatch) extend(ctx context.Context) (stop string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.lasting/3)
	defer cancel()
	asked := l.uptime()
	if stop, err = l.lease.Extend(ctx); err == nil {
		l.term.renewed(asked, l.lasting)
	}
	return stop, err
}

// A term is the instant until which a lease certainly lasts, by [Service.Uptime]. It is checked
// right before each call: a halted process may continue at any point of the code, and another
// worker may hold the batch by then.
type term struct {
	mu  sync.Mutex
	end time.Duration
}

// renewed records that the lease lasts at least for lasting after asked. asked is an instant
// before the renewal was requested.
func (t *term) renewed(asked, lasting time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = max(t.end, asked+lasting)
}

// left is how long the lease is certain to last.
func (t *term) left(now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end - now
}
