package delivery

import (
	"context"
	"slices"
	"sync"
)

// suspicious is the least number of messages in a refused call for which the provider itself is
// suspected, and not single messages.
const suspicious = 8

// refusedWhole returns how many messages were refused because their call was refused as a whole;
// 0 if the provider took any message of the call. The sender may have refused other messages of
// the call individually, without handing them over.
func refusedWhole(results []Result) (n int) {
	for _, r := range results {
		if r.Status != Permanent {
			return 0
		}
		if r.Whole {
			n++
		}
	}
	return n
}

// divide removes the messages that were refused individually from a refused chunk, and returns
// them.
func (c *chunkResult) divide() (own chunkResult) {
	var all chunkResult
	for n, r := range c.results {
		to := &own
		if r.Whole {
			to = &all
		}
		to.messages, to.results = append(to.messages, c.messages[n]), append(to.results, r)
	}
	c.messages, c.results = all.messages, all.results
	return own
}

// An isolation searches for the messages because of which a call was refused as a whole. Every
// further call needs admission like any other call, and holds a permit until its results are
// recorded.
type isolation struct {
	*sending
	calls *calls
	// rest is recorded together with the next results.
	rest chunkResult
	// turn says that the next call has its permit already.
	turn bool
}

// A refused part is a subset of a chunk's messages and the answer to all of them.
type refused struct {
	messages []Message
	answer   Result
}

// isolate sends the messages of a chunk whose call was refused as a whole again, in halves, until
// each refused message is alone in its call. These messages become dead; the others are sent. k
// refused messages among n take at most 2·k·log n further calls.
//
// A provider that refuses every call, for example because its address is wrong, is detected after
// five more calls: both halves are refused, and three single messages as well. Then no message is
// at fault: all messages are tried again later, and the call counts as a failure of the provider.
//
// isolate returns false if the run is stopped or postponed meanwhile. The next run sends to the
// recipients who have no result by then.
func (s *sending) isolate(ctx context.Context, c *calls, chunk chunkResult) bool {
	i := &isolation{sending: s, calls: c, rest: chunk, turn: true}
	own := chunk.divide()
	i.rest.messages, i.rest.results = nil, nil
	i.unjudged(ctx)
	if len(own.messages) > 0 && !i.settle(ctx, own.messages, own.results) {
		return false
	}
	parts, ok := i.halve(ctx, chunk.messages)
	if ok && len(parts) == 2 && len(chunk.messages) >= suspicious {
		parts, ok = i.probe(ctx, parts)
	}
	for len(parts) > 0 && ok {
		last := parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		if len(last.messages) == 1 {
			ok = i.settle(ctx, last.messages, []Result{last.answer})
			continue
		}
		var more []refused
		more, ok = i.halve(ctx, last.messages)
		parts = append(parts, more...)
	}
	if i.turn { // stopped: the chunk's other results
		c.results <- i.rest
	}
	if !ok && c.postponed() > 0 {
		s.narrow.to(s.batch.ID, max(1, len(chunk.messages)/2))
	}
	return ok
}

// maxNarrowed bounds the number of batches in a chunkLimit.
const maxNarrowed = 1000

// chunkLimit keeps a smaller chunk size for batches that were released because an isolation had
// to wait for admission. Their next calls are smaller, so that every run gets further than the
// run before.
type chunkLimit struct {
	mu    sync.Mutex
	sizes map[int64]int
}

func (n *chunkLimit) to(batch int64, size int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sizes == nil || len(n.sizes) >= maxNarrowed {
		n.sizes = map[int64]int{}
	}
	n.sizes[batch] = size
}

// of returns the greatest number of messages in a call of the batch, at most size.
func (n *chunkLimit) of(batch int64, size int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if narrowed := n.sizes[batch]; narrowed > 0 {
		size = min(size, narrowed)
	}
	return size
}

func (n *chunkLimit) forget(batch int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.sizes, batch)
}

// halve sends both halves of messages and returns the refused halves.
func (i *isolation) halve(ctx context.Context, messages []Message) (parts []refused, ok bool) {
	middle := len(messages) / 2
	for _, half := range [][]Message{messages[:middle], messages[middle:]} {
		refusal, ok := i.try(ctx, half)
		if !ok {
			return nil, false
		}
		if refusal != nil {
			parts = append(parts, *refusal)
		}
	}
	return parts, true
}

