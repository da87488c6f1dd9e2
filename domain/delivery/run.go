package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/message"
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
	r.sending.permits = s.permits(c)
	return r.all(ctx)
}

// permits returns the permits for the calls of one large batch, or of several small batches.
func (s *Service) permits(c Channel) permits { return newPermits(max(1, s.Parallel[c])) }

// all processes the leased batch.
func (r *run) all(ctx context.Context) error {
	if err := r.loadTexts(ctx); err != nil || r.ending.over {
		return err
	}
	if err := r.resume(ctx); err != nil || r.ending.over {
		return err
	}
	if err := r.settleWithoutSending(ctx); err != nil || r.ending.over {
		return err
	}
	if err := r.screen(ctx); err != nil || r.ending.over {
		return err
	}
	return r.deliver(ctx)
}

// A run is one lease of one batch, from the lease to the end or release of the batch.
type run struct {
	leasedBatch
	service   *Service
	recording recording
	sending   sending
	ending    ending
}

// newRun computes the difference between the database's clock and this machine's from the instant
// of the lease request: asked by the service's clock, begun by [Service.Uptime]. If the database
// was slow, the run's clock is ahead of the true time, so the run gives up too early rather than
// sending too late.
func (s *Service) newRun(lease Lease, asked time.Time, begun time.Duration) *run {
	b := lease.Batch()
	b.holdOut()
	if s.DropPage != nil && b.Channel == Email {
		b.Subject.OwnPage(s.DropPage)
	}
	b.Subject.ResultPage(s.DrawPage)
	b.Subject.Track = s.track(b)
	if s.Reference != nil {
		b.Subject.Reference = func(id user.ID) string { return s.Reference(b.ID, id) }
	}
	r := &run{service: s}
	r.leasedBatch = leasedBatch{lease: lease, batch: b, now: s.Now, drift: b.Now.Sub(asked), lasting: s.LeaseFor, uptime: s.uptime, begun: begun}
	r.term.renewed(begun, s.LeaseFor)
	r.recording = recording{leasedBatch: &r.leasedBatch, policy: s.Policy, random: s.Random}
	r.ending = ending{leasedBatch: &r.leasedBatch, queue: s.Queue, narrow: &s.narrow, observe: s.Observe}
	r.sending.sender, r.sending.narrow, r.sending.random = s.senderOf(b), &s.narrow, s.Random
	r.sending.crashes.channel, r.sending.crashes.crashed = b.Channel, s.Crashed
	r.sending.composer = composer{batch: b, journal: leaseJournal{lease: lease}, verifiedOnly: s.VerifiedOnly, optOutURL: s.OptOutURL, crashes: &r.sending.crashes}
	r.sending.leasedBatch, r.sending.admission = &r.leasedBatch, s.Admission
	// The lease has just read the refusals, whenever it was requested.
	r.sending.refusals.store, r.sending.refusals.at = s.Store, r.clock()
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
func (s *Service) track(b *Batch) func(user.ID, int, string) string {
	switch {
	case s.LinkURL != nil && b.Subject.Kind == KindCampaign:
		return func(id user.ID, variant int, target string) string { return s.LinkURL(b.Owner, id, variant, target) }
	case s.DropLinkURL != nil && b.Channel.Tracks() && (b.Subject.Kind == KindReminder || b.Subject.Kind == KindCorrection):
		return func(id user.ID, _ int, _ string) string { return s.DropLinkURL(&b.Subject, b.Channel, id) }
	}
	return nil
}

// loadTexts reads the texts of the batch as of the instant when the batch was cut, however often
// it is tried. Messages of the app need no texts: they are made when they are read.
func (r *run) loadTexts(ctx context.Context) (err error) {
	var book *message.Book
	if r.service.Texts != nil && r.batch.Channel != App {
		if book, err = r.service.Texts.Book(ctx, r.batch.Subject.Place(), r.batch.Subject.TextsUpTo); err != nil { // nothing was sent yet
			return r.ending.release(ctx, Progress{}, time.Second/5)
		}
	}
	r.sending.composer.render = NewRenderer(book, r.batch.Subject.At(r.batch.Now), r.batch.Channel)
	return nil
}

// Place returns the shop and drop whose texts the message uses.
func (s Subject) Place() message.Place {
	shop, _ := strconv.ParseInt(s.ShopNumber, 10, 64) // "" = a campaign of no shop
	return message.Place{Shop: shop, Template: s.TemplateID}
}

// settleWithoutSending ends the batch if nothing may be sent any more, and skips recipients who
// have opted out of the channel.
func (r *run) settleWithoutSending(ctx context.Context) error {
	switch {
	case r.batch.StopReason != "":
		return r.ending.end(ctx, Skipped, r.batch.StopReason)
	case !r.clock().Before(r.batch.WorthlessAfter):
		return r.ending.end(ctx, Expired, ReasonDeadline)
	case r.sending.sender == nil:
		return r.ending.end(ctx, Skipped, ReasonNoSender)
	}
	var skips []Exception
	for _, id := range r.batch.Left {
		e, tried := r.batch.Exceptions[id]
		if r.batch.OptedOut[id] && !(tried && e.Outcome.Final()) {
			skips = append(skips, r.recording.skip(id, ReasonOptedOut))
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
	return r.ending.saveFirst(ctx, skips)
}

// screen calls the guard of the batch's kind, if there is a guard, and records the recipients
// that must not be sent to now.
func (r *run) screen(ctx context.Context) error {
	guard := r.service.Guards[r.batch.Subject.Kind]
	if guard == nil {
		return nil
	}
	ready, _ := r.batch.Plan(r.clock())
	if len(ready) == 0 {
		return nil
	}
	if err := r.loadContacts(ctx, ready); err != nil { // nothing was sent yet
		return r.ending.release(ctx, Progress{}, time.Second/5)
	}
	screen, err := guard.Screen(ctx, r.batch)
	if err != nil { // nor yet
		return r.ending.release(ctx, Progress{}, time.Second/5)
	}
	r.sending.screening = screen
	var found []Exception
	for _, v := range screen.Check(ready, r.clock()) {
		found = append(found, r.recording.screened(v))
	}
	if len(found) == 0 {
		return nil
	}
	r.batch.record(Progress{Exceptions: found})
	return r.ending.saveFirst(ctx, found)
}

// deliver sends to the ready recipients, chunk by chunk, and makes a checkpoint after each chunk.
// Only this goroutine uses the batch; the provider's calls run concurrently.
func (r *run) deliver(ctx context.Context) error {
	ready, next := r.batch.Plan(r.clock())
	if len(ready) == 0 {
		return r.ending.finish(ctx, Progress{}, next)
	}
	if err := r.loadContacts(ctx, ready); err != nil { // nothing was sent yet
		return r.ending.release(ctx, Progress{}, time.Second/5)
	}
	calls, stop := r.sending.start(ctx, ready)
	defer stop()
	keepAlive := time.NewTicker(min(r.lasting/3, lookEvery))
	defer keepAlive.Stop()
	for {
		select {
		case first, more := <-calls.results:
			if !more {
				return r.ending.complete(ctx, calls)
			}
			p := r.recording.collect(first, calls)
			// In this order: a chunk is counted after its result can be read.
			if calls.exhausted() && len(calls.results) == 0 && calls.postponed() == 0 {
				// Nothing is in flight: the last checkpoint can end the batch too.
				r.batch.record(p)
				_, next := r.batch.Plan(r.clock())
				return r.ending.finish(ctx, p, next)
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
	r.ending.reportMetrics(p)
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
	r.ending.reportMetrics(p)
	if stop == Held {
		return r.ending.release(ctx, Progress{}, time.Second)
	}
	r.batch.StopReason = stop
	return nil
}

// loadContacts reads, once per run, the addresses of the recipients.
func (r *run) loadContacts(ctx context.Context, ready []user.ID) (err error) {
	if r.batch.Channel == App || within(ready, r.batch.Asked) {
		return nil // in the app messages need no more than the id
	}
	// Mails greet by name; elsewhere only a text that staff wrote may contain names.
	named := r.batch.Channel == Email || r.sending.composer.render.names || r.service.Named != nil && r.service.Named(r.batch.Channel)
	if r.batch.Known, err = r.service.Store.Recipients(ctx, r.batch.Channel, ready, named); err != nil {
		return err
	}
	if err = r.loadConsents(ctx, ready); err == nil {
		r.batch.Asked = ready
	}
	return err
}

// loadConsents reads which recipients have consented to the message, if a recipient has a device
// that demands consent. The devices must have been read before.
func (r *run) loadConsents(ctx context.Context, ready []user.ID) (err error) {
	if !r.batch.consentable() || !slices.ContainsFunc(r.batch.Known, user.User.OneTime) {
		return nil
	}
	r.batch.Consents, err = r.service.Store.Consents(ctx, r.batch, ready)
	return err
}

// recovered runs the batch and returns a panic as an error. After a panic the lease is left to
// expire.
func (r *run) recovered(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c := crashed(p).Crash
			r.sending.crashes.report(c)
			err = fmt.Errorf("delivery: batch %d: %s", r.batch.ID, c.What)
		}
	}()
	return r.all(ctx)
}

// small reports whether one call reaches all recipients.
func (r *run) small() bool {
	return r.sending.sender != nil && len(r.batch.Left) <= r.sending.chunkSize()
}
