package delivery

import (
	"context"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// Accepted is [Journal.Accepted] for the messages of this run. The recording continues while the
// sender prepares its next message.
func (r *run) Accepted(id user.ID) (recorded func(context.Context) error) { return r.accepted(id, 0) }

// Through is [RoutedJournal.Through] for the messages of this run.
func (r *run) Through(provider int64) Journal { return routedJournal{r, provider} }

type routedJournal struct {
	*run
	via int64
}

// Accepted is [run.Accepted] for messages that the provider takes.
func (j routedJournal) Accepted(id user.ID) (recorded func(context.Context) error) {
	return j.accepted(id, j.via)
}

func (r *run) accepted(id user.ID, via int64) (recorded func(context.Context) error) {
	done := make(chan error, 1)
	go func() {
		done <- untilRecorded(context.Background(), func(ctx context.Context) error { return r.lease.Accepted(ctx, id, via) })
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

// resume records the messages that a former run handed over and did not record in a checkpoint.
// They count as sent.
func (r *run) resume(ctx context.Context) error {
	if len(r.batch.Accepted) == 0 {
		return nil
	}
	p := Progress{Sent: r.batch.Accepted, Via: r.batch.AcceptedVia}
	if r.batch.consentable() {
		// Which device took the message is not known: none of the consents is used again.
		p.ConsentsUsed = p.Sent
	}
	for _, id := range p.Sent {
		if e, tried := r.batch.Exceptions[id]; tried {
			e.Outcome, e.LastAt, e.NextRetryAt, e.Via = Recovered, r.clock(), time.Time{}, p.Via[id]
			p.Exceptions = append(p.Exceptions, e)
		}
	}
	stop, err := r.save(ctx, p)
	if err != nil {
		return err
	}
	r.batch.record(p)
	r.reportMetrics(p)
	if stop == Held {
		return r.release(ctx, Progress{}, time.Second)
	}
	r.batch.StopReason = stop
	return nil
}

// saveFor is how long a checkpoint is tried before the lease is left to expire.
const saveFor = 30 * time.Second

// untilRecorded retries record beyond the end of ctx and through an outage of
// the database: giving up would send the same messages twice.
func untilRecorded(ctx context.Context, record func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := record(ctx)
		if err == nil || fault.KindOf(err) != fault.Unavailable {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}
