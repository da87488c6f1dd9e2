package delivery

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Keep runs do and meanwhile renews a lease of the given length, so that work which records
// nothing for a while is not taken for abandoned. Once renew returns [ErrLeaseLost], the context
// of do ends, and Keep returns [ErrLeaseLost] unless do succeeded. After any other error the
// renewal is tried again: the next record decides whether the lease still holds.
func Keep(ctx context.Context, lasting time.Duration, renew, do func(context.Context) error) error {
	work, cancel := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { cancel(keep(work, lasting, renew)) })
	err := do(work)
	cancel(nil)
	renewing.Wait()
	if err != nil && errors.Is(context.Cause(work), ErrLeaseLost) {
		return ErrLeaseLost
	}
	return err
}

// keep returns [ErrLeaseLost], or nil when ctx ends.
func keep(ctx context.Context, lasting time.Duration, renew func(context.Context) error) error {
	tick := time.NewTicker(max(lasting/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := renewOnce(ctx, lasting, renew); errors.Is(err, ErrLeaseLost) {
				return err
			}
		}
	}
}

// renewOnce calls renew, and waits for it at most as long as the lease would last.
func renewOnce(ctx context.Context, lasting time.Duration, renew func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, lasting)
	defer cancel()
	return renew(ctx)
}
