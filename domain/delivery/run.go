package delivery

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"dropbell/domain/message"
	"dropbell/domain/task"
	"dropbell/domain/user"
)

// RunNext leases the channel's most urgent batch and delivers it until the batch is finished or
// is released for a later retry. It returns [ErrNoWork] if no batch is ready, or [ErrLeaseLost]
// if another worker took the batch over.
func (s *Service) RunNext(ctx context.Context, c Channel) error {
	asked, begun := s.Now(), s.uptime()
	lease, err := s.Store.LeaseNext(ctx, c, s.LeaseFor)
	if err != nil {
		return err
	}
	r := s.newRun(lease, asked, begun)
	r.permits = s.permits(c)
	return r.all(ctx)
}

// permits returns the permits for the calls of one large batch, or of several small batches.
func (s *Service) permits(c Channel) permits { return newPermits(max(1, s.Parallel[c])) }

// all processes the leased batch.
func (r *run) all(ctx context.Context) error {
	if err := r.loadTexts(ctx); err != nil || r.over {
		return err
	}
	if err := r.resume(ctx); err != nil || r.over {
		return err
	}
	if err := r.settleWithoutSending(ctx); err != nil || r.over {
		return err
	}
	if err := r.screen(ctx); err != nil || r.over {
		return err
	}
	return r.deliver(ctx)
}

// A run is one lease of one batch.
type run struct {
	*Service
	lease     Lease
	batch     *Batch
	drift     time.Duration // database clock − this machine's clock
	render    *Renderer
	sender    Sender
	permits   permits
	screening Screen // nil = all recipients may be sent to
	over      bool   // finished or released
	// unsaved are skips that the next checkpoint records. A separate checkpoint for them would
	// cost as much as the whole delivery in the app, where recording a message sends it, and in
	// small batches. A worker that takes the batch over before that checkpoint finds the same
	// skips itself.
	unsaved []Exception
	// waited are the users whose mails were kept back before; see [Batch.paced].
	waited map[user.ID]bool
	// begun is the instant of the lease request, by [Service.Uptime]; term says how long the
	// lease lasts.
	begun    time.Duration
	term     term
	refusals refusals
	// crashes are the panics that were reported.
	crashes sync.Map
}

// newRun computes the difference between the database's clock and this machine's from the instant
// of the lease request: asked by the service's clock, begun by [Service.Uptime]. If the database
// was slow, the run's clock is ahead of the true time, so the run gives up too early rather than
// sending too late.
func (s *Service) newRun(lease Lease, asked time.Time, begun time.Duration) *run {
	b := lease.Batch()
	if s.DropPage != nil && b.Channel == Email {
		b.Subject.OwnPage(s.DropPage)
	}
	b.Subject.Track = s.track(b)
	if s.Reference != nil {
		b.Subject.Reference = func(id user.ID) string { return s.Reference(b.ID, id) }
	}
	r := &run{Service: s, lease: lease, batch: b, drift: b.Now.Sub(asked), sender: s.senderOf(b), begun: begun}
	r.term.renewed(begun, s.LeaseFor)
	r.refusals.at = r.clock() // the lease has just read them, whenever it was asked for
	return r
}

// senderOf returns the sender of the batch's messages; nil = there is none.
func (s *Service) senderOf(b *Batch) Sender {
	sender := s.Senders[b.Channel]
	if routed, ok := sender.(RoutedSender); ok && !routed.Serves(b.Subject.Place().Shop) {
		return nil
	}
	return sender
}

// track returns the function that makes the tracked links of the batch's messages; nil = the
// messages contain the address itself.
func (s *Service) track(b *Batch) func(user.ID, int) string {
	switch {
	case s.LinkURL != nil && b.Subject.Kind == KindCampaign:
		return func(id user.ID, variant int) string { return s.LinkURL(b.Owner, id, variant) }
	case s.DropLinkURL != nil && b.Channel.Tracks() && (b.Subject.Kind == KindReminder || b.Subject.Kind == KindCorrection):
		return func(id user.ID, _ int) string { return s.DropLinkURL(&b.Subject, b.Channel, id) }
	}
	return nil
}

// loadTexts reads the texts of the batch as of the instant when the batch was cut, however often
// it is tried. Messages of the app need no texts: they are made when they are read.
func (r *run) loadTexts(ctx context.Context) (err error) {
	var book *message.Book
	if r.Texts != nil && r.batch.Channel != App {
		if book, err = r.Texts.Book(ctx, r.batch.Subject.Place(), r.batch.Subject.TextsUpTo); err != nil { // nothing was sent yet
			return r.release(ctx, Progress{}, time.Second/5)
		}
	}
	r.render = NewRenderer(book, r.batch.Subject.At(r.batch.Now), r.batch.Channel)
	return nil
}

