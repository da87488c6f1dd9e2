package delivery

import (
	"context"
	"errors"
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
	small   int       // parts of batches that are worked on, see [Parts]
	large   int       // batches that are worked on and need more than one call
	failed  error     // of a batch, the first
}

// all leases and runs batches until there are none.
func (d *drain) all(ctx context.Context) error {
	for {
		n, err := d.room()
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		asked := d.Now()
		leases, err := d.Store.LeaseSome(ctx, d.channel, d.LeaseFor, n)
		for _, l := range leases {
			d.start(ctx, d.newRun(l, asked))
		}
		switch {
		case errors.Is(err, ErrNoWork):
			if d.rest() {
				return d.failed
			}
		case err != nil && !errors.Is(err, ErrLeaseLost):
			return err
		}
	}
}

// room waits until further batches may be leased, and returns how many. There is room for as
// many small ones as a full batch has parts, or as calls may be made, if these are more, and
// for none while a large one is worked on. Batches are leased several at a time: there is
// room when half of those before have ended.
func (d *drain) room() (n int, err error) {
	most := max(BatchParts, cap(d.permits))
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.failed == nil && (d.large > 0 || d.small > most/2) {
		d.ended.Wait()
	}
	return most - d.small, d.failed
}

// rest waits until no batch is worked on, and returns true, or for a second: one batch
// that takes long must not keep others waiting.
func (d *drain) rest() (all bool) {
	over := false
	stop := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		over = true
		d.ended.Signal()
	}
	t := time.AfterFunc(lookEvery, stop)
	defer t.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for !over && d.small+d.large > 0 {
		d.ended.Wait()
	}
	return d.small+d.large == 0
}

// start runs the leased batch.
func (d *drain) start(ctx context.Context, r *run) {
	r.permits = d.permits
	of, n := &d.large, 1
	if r.small() {
		of, n = &d.small, Parts(len(r.batch.Left))
	}
	d.mu.Lock()
	*of += n
	d.mu.Unlock()
	d.running.Go(func() {
		err := r.all(ctx)
		d.mu.Lock()
		defer d.mu.Unlock()
		*of -= n
		if err != nil && d.failed == nil && !errors.Is(err, ErrLeaseLost) { // another worker has that batch
			d.failed = err
		}
		d.ended.Signal()
	})
}

// small reports whether one call reaches all recipients.
func (r *run) small() bool { return r.sender != nil && len(r.batch.Left) <= r.chunkSize() }
