package provider

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
)

// Send hands the messages to their providers, see [delivery.Sender]. A message that a
// provider has certainly not taken, because the provider could not be reached, failed
// by a rule of its own or asked to wait, goes to the next candidate at once. One whose
// outcome is unclear does not: it is tried again later like any other, and then with
// the same provider unless the circuit of that one has opened.
func (r *Router) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	t, done := r.use()
	defer done()
	if len(messages) == 0 {
		return nil
	}
	if !t.routed() {
		return r.environment.Send(ctx, messages)
	}
	s := &sending{Router: r, table: t, messages: messages, results: make([]delivery.Result, len(messages)),
		tried: make([][]int64, len(messages)), waits: map[int64]time.Duration{}, admitted: map[int64]bool{}}
	return s.all(ctx)
}

// A sending is one call of [Router.Send].
type sending struct {
	*Router
	table    *table
	messages []delivery.Message
	results  []delivery.Result
	// tried are the providers that have not taken the message of that place.
	tried [][]int64
	// waits are the providers that are not ready during this call. admitted are those
	// that the circuit breaker admitted and that no call was made to yet.
	waits    map[int64]time.Duration
	admitted map[int64]bool
}

// A part is what one provider is handed: places of messages.
type part struct {
	id     int64
	places []int
}

func (s *sending) all(ctx context.Context) []delivery.Result {
	left := make([]int, len(s.messages))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		parts := s.assign(ctx, left)
		left = left[:0]
		for _, p := range parts {
			left = append(left, s.hand(ctx, p)...)
		}
		slices.Sort(left)
	}
	for id := range s.admitted { // its messages went elsewhere
		s.circuits.Unused(context.WithoutCancel(ctx), s.channel, id)
	}
	return s.results
}

// assign chooses a provider for each message, and answers those for which none is ready.
func (s *sending) assign(ctx context.Context, left []int) (parts []*part) {
	first := s.messages[0].Subject
	seed, routes := seedOf(first), s.table.routes(first.Place().Shop)
	of := map[int64]*part{}
	for _, i := range left {
		m := s.messages[i]
		candidates := routes(s.country(m.To))
		if len(candidates) == 0 && s.environment != nil {
			candidates = []Provider{{Weight: 1}}
		}
		p, ok := Choose(candidates, mix(seed^uint64(m.To.ID)), func(id int64) bool {
			return !slices.Contains(s.tried[i], id) && s.ready(ctx, id)
		})
		if !ok {
			s.unassigned(i, candidates)
			continue
		}
		if of[p.ID] == nil {
			of[p.ID] = &part{id: p.ID}
			parts = append(parts, of[p.ID])
		}
		of[p.ID].places = append(of[p.ID].places, i)
	}
	return parts
}

// ready asks the circuit breaker of a provider at most once before each call.
func (s *sending) ready(ctx context.Context, id int64) bool {
	if s.admitted[id] {
		return true
	}
	if s.waits[id] > 0 {
		return false
	}
	if s.waits[id] = s.admit(ctx, s.table, id); s.waits[id] > 0 {
		return false
	}
	s.admitted[id] = true
	return true
}

// unassigned answers a message that no candidate can be handed now. The answer of the
// provider that was tried last remains, with the pause of the one that is ready first.
func (s *sending) unassigned(i int, candidates []Provider) {
	if len(candidates) == 0 {
		s.results[i] = delivery.Result{Status: delivery.Permanent, Skip: true, Reason: delivery.ReasonNoSender, Unsent: true, Judged: true,
			Detail: "no provider serves the recipient's country"}
		return
	}
	var wait time.Duration
	for _, p := range candidates {
		if w := s.waits[p.ID]; wait == 0 || w > 0 && w < wait {
			wait = w
		}
	}
	if r := &s.results[i]; len(s.tried[i]) > 0 {
		if r.Status == delivery.Throttled {
			r.After = min(r.After, wait)
		}
		return
	}
	s.results[i] = delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true, Judged: true, After: wait,
		Detail: "not sent: no provider of the channel is ready"}
}

