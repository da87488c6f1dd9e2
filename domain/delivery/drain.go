package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Drain works ready batches of the channel off until none is left or ctx
// ends. A worker that is woken once therefore finishes what several others
// were woken for; they then find nothing to do. Small batches are worked on side by
// side, see [drain].
func (s *Service) Drain(ctx context.Context, c Channel) error {
	d := drain{Service: s, channel: c, permits: s.permits(c)}
	d.ended.L = &d.mu
	defer d.running.Wait()
	return d.all(ctx)
}

// A drain works off a channel's batches. While they are so small that one call
// reaches all recipients, it works on several at a time: the cost of a batch beside its
// messages is shared by the batches whose leases, contacts and checkpoints the store reads
// and records together. All of its calls share the permits of one large batch.
type drain struct {
	*Service
	channel Channel
	permits permits

	running sync.WaitGroup
	mu      sync.Mutex
	ended   sync.Cond // a batch has ended
	small   int       // batches that are worked on and of which one call reaches all recipients
	parts   int       // of those, see [Parts]
	large   int       // the others that are worked on
	failed  error     // of a batch, the first
}

// all leases and runs batches until there are none.
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

// awaitCapacity waits until further batches may be leased, and returns how many, and
// whether others are worked on. There are at most as many small ones as calls may be
// made, or as many as together have the parts of a full batch; none while a large one is
// worked on. Batches are leased several at a time: when half of the parts have ended, or a
// quarter of the calls.
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

// awaitIdle waits until no batch is worked on, or for a second: one batch that takes long
// must not keep others waiting.
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
	r.permits = d.permits
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

// recovered runs the batch; a panic is its error. Its lease is left to run out.
func (r *run) recovered(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c := crashed(p).Crash
			r.reportCrash(c)
			err = fmt.Errorf("delivery: batch %d: %s", r.batch.ID, c.What)
		}
	}()
	return r.all(ctx)
}

// small reports whether one call reaches all recipients.
func (r *run) small() bool { return r.sender != nil && len(r.batch.Left) <= r.chunkSize() }
