package delivery

import (
	"context"
	"slices"
	"sync"
)

// suspicious is how many messages a refused call has at least for the provider,
// and not single messages, to be suspected.
const suspicious = 8

// refusedWhole returns how many messages were refused because their call was, as a
// whole; 0 if the provider took any message of the call. The sender may have refused
// others each for itself, without handing them over.
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

// divide takes those messages out of a refused chunk that were refused each for itself.
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

// An isolation looks for the messages because of which a call was refused as a
// whole. Every further call is admitted like any other, and holds a turn until
// its results are recorded.
type isolation struct {
	*run
	calls *calls
	// rest is recorded together with the next results.
	rest chunkResult
	// turn: the next call has its permit already.
	turn bool
}

// A refused part is some of a chunk's messages and the answer to all of them.
type refused struct {
	messages []Message
	answer   Result
}

// isolate sends a chunk again whose call was refused as a whole, in halves, until
// each message that is refused stands alone: those become dead and the others are
// sent. k such messages among n take at most 2·k·log n further calls.
//
// A provider that refuses every call, for example because its address is wrong,
// is found out after five more calls: both halves are refused, and three single
// messages as well. Then no message is to blame, all are tried again later, and
// the provider has failed. isolate returns false if the run is stopped or
// postponed meanwhile; the next run sends to those who have no result by then.
func (r *run) isolate(ctx context.Context, c *calls, chunk chunkResult) bool {
	i := &isolation{run: r, calls: c, rest: chunk, turn: true}
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
		r.narrow.to(r.batch.ID, max(1, len(chunk.messages)/2))
	}
	return ok
}

// maxNarrowed bounds for how many batches a smaller call is remembered.
const maxNarrowed = 1000

// chunkLimit remembers the batches in which looking for a refused message had to wait
// for its admission until the batch was given back. Their next calls are smaller,
// so that every run gets further than the one before.
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

// of returns the most messages of a call of the batch, at most size.
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

// halve sends both halves of messages and returns those that were refused.
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

// try sends a part. It returns what was sent of it and the answer if that is refused as a
// whole, and records the results otherwise.
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

// probe decides whether it is the provider that refuses everything: it sends three
// single messages of two refused halves, drawn at random, so that equal chunks
// are not judged by the same three each time. It returns what is still to be looked at.
func (i *isolation) probe(ctx context.Context, halves []refused) (parts []refused, ok bool) {
	all := append(halves[0].messages[:len(halves[0].messages):len(halves[0].messages)], halves[1].messages...)
	third := len(all) / 3
	var last Result
	for n := range 3 {
		at := n*third + int(i.Random()*float64(third))
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

// blameProvider is the answer when every message is refused. The text of a
// campaign is staff's and may itself be the reason: then the channel continues
// for other batches.
func (i *isolation) blameProvider(ctx context.Context, messages []Message, answer Result) bool {
	answer = Result{Detail: DetailOf("every message is refused, so none is at fault; check the configuration: " + answer.Detail),
		Apart: i.batch.Subject.Kind == KindCampaign, Via: answer.Via}
	results := Repeat(answer, len(messages))
	i.report(ctx, results)
	return i.settle(ctx, messages, results)
}

// settle hands results over to be recorded, which takes the turn.
func (i *isolation) settle(ctx context.Context, messages []Message, results []Result) bool {
	if !i.takeTurn(ctx) {
		return false
	}
	i.rest.messages, i.rest.results = messages, results
	i.calls.results <- i.rest
	i.rest, i.turn = chunkResult{}, false
	return true
}

// admit waits for a turn and the admission of one more call.
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

// unjudged reports a call that shows neither that the provider works nor that it
// fails. It has used the rate all the same.
func (i *isolation) unjudged(ctx context.Context) {
	i.Admission.Unused(context.WithoutCancel(ctx), i.load(0))
}

// stillWanted returns the messages of an admitted part whose recipients have not refused
// them meanwhile; the refusals are recorded with the next results. It returns false if the
// call may not begin; then, and when no message is left, the admission is given back.
func (i *isolation) stillWanted(ctx context.Context, part []Message) (left []Message, ok bool) {
	load := i.load(len(part))
	asked := chunkResult{messages: slices.Clone(part)}
	ok = i.keepBack(ctx, i.calls, &asked) && (len(asked.messages) == 0 || i.holds(ctx, i.calls))
	i.rest.verdicts = append(i.rest.verdicts, asked.verdicts...)
	if !ok || len(asked.messages) == 0 {
		i.Admission.Unused(context.WithoutCancel(ctx), load)
	}
	return asked.messages, ok
}
