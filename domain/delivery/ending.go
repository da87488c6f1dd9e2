package delivery

import (
	"context"
	"time"

	"dropbell/domain/task"
)

// An ending ends the batch of one run, or releases it for a later run.
type ending struct {
	*leasedBatch
	queue   Queue
	narrow  *chunkLimit
	observe func(c Channel, sent int, late time.Duration) // [Service.Observe]
	over    bool                                          // the batch is finished or released
}

// end gives all recipients without an outcome the same one.
func (e *ending) end(ctx context.Context, rest Outcome, reason string) error {
	e.over = true
	var failed []Exception
	for _, id := range e.batch.Left {
		if x, ok := e.batch.Exceptions[id]; ok && x.Outcome == Failed {
			if rest == Skipped {
				x.Reason = reason // an expired one keeps its last error as the cause
			}
			x.Outcome, x.NextRetryAt, x.LastAt = rest, time.Time{}, e.clock()
			failed = append(failed, x)
		}
	}
	if rest == Expired { // held-out users were not to be sent to: they are not lost
		for _, id := range e.batch.HeldOut {
			failed = append(failed, Exception{UserID: id, Outcome: Skipped, Reason: ReasonHoldOut, FirstAt: e.clock(), LastAt: e.clock()})
		}
	}
	e.narrow.forget(e.batch.ID)
	_, err := e.save(ctx, Progress{Exceptions: failed, Rest: rest, RestReason: reason, Done: true})
	return err
}

// release gives the lease back and makes the batch ready again after wait.
func (e *ending) release(ctx context.Context, p Progress, wait time.Duration) error {
	e.over = true
	wait = max(wait, 10*time.Millisecond)
	p.ReleaseUntil = e.clock().Add(wait)
	if p.ReleaseUntil.After(e.batch.WorthlessAfter) {
		p.ReleaseUntil = e.batch.WorthlessAfter
	}
	if _, err := e.save(ctx, p); err != nil {
		return err
	}
	e.reportMetrics(p)
	// If enqueueing fails, or the queue is lost, the sweep finds the batch overdue. During a
	// shutdown the task is enqueued too, to wake another worker.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	at := e.now().Add(p.ReleaseUntil.Sub(e.clock()))
	return e.queue.Enqueue(ctx, task.Run(e.batch.ID, e.batch.Channel.String(), int(p.ReleaseUntil.Unix()), at))
}

// saveFirst records exceptions before the first message is sent.
func (e *ending) saveFirst(ctx context.Context, es []Exception) error {
	stop, err := e.save(ctx, Progress{Exceptions: es})
	switch {
	case err != nil || stop == "":
		return err
	case stop == Held:
		return e.release(ctx, Progress{}, time.Second)
	}
	return e.end(ctx, Skipped, stop)
}

// complete ends the batch, or releases it until its next attempt. No call may be in flight.
func (e *ending) complete(ctx context.Context, calls *calls) error {
	now := e.clock()
	switch {
	case e.batch.StopReason != "":
		return e.end(ctx, Skipped, e.batch.StopReason)
	case !now.Before(e.batch.WorthlessAfter):
		return e.end(ctx, Expired, ReasonDeadline)
	case calls.postponed() > 0:
		return e.release(ctx, Progress{}, calls.postponed())
	case ctx.Err() != nil: // shutting down: another worker may continue at once
		return e.release(ctx, Progress{}, 0)
	}
	_, next := e.batch.Plan(now)
	return e.finish(ctx, Progress{}, next)
}

// finish records p and ends the batch, or releases it until next.
func (e *ending) finish(ctx context.Context, p Progress, next time.Time) error {
	ready, _ := e.batch.Plan(e.clock())
	switch {
	case e.batch.Settled():
		p.Done, e.over = true, true
		if len(e.batch.HeldOut) > 0 { // each other recipient has an outcome
			p.Rest, p.RestReason = Skipped, ReasonHoldOut
		}
		e.narrow.forget(e.batch.ID)
		_, err := e.save(ctx, p)
		if err == nil {
			e.reportMetrics(p)
		}
		return err
	case len(ready) > 0: // due for a retry meanwhile
		return e.release(ctx, p, time.Second/5)
	}
	return e.release(ctx, p, next.Sub(e.clock()))
}

func (e *ending) reportMetrics(p Progress) {
	if e.observe != nil && len(p.Sent) > 0 {
		late := e.clock().Sub(e.batch.lateFrom(e.clock()))
		if e.batch.Subject.Kind == KindCampaign {
			late = -1
		}
		e.observe(e.batch.Channel, len(p.Sent), late)
	}
}
