package sender

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"dropbell/domain/delivery"
)

// A Reply is a provider's answer to one call.
type Reply struct {
	// Results has a result for each message of the call, in order.
	Results []delivery.Result
	// Divide says that the provider refused the call because of one message without naming it.
	// If the call has several messages, each half is sent again in a call of its own.
	Divide bool
	// Keep is called while the accepted messages are being recorded; may be nil.
	Keep func()
}

// All is the reply with one result for n messages.
func All(r delivery.Result, n int) Reply { return Reply{Results: delivery.Repeat(r, n)} }

// Each sends every message in a call of its own, atOnce calls at a time. A message counts as
// under way until it is recorded in its [delivery.Journal].
func Each(ctx context.Context, messages []delivery.Message, atOnce int, one func(context.Context, delivery.Message) delivery.Result) []delivery.Result {
	calls := make([][]int, len(messages))
	for i := range messages {
		calls[i] = []int{i}
	}
	results := make([]delivery.Result, len(messages))
	Calls(ctx, messages, results, atOnce, calls, func(ctx context.Context, at []int) Reply {
		return All(one(ctx, messages[at[0]]), 1)
	})
	return results
}

// Calls makes the calls, atOnce at a time, and sets the results. Each entry of calls lists the
// indexes of the messages of one call; the function call makes the call. A call counts as under
// way until its messages are recorded in their [delivery.Journal]. If recording fails, the
// remaining calls are answered with [delivery.Unrecorded].
func Calls(ctx context.Context, messages []delivery.Message, results []delivery.Result, atOnce int, calls [][]int, call func(ctx context.Context, at []int) Reply) {
	s := &sending{messages: messages, results: results, call: call}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, at := range calls {
		group.Go(func() error { s.send(ctx, at); return nil })
	}
	_ = group.Wait()
}

// sending is one run of [Calls].
type sending struct {
	messages []delivery.Message
	results  []delivery.Result
	call     func(ctx context.Context, at []int) Reply
	stopped  atomic.Bool // a message that was accepted cannot be recorded
}

func (s *sending) send(ctx context.Context, at []int) {
	if s.stopped.Load() {
		s.set(at, All(delivery.Unrecorded(), len(at)))
		return
	}
	var reply Reply
	// A panic in this goroutine would end the program.
	crash := delivery.Isolated(func() delivery.Result { reply = s.call(ctx, at); return delivery.Result{} })
	switch n := len(at) / 2; {
	case crash.Crash != nil:
		s.set(at, All(crash, len(at)))
	case reply.Divide && n > 0:
		s.send(ctx, at[:n])
		s.send(ctx, at[n:])
	default:
		s.set(at, reply)
		s.record(ctx, at, reply.Keep)
	}
}

func (s *sending) set(at []int, reply Reply) {
	for k, i := range at {
		s.results[i] = reply.Results[k]
	}
}

// record waits until the accepted messages are recorded, and calls keep meanwhile.
func (s *sending) record(ctx context.Context, at []int, keep func()) {
	var recorded []func(context.Context) error
	for _, i := range at {
		if m, r := s.messages[i], s.results[i]; r.Status == delivery.Delivered && m.Journal != nil {
			recorded = append(recorded, journalOf(m, r.Via).Accepted(m.To.ID))
		}
	}
	if keep != nil {
		keep()
	}
	for _, wait := range recorded {
		if wait(ctx) != nil {
			s.stopped.Store(true)
		}
	}
}

// journalOf returns the journal for a message that the configured provider via accepted; via 0 =
// the environment's provider.
func journalOf(m delivery.Message, via int64) delivery.Journal {
	if routed, ok := m.Journal.(delivery.RoutedJournal); ok && via != 0 {
		return routed.Through(via)
	}
	return m.Journal
}