// try sends part in one call. If the call is refused as a whole, try returns the messages that
// were sent in it and the answer; otherwise try records the results.
func (i *isolation) try(ctx context.Context, part []Message) (refusal *refused, ok bool) {
	if !i.admit(ctx, part) {
		return nil, false
	}
	if part, ok = i.stillWanted(ctx, part); !ok || len(part) == 0 {
		return nil, ok
	}
	results := i.call(ctx, part)
	if refusedWhole(results) > 0 {
		i.unjudged(ctx)
		return &refused{part, results[slices.IndexFunc(results, func(r Result) bool { return r.Whole })]}, true
	}
	i.report(ctx, results)
	return nil, i.settle(ctx, part, results)
}

// probe decides whether the provider refuses every message. It sends three single messages of two
// refused halves. They are drawn at random, so that equal chunks are not judged by the same three
// messages each time. It returns the parts that still have to be divided.
func (i *isolation) probe(ctx context.Context, halves []refused) (parts []refused, ok bool) {
	all := append(halves[0].messages[:len(halves[0].messages):len(halves[0].messages)], halves[1].messages...)
	third := len(all) / 3
	var last Result
	for n := range 3 {
		at := n*third + int(i.random()*float64(third))
		refusal, ok := i.try(ctx, all[at:at+1])
		if !ok {
			return nil, false
		}
		if refusal == nil { // sent: the provider takes messages; or the recipient has opted out
			return without(halves, all[at]), true
		}
		last = refusal.answer
	}
	return nil, i.blameProvider(ctx, all, last)
}

// without returns the parts without the message, which is in one of them.
func without(parts []refused, m Message) []refused {
	for n, p := range parts {
		for at := range p.messages {
			if p.messages[at].To == m.To {
				rest := append(p.messages[:at:at], p.messages[at+1:]...)
				parts[n].messages = rest
				return parts
			}
		}
	}
	return parts
}

// blameProvider settles all messages with an answer about the provider, for a provider that
// refuses every message. In a campaign the text of staff may be the reason: then the channel
// continues for other batches.
func (i *isolation) blameProvider(ctx context.Context, messages []Message, answer Result) bool {
	answer = Result{Detail: DetailOf("every message is refused, so none is at fault; check the configuration: " + answer.Detail),
		Apart: i.batch.Subject.Kind == KindCampaign, Via: answer.Via}
	results := Repeat(answer, len(messages))
	i.report(ctx, results)
	return i.settle(ctx, messages, results)
}

// settle passes results on to be recorded, which uses the permit.
func (i *isolation) settle(ctx context.Context, messages []Message, results []Result) bool {
	if !i.takeTurn(ctx) {
		return false
	}
	i.rest.messages, i.rest.results = messages, results
	i.calls.results <- i.rest
	i.rest, i.turn = chunkResult{}, false
	return true
}

// admit waits for a permit and for the admission of one more call.
func (i *isolation) admit(ctx context.Context, part []Message) bool {
	if !i.takeTurn(ctx) || ctx.Err() != nil || i.calls.postponed() > 0 {
		return false
	}
	return i.admitted(ctx, i.calls, i.load(len(part)))
}

func (i *isolation) takeTurn(ctx context.Context) bool {
	if !i.turn {
		i.calls.unstarted.Add(1) // no checkpoint waits for it
		i.turn = i.calls.awaitPermit(ctx)
		i.calls.unstarted.Add(-1)
	}
	return i.turn
}

// unjudged reports a call that shows neither that the provider works nor that it fails. The call
// has used the rate nevertheless.
func (i *isolation) unjudged(ctx context.Context) {
	i.admission.Unused(context.WithoutCancel(ctx), i.load(0))
}

// stillWanted returns the messages of an admitted part whose recipients have not opted out and
// are not suppressed meanwhile. The refusals are recorded with the next results. ok is false if
// the call may not begin. If it may not, or no message is left, the admission is given back.
func (i *isolation) stillWanted(ctx context.Context, part []Message) (left []Message, ok bool) {
	load := i.load(len(part))
	asked := chunkResult{messages: slices.Clone(part)}
	ok = i.keepBack(ctx, i.calls, &asked) && (len(asked.messages) == 0 || i.lasts(ctx, i.calls))
	i.rest.verdicts = append(i.rest.verdicts, asked.verdicts...)
	if !ok || len(asked.messages) == 0 {
		i.admission.Unused(context.WithoutCancel(ctx), load)
	}
	return asked.messages, ok
}
