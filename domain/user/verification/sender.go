package verification

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/pause"
	"dropbell/domain/user"
)

// A Taken is a request that one worker has leased.
type Taken struct {
	Request
	Token  string
	Locale string
	// Shop is the name of the only shop; empty if there are several.
	Shop string
	// Tries counts this one.
	Tries int
	// Now is the database's time.
	Now time.Time
}

// A SendStore gives requests to workers.
type SendStore interface {
	// Take leases a request that waits, or whose worker has been silent, otherwise
	// it returns [delivery.ErrNoWork]. It takes nothing while the channel is
	// paused.
	Take(ctx context.Context, id int64, lasting time.Duration) (Taken, error)
	// Arm stores the hash of the code that is about to be sent, in place of the
	// previous hash, and makes it valid for [CodeFor]. It returns [delivery.ErrNoWork]
	// if another worker has taken the request.
	Arm(ctx context.Context, t Taken, hash []byte) error
	// End records that the message was sent (reason = ""), or why it was not sent. If
	// again is positive, the request waits for that time instead.
	End(ctx context.Context, t Taken, reason string, again time.Duration) error
	// Due returns requests that are to be sent and have no result of a task, and gives
	// up requests that are too old.
	Due(ctx context.Context, limit int) ([]int64, error)
}

// How workers send codes.
const (
	// SendWithin is how long after its request a message may be sent.
	SendWithin = 5 * time.Minute
	// MaxTries is how often it is tried, unless no provider is ready for it.
	MaxTries = 4

	sendTimeout = 20 * time.Second
	recordFor   = 5 * time.Second
	sendLease   = sendTimeout + 2*recordFor
	atOnce      = 20
	// patience is how long a worker waits for the channel's rate limit with one
	// message; the worker does nothing else meanwhile.
	patience = 2 * time.Second
)

// A Sender sends codes in the workers, through the sender of all text messages.
type Sender struct {
	Store SendStore
	Keys  Keys
	SMS   delivery.Sender // nil = none is configured
	// Admission is the admission of all text messages; nil = everything is admitted.
	Admission delivery.Admission
}

// Run sends the message unless another worker does. A code is made when it is sent, and
// its hash is stored before: a worker that takes the request over from a dead worker sends
// a new code, which is then the valid code. While the channel is not ready Run takes
// nothing, and the sweep tries again.
func (s *Sender) Run(ctx context.Context, id int64) error {
	load := delivery.Load{Channel: delivery.SMS, Messages: 1, Kind: delivery.KindVerification, Owner: id}
	if !s.admitted(ctx, load) {
		return nil
	}
	asked := false // a provider
	defer func() {
		if s.Admission != nil && !asked {
			s.Admission.Unused(context.WithoutCancel(ctx), load)
		}
	}()
	t, err := s.Store.Take(ctx, id, sendLease)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	result, err := s.send(ctx, t)
	if fault.KindOf(err) == fault.NotFound {
		return nil // another worker has it
	}
	if err != nil {
		return err
	}
	asked = s.report(ctx, result)
	reason, again := outcome(t, result)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordFor)
	defer cancel()
	return s.Store.End(ctx, t, reason, again)
}

// admitted waits a moment for the rate, and reports whether the message may go out now.
func (s *Sender) admitted(ctx context.Context, load delivery.Load) bool {
	if s.Admission == nil {
		return true
	}
	for left := patience; ; {
		wait, _ := s.Admission.Admit(ctx, load)
		if wait <= 0 {
			return true
		}
		if left -= max(wait, patience/100); left < 0 {
			return false
		}
		if !pause.For(ctx, wait) {
			return false
		}
	}
}

// report reports the result to the circuit breaker, if a provider was asked and the call
// was not cut off by the end of the worker.
func (s *Sender) report(ctx context.Context, result delivery.Result) (asked bool) {
	handed, _ := delivery.Handed([]delivery.Result{result})
	if s.Admission == nil || s.SMS == nil || len(handed) == 0 || ctx.Err() != nil {
		return false
	}
	call := delivery.CallOf(handed)
	call.After = min(call.After, SendWithin/2) // a longer pause is of no use to any code
	s.Admission.Report(ctx, delivery.SMS, call)
	return true
}

// outcome returns why the message was not sent, and how long to wait before the next
// attempt, if there is another attempt.
func outcome(t Taken, r delivery.Result) (reason string, again time.Duration) {
	switch {
	case r.Status == delivery.Delivered:
		return "", 0
	case r.Reason != "":
		reason = r.Reason
	case r.Status == delivery.Throttled:
		reason = delivery.ReasonThrottled
	case r.Status == delivery.Permanent:
		reason = delivery.ReasonRefused
	default:
		reason = delivery.ReasonProvider
	}
	waiting := r.Status == delivery.Throttled && r.Unsent // no provider was ready; [SendWithin] ends it
	if r.Status == delivery.Permanent || t.Tries >= MaxTries && !waiting {
		return reason, 0
	}
	return reason, max(r.After, time.Duration(min(t.Tries, MaxTries))*5*time.Second)
}

func (s *Sender) send(ctx context.Context, t Taken) (delivery.Result, error) {
	if s.SMS == nil || !s.Keys.Enabled() {
		return delivery.Result{Status: delivery.Permanent, Reason: delivery.ReasonNoSender}, nil
	}
	code, err := newCode()
	if err != nil {
		return delivery.Result{}, err
	}
	if err := s.Store.Arm(ctx, t, s.Keys.Hash(t.Request, code)); err != nil {
		return delivery.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return delivery.Attempt(ctx, s.SMS, []delivery.Message{messageOf(t, code)})[0], nil
}

// messageOf returns the message with the code. Its text is built in, since a number
// belongs to no shop and no drop.
func messageOf(t Taken, code string) delivery.Message {
	facts := message.Facts{Kind: message.Verification, Shop: t.Shop, Code: code, Minutes: int(CodeFor / time.Minute)}
	var texts *message.Book
	text := texts.Compiled(message.Verification, message.SMS, t.Locale)
	content := text.Bind(facts, "", nil, false).Content("", "")
	return delivery.Message{
		To:      &user.User{ID: t.User, Phone: t.Phone, Locale: t.Locale},
		Channel: delivery.SMS,
		// Each try has a code of its own, so providers must not take it for a repetition.
		Subject: &delivery.Subject{Kind: delivery.KindVerification, OwnerID: t.ID, DueAt: t.Now, ShopName: t.Shop},
		Content: &content,
		Values:  func() map[string]string { return facts.Values(text.Language, "", nil, "", "") },
	}
}

// Sweep sends requests that no task has sent.
func (s *Sender) Sweep(ctx context.Context) error {
	ids, err := s.Store.Due(ctx, atOnce)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.Run(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