// hand hands a part over in calls of the sender's size. It returns the places of those
// messages that another provider may be handed.
func (s *sending) hand(ctx context.Context, p *part) (left []int) {
	sender := s.environment
	if p.id != 0 {
		sender = s.table.senders[p.id]
	}
	whole := len(p.places) == len(s.messages) && len(p.places) <= sender.ChunkSize()
	for places := range slices.Chunk(p.places, max(1, sender.ChunkSize())) {
		if !s.ready(ctx, p.id) {
			left = append(left, places...)
			continue
		}
		delete(s.admitted, p.id)
		results := s.call(ctx, sender, p.id, places, whole)
		s.report(ctx, p.id, results)
		for k, i := range places {
			s.results[i] = results[k]
			s.results[i].Via, s.results[i].Judged = p.id, !refused(results)
			if movable(results[k]) && ctx.Err() == nil {
				s.tried[i] = append(s.tried[i], p.id)
				left = append(left, i)
			}
		}
	}
	return left
}

// call is one call of a provider. whole: the call has all messages, so that a panic or
// a refusal of all of them is the caller's to divide. Otherwise each is answered as not
// sent: those messages are tried again shortly, in calls of their own.
func (s *sending) call(ctx context.Context, sender delivery.Sender, id int64, places []int, whole bool) []delivery.Result {
	messages := make([]delivery.Message, len(places))
	for k, i := range places {
		messages[k] = s.messages[i]
		if j, ok := messages[k].Journal.(delivery.RoutedJournal); ok && id != 0 {
			messages[k].Journal = j.Through(id)
		}
	}
	if whole {
		answered := false
		defer func() {
			if !answered { // it panicked
				s.circuits.Unused(context.WithoutCancel(ctx), s.channel, id)
			}
		}()
		results := sender.Send(ctx, messages)
		answered = true
		return results
	}
	results := isolated(ctx, sender, messages)
	if refused(results) {
		again := delivery.Result{Status: delivery.Throttled, Apart: true, After: time.Second, Detail: results[0].Detail}
		return delivery.Repeat(again, len(results))
	}
	return results
}

// isolated sends the messages. A message over which the sender panics is found by
// halves, since nothing of such a call was taken.
func isolated(ctx context.Context, sender delivery.Sender, messages []delivery.Message) []delivery.Result {
	results := delivery.Attempt(ctx, sender, messages)
	if !refused(results) || results[0].Crash == nil {
		return results
	}
	middle := len(messages) / 2
	return append(isolated(ctx, sender, messages[:middle]), isolated(ctx, sender, messages[middle:])...)
}

// refused reports whether a call was refused as a whole, which shows neither that the
// provider works nor that it fails.
func refused(results []delivery.Result) bool {
	return len(results) > 1 && !slices.ContainsFunc(results, func(r delivery.Result) bool { return r.Status != delivery.Permanent || !r.Whole })
}

// report tells the circuit breaker of the provider how a call went. One that the end of
// ctx cut off says nothing about the provider.
func (s *sending) report(ctx context.Context, id int64, results []delivery.Result) {
	tell := context.WithoutCancel(ctx)
	given, _ := delivery.Handed(results)
	if ctx.Err() != nil || refused(results) || len(given) == 0 {
		s.circuits.Unused(tell, s.channel, id)
		return
	}
	call := delivery.CallOf(given)
	if end, ok := ctx.Deadline(); ok {
		// A pause that outlasts the messages that wait for it is of no use.
		call.After = min(call.After, max(0, end.Sub(s.now())/2))
	}
	s.circuits.Report(tell, s.channel, id, call)
	if call.Throttled || !call.OK {
		s.waits[id] = max(call.After, time.Millisecond) // not again during this call
	}
}

// movable reports whether another provider may be handed the message: this one has
// certainly not taken it, and the recipient is not the reason.
func movable(r delivery.Result) bool {
	switch {
	case r.Status == delivery.Permanent && r.Reason == delivery.ReasonNoTemplate:
		return true
	case !r.Unsent || r.Apart:
		return false
	}
	return r.Status == delivery.Transient || r.Status == delivery.Throttled || r.Status == delivery.Permanent && r.Provider
}