// Place returns the shop and drop whose texts the message uses.
func (s Subject) Place() message.Place {
	shop, _ := strconv.ParseInt(s.ShopNumber, 10, 64) // "" = a campaign of no shop
	return message.Place{Shop: shop, Template: s.TemplateID}
}

// clock returns the database's time, so that a worker with a wrong clock neither sends too late
// nor expires recipients too early.
func (r *run) clock() time.Time { return r.Now().Add(r.drift) }

// settleWithoutSending ends the batch if nothing may be sent any more, and skips recipients who
// have opted out of the channel.
func (r *run) settleWithoutSending(ctx context.Context) error {
	switch {
	case r.batch.StopReason != "":
		return r.end(ctx, Skipped, r.batch.StopReason)
	case !r.clock().Before(r.batch.WorthlessAfter):
		return r.end(ctx, Expired, ReasonDeadline)
	case r.sender == nil:
		return r.end(ctx, Skipped, ReasonNoSender)
	}
	var skips []Exception
	for _, id := range r.batch.Left {
		e, tried := r.batch.Exceptions[id]
		if r.batch.OptedOut[id] && !(tried && e.Outcome.Final()) {
			skips = append(skips, r.skip(id, ReasonOptedOut))
		}
	}
	r.batch.record(Progress{Exceptions: skips})
	if len(skips) == 0 {
		return nil
	}
	if r.batch.Channel == App || r.small() {
		r.unsaved = skips
		return nil
	}
	return r.saveFirst(ctx, skips)
}

// saveFirst records exceptions before the first message is sent.
func (r *run) saveFirst(ctx context.Context, es []Exception) error {
	stop, err := r.save(ctx, Progress{Exceptions: es})
	switch {
	case err != nil || stop == "":
		return err
	case stop == Held:
		return r.release(ctx, Progress{}, time.Second)
	}
	return r.end(ctx, Skipped, stop)
}

// screen calls the guard of the batch's kind, if there is a guard, and records the recipients
// that must not be sent to now.
func (r *run) screen(ctx context.Context) error {
	guard := r.Guards[r.batch.Subject.Kind]
	if guard == nil {
		return nil
	}
	ready, _ := r.batch.Plan(r.clock())
	if len(ready) == 0 {
		return nil
	}
	if err := r.loadContacts(ctx, ready); err != nil { // nothing was sent yet
		return r.release(ctx, Progress{}, time.Second/5)
	}
	screen, err := guard.Screen(ctx, r.batch)
	if err != nil { // nor yet
		return r.release(ctx, Progress{}, time.Second/5)
	}
	r.screening = screen
	var found []Exception
	for _, v := range screen.Check(ready, r.clock()) {
		found = append(found, r.apply(v))
	}
	if len(found) == 0 {
		return nil
	}
	r.batch.record(Progress{Exceptions: found})
	return r.saveFirst(ctx, found)
}

// apply turns a verdict into an exception. A recipient who would have to wait until after the
// deadline is skipped.
func (r *run) apply(v Screening) Exception {
	e := r.skip(v.UserID, v.Reason)
	if v.Until.After(r.clock()) && v.Until.Before(r.batch.WorthlessAfter) {
		e.Outcome, e.NextRetryAt = Failed, v.Until
	}
	return e
}

func (r *run) skip(id user.ID, reason string) Exception {
	e := r.batch.Exceptions[id]
	now := r.clock()
	e.UserID, e.Outcome, e.Reason, e.LastAt, e.NextRetryAt = id, Skipped, reason, now, time.Time{}
	if e.FirstAt.IsZero() {
		e.FirstAt = now
	}
	return e
}

// end gives all recipients without an outcome the same one.
func (r *run) end(ctx context.Context, rest Outcome, reason string) error {
	r.over = true
	var failed []Exception
	for _, id := range r.batch.Left {
		if e, ok := r.batch.Exceptions[id]; ok && e.Outcome == Failed {
			if rest == Skipped {
				e.Reason = reason // an expired one keeps its last error as the cause
			}
			e.Outcome, e.NextRetryAt, e.LastAt = rest, time.Time{}, r.clock()
			failed = append(failed, e)
		}
	}
	r.narrow.forget(r.batch.ID)
	_, err := r.save(ctx, Progress{Exceptions: failed, Rest: rest, RestReason: reason, Done: true})
	return err
}

// release gives the lease back and makes the batch ready again after wait.
func (r *run) release(ctx context.Context, p Progress, wait time.Duration) error {
	r.over = true
	wait = max(wait, 10*time.Millisecond)
	p.ReleaseUntil = r.clock().Add(wait)
	if p.ReleaseUntil.After(r.batch.WorthlessAfter) {
		p.ReleaseUntil = r.batch.WorthlessAfter
	}
	if _, err := r.save(ctx, p); err != nil {
		return err
	}
	r.reportMetrics(p)
	// If enqueueing fails, or the queue is lost, the sweep finds the batch overdue. During a
	// shutdown the task is enqueued too, to wake another worker.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	at := r.Now().Add(p.ReleaseUntil.Sub(r.clock()))
	return r.Queue.Enqueue(ctx, task.Run(r.batch.ID, r.batch.Channel.String(), int(p.ReleaseUntil.Unix()), at))
}

