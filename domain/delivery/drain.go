package delivery

import (
	"cmp"
	"context"
	"errors"
	"sync"
)

// Drain works ready batches of the channel off until none is left or ctx
// ends. A worker that is woken once therefore finishes what several others
// were woken for; they then find nothing to do. Small batches are worked on side by
// side, see [drain].
func (s *Service) Drain(ctx context.Context, c Channel) error {
	d := drain{Service: s, channel: c, permits: s.permits(c)}
	err := d.work(ctx, false)
	d.helpers.Wait()
	return cmp.Or(err, d.failed)
}

// A drain works off a channel's batches. While they are so small that one call
// reaches all recipients, it works on as many at a time as it may make calls: the cost
// of a batch beside its messages is shared by the batches whose leases, contacts and
// checkpoints the store reads and records together. All of its calls share the permits
// of one large batch.
type drain struct {
	*Service
	channel Channel
	permits permits

	helpers sync.WaitGroup
	mu      sync.Mutex
	helping int
	failed  error // of a helper, the first
}

// work leases and runs batches, as a helper as long as they are small.
func (d *drain) work(ctx context.Context, helper bool) error {
	for ctx.Err() == nil {
		r, err := d.leaseNext(ctx, d.channel, d.permits)
		small := err == nil && r.small()
		if small {
			d.widen(ctx)
		}
		if err == nil {
			err = r.all(ctx)
		}
		switch {
		case errors.Is(err, ErrNoWork):
			return nil
		case errors.Is(err, ErrLeaseLost): // another worker has that batch
		case err != nil:
			return err
		}
		if helper && !small {
			return nil
		}
	}
	return ctx.Err()
}

// widen starts a helper, unless there are as many as calls may be made.
func (d *drain) widen(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.helping >= cap(d.permits)-1 || d.failed != nil {
		return
	}
	d.helping++
	d.helpers.Go(func() {
		err := d.work(ctx, true)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.helping--
		d.failed = cmp.Or(d.failed, err)
	})
}

// small reports whether one call reaches all recipients.
func (r *run) small() bool { return r.sender != nil && len(r.batch.Left) <= r.chunkSize() }
