package delivery

import (
	"context"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/pause"
	"dropbell/domain/user"
)

// leaseJournal is the [RoutedJournal] of one run: it records under the run's lease. The recording
// continues while the sender prepares its next message.
type leaseJournal struct {
	lease Lease
	via   int64 // the provider that takes the messages, see [Result]
}

// Through is [RoutedJournal.Through].
func (j leaseJournal) Through(provider int64) Journal { return leaseJournal{j.lease, provider} }

// Accepted is [Journal.Accepted].
func (j leaseJournal) Accepted(id user.ID) (recorded func(context.Context) error) {
	done := make(chan error, 1)
	go func() {
		done <- untilRecorded(context.Background(), func(ctx context.Context) error { return j.lease.Accepted(ctx, id, j.via) })
	}()
	return func(ctx context.Context) error {
		select {
		case err := <-done:
			done <- err // may be asked again
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// saveFor is how long a checkpoint is tried before the lease is left to expire.
const saveFor = 30 * time.Second

// untilRecorded retries record beyond the end of ctx and through an outage of
// the database: giving up would send the same messages twice.
func untilRecorded(ctx context.Context, record func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := record(ctx)
		if err == nil || fault.KindOf(err) != fault.Unavailable {
			return err
		}
		if !pause.For(ctx, wait) {
			return err
		}
	}
}
