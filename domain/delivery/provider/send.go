package provider

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
)

// Send hands the messages to their providers, see [delivery.Sender]. A message that a
// provider has certainly not taken goes to the next candidate at once: the provider
// could not be reached, failed by a rule of its own or asked to wait. A message with
// an unclear outcome is tried again later like any other message, with the same
// provider unless the circuit of that provider has opened.
func (r *Router) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	t, done := r.current.Use()
	defer done()
	if len(messages) == 0 {
		return nil
	}
	if !t.routed() && r.environment != nil {
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
	// waits holds the providers that are not ready during this call. admitted holds
	// the providers that the circuit breaker admitted and that were not called yet.
	waits    map[int64]time.Duration
	admitted map[int64]bool
}

// A part is the messages handed to one provider, as indexes.
type part struct {
	id     int64
	places []int
}

func (s *sending) all(ctx context.Context) []delivery.Result {
	left := make([]int, len(s.messages))
	for i := range left {
		left[i] = i
	}
	defer func() { // its messages went elsewhere, or a sender panicked
		for id := range s.admitted {
			s.circuits.Unused(context.WithoutCancel(ctx), s.channel, id)
		}
	}()
	for len(left) > 0 {
		parts := s.assign(ctx, left)
		left = left[:0]
		for _, p := range parts {
			left = append(left, s.hand(ctx, p)...)
		}
		slices.Sort(left)
	}
	return s.results
}

// assign chooses a provider for each message, and answers messages for which no provider
// is ready.
func (s *sending) assign(ctx context.Context, left []int) (parts []*part) {
	first := s.messages[0].Subject
	seed, routes := seedOf(first), s.table.routes(first.Place().Shop)
	of := map[int64]*part{}
	for _, i := range left {
		m := s.messages[i]
		candidates := routes(s.country(m.To))
		if len(candidates) == 0 && s.environment != nil {
			candidates = []Provider{{Spec: Spec{Weight: 1}}}
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
// provider that was tried last is kept, with the shortest pause of the candidates. If
// that answer would end the message while a candidate was not asked yet, the message
// waits instead.
func (s *sending) unassigned(i int, candidates []Provider) {
	if len(candidates) == 0 {
		detail := "no provider serves the recipient's country"
		if !s.table.routed() {
			detail = "no provider of the channel is enabled"
		}
		s.results[i] = delivery.Result{Status: delivery.Permanent, Skip: true, Reason: delivery.ReasonNoSender, Unsent: true, Judged: true, Detail: detail}
		return
	}
	r := &s.results[i]
	ended := len(s.tried[i]) > 0 && r.Status == delivery.Permanent
	var wait time.Duration
	for _, p := range candidates {
		if ended && slices.Contains(s.tried[i], p.ID) {
			continue
		}
		if w := s.waits[p.ID]; wait == 0 || w > 0 && w < wait {
			wait = w
		}
	}
	if len(s.tried[i]) > 0 && (!ended || wait == 0) {
		if r.Status == delivery.Throttled {
			r.After = min(r.After, wait)
		}
		return
	}
	s.results[i] = delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true, Judged: true, After: wait,
		Detail: "not sent: no provider of the channel is ready"}
}

// hand hands a part over in calls of the sender's size. It returns the indexes of the
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
		// A call that the caller is to divide goes back to it whole.
		divisible := whole && refused(results) && !slices.ContainsFunc(results, movable)
		if !divisible {
			results = apart(results)
		}
		for k, i := range places {
			s.results[i] = results[k]
			s.results[i].Via, s.results[i].Judged = p.id, !divisible
			if movable(results[k]) && ctx.Err() == nil {
				s.tried[i] = append(s.tried[i], p.id)
				left = append(left, i)
			}
		}
	}
	return left
}

// call makes one call of a provider. whole says that the call has all messages: after
// a panic the caller divides them.
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
	return isolated(ctx, sender, messages)
}

// isolated sends the messages. After a panic of the sender nothing of the call was
// taken, so the messages are halved until the message that causes the panic is
// alone.
func isolated(ctx context.Context, sender delivery.Sender, messages []delivery.Message) []delivery.Result {
	results := delivery.Attempt(ctx, sender, messages)
	if !results[0].Whole || results[0].Crash == nil {
		return results
	}
	if len(results) == 1 {
		results[0].Whole = false // it stands alone
		return results
	}
	middle := len(messages) / 2
	return append(isolated(ctx, sender, messages[:middle]), isolated(ctx, sender, messages[middle:])...)
}

// refused reports whether a call was refused as a whole, which shows neither that the
// provider works nor that it fails. The sender may also have refused some of the
// messages individually.
func refused(results []delivery.Result) bool {
	return slices.ContainsFunc(results, isWhole) && !slices.ContainsFunc(results, func(r delivery.Result) bool { return r.Status != delivery.Permanent })
}

func isWhole(r delivery.Result) bool { return r.Whole }

// apart answers the messages of a refused call that no caller can divide. Messages that
// were refused together are tried again shortly, in separate calls. The answer to a
// single message is kept.
func apart(results []delivery.Result) []delivery.Result {
	if !refused(results) || len(results) == 1 {
		return results
	}
	results = slices.Clone(results)
	for i, r := range results {
		if r.Whole {
			results[i] = delivery.Result{Status: delivery.Throttled, Apart: true, After: time.Second, Unsent: true, Detail: r.Detail}
		}
	}
	return results
}

// report reports the result of a call to the circuit breaker of the provider. A call
// that was cut off by the end of ctx says nothing about the provider.
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

// movable reports whether another provider may be handed the message: this provider
// has certainly not taken it, and the recipient is not the reason.
func movable(r delivery.Result) bool {
	switch {
	case r.Status == delivery.Permanent && r.Reason == delivery.ReasonNoTemplate:
		return true
	case !r.Unsent || r.Apart:
		return false
	}
	return r.Status == delivery.Transient || r.Status == delivery.Throttled || r.Status == delivery.Permanent && r.Provider
}
