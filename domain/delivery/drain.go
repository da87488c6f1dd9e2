package delivery

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Drain processes ready batches of the channel until none is left or ctx ends. So one woken
// worker also finishes the batches for which other workers were woken, and these find nothing to
// do. Small batches are processed concurrently, see [drain].
func (s *Service) Drain(ctx context.Context, c Channel) error {
	d := drain{Service: s, channel: c, permits: s.permits(c)}
	d.ended.L = &d.mu
	defer d.running.Wait()
	return d.all(ctx)
}

// A drain processes a channel's batches. While batches are so small that one call reaches all
// recipients, it processes several at a time: the store reads and records leases, contacts and
// checkpoints of several batches together, which lowers the cost of a batch. All calls of a drain
// share the permits of one large batch.
type drain struct {
	*Service
	channel Channel
	permits permits

	running sync.WaitGroup
	mu      sync.Mutex
	ended   sync.Cond // a batch has ended
	small   int       // small batches in progress: one call reaches all recipients
	parts   int       // parts of the small batches, see [Parts]
	large   int       // other batches in progress
	failed  error     // the first error of a batch
}

// all leases and runs batches until none is ready.
func (d *drain) all(ctx context.Context) error {
	for {
		n, working, err := d.awaitCapacity()
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		asked, begun := d.Now(), d.uptime()
		leases, err := d.Store.LeaseSome(ctx, d.channel, d.LeaseFor, n)
		for _, l := range leases {
			d.start(ctx, d.newRun(l, asked, begun))
		}
		switch {
		case errors.Is(err, ErrNoWork):
			if !working {
				return nil
			}
			// Batches may become ready meanwhile, for which no worker was woken.
			d.awaitIdle()
		case err != nil && !errors.Is(err, ErrLeaseLost):
			return err
		}
	}
}

// awaitCapacity waits until further batches may be leased. It returns how many may be leased, and
// whether small batches are in progress. While a large batch is in progress, no batch may be
// leased. Small batches in progress are limited to the number of permits, or to as many as
// together have the parts of a full batch. Batches are leased several at a time, once half of the
// parts or a quarter of the calls have ended.
func (d *drain) awaitCapacity() (n int, working bool, err error) {
	calls := cap(d.permits)
	several := max(1, min(calls/4, BatchParts/2))
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.failed == nil && (d.large > 0 || d.parts > BatchParts/2 && d.small+several > calls) {
		d.ended.Wait()
	}
	return max(BatchParts-d.parts, calls-d.small), d.small > 0, d.failed
}

// awaitIdle waits until no batch is in progress, at most for a second: a slow batch must not keep
// newly ready batches waiting.
func (d *drain) awaitIdle() {
	over := false
	t := time.AfterFunc(lookEvery, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		over = true
		d.ended.Signal()
	})
	defer t.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for !over && d.small+d.large > 0 {
		d.ended.Wait()
	}
}

// start runs the leased batch.
func (d *drain) start(ctx context.Context, r *run) {
	r.sending.permits = d.permits
	small, parts := r.small(), Parts(len(r.batch.Left))
	count := func(n int) {
		if small {
			d.small, d.parts = d.small+n, d.parts+n*parts
		} else {
			d.large += n
		}
	}
	d.mu.Lock()
	count(1)
	d.mu.Unlock()
	d.running.Go(func() {
		err := r.recovered(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		count(-1)
		if d.failed == nil && !errors.Is(err, ErrLeaseLost) { // another worker has that batch
			d.failed = err
		}
		d.ended.Signal()
	})
}