// deliver sends to the ready recipients, chunk by chunk, and makes a checkpoint after each chunk.
// Only this goroutine uses the batch; the provider's calls run concurrently.
func (r *run) deliver(ctx context.Context) error {
	ready, next := r.batch.Plan(r.clock())
	if len(ready) == 0 {
		return r.finish(ctx, Progress{}, next)
	}
	if err := r.loadContacts(ctx, ready); err != nil { // nothing was sent yet
		return r.release(ctx, Progress{}, time.Second/5)
	}
	calls, stop := r.start(ctx, ready, r.batch.Known)
	defer stop()
	keepAlive := time.NewTicker(min(r.LeaseFor/3, lookEvery))
	defer keepAlive.Stop()
	for {
		select {
		case first, more := <-calls.results:
			if !more {
				return r.complete(ctx, calls)
			}
			p := r.collect(first, calls)
			// In this order: a chunk is counted after its result can be read.
			if calls.exhausted() && len(calls.results) == 0 && calls.postponed() == 0 {
				// Nothing is in flight: the last checkpoint can end the batch too.
				r.batch.record(p)
				_, next := r.batch.Plan(r.clock())
				return r.finish(ctx, p, next)
			}
			if err := r.checkpoint(ctx, p, calls); err != nil {
				return err
			}
		case <-keepAlive.C:
			stop, err := r.extend(ctx)
			if errors.Is(err, ErrLeaseLost) {
				return err // after any other error the next checkpoint decides
			}
			r.applyStop(stop, calls)
		}
	}
}

func (r *run) checkpoint(ctx context.Context, p Progress, calls *calls) error {
	stop, err := r.save(ctx, p)
	if err != nil {
		return err
	}
	r.batch.record(p)
	r.reportMetrics(p)
	calls.releasePermits()
	r.applyStop(stop, calls)
	return nil
}

// applyStop keeps further calls from starting if there is a reason to stop.
func (r *run) applyStop(stop string, calls *calls) {
	switch stop {
	case "":
	case Held:
		calls.wait.Store(int64(time.Second))
		calls.cancel()
	default:
		r.batch.StopReason = stop
		calls.cancel()
	}
}

// save is a checkpoint that survives shutdown and a database that is away for a while.
func (r *run) save(ctx context.Context, p Progress) (stop string, err error) {
	p.Exceptions = append(p.Exceptions[:len(p.Exceptions):len(p.Exceptions)], r.unsaved...)
	err = untilRecorded(ctx, func(ctx context.Context) error {
		asked := r.uptime()
		if stop, err = r.lease.Checkpoint(ctx, p); err == nil {
			r.term.renewed(asked, r.LeaseFor/2)
		}
		return err
	})
	if err == nil {
		r.unsaved = nil
	}
	return stop, err
}

func (r *run) reportMetrics(p Progress) {
	if r.Observe != nil && len(p.Sent) > 0 {
		late := r.clock().Sub(r.batch.lateFrom(r.clock()))
		if r.batch.Subject.Kind == KindCampaign {
			late = -1
		}
		r.Observe(r.batch.Channel, len(p.Sent), late)
	}
}

// complete ends the batch, or releases it until its next attempt. No call may be in flight.
func (r *run) complete(ctx context.Context, calls *calls) error {
	now := r.clock()
	switch {
	case r.batch.StopReason != "":
		return r.end(ctx, Skipped, r.batch.StopReason)
	case !now.Before(r.batch.WorthlessAfter):
		return r.end(ctx, Expired, ReasonDeadline)
	case calls.postponed() > 0:
		return r.release(ctx, Progress{}, calls.postponed())
	case ctx.Err() != nil: // shutting down: another worker may continue at once
		return r.release(ctx, Progress{}, 0)
	}
	_, next := r.batch.Plan(now)
	return r.finish(ctx, Progress{}, next)
}

// finish records p and ends the batch, or releases it until next.
func (r *run) finish(ctx context.Context, p Progress, next time.Time) error {
	ready, _ := r.batch.Plan(r.clock())
	switch {
	case r.batch.Settled():
		p.Done, r.over = true, true
		r.narrow.forget(r.batch.ID)
		_, err := r.save(ctx, p)
		if err == nil {
			r.reportMetrics(p)
		}
		return err
	case len(ready) > 0: // due for a retry meanwhile
		return r.release(ctx, p, time.Second/5)
	}
	return r.release(ctx, p, next.Sub(r.clock()))
}
