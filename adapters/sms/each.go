package sms

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"dropbell/domain/delivery"
)

// EachAtOnce is how many messages of one Send are under way at once at providers that
// take one message in a call.
const EachAtOnce = 20

// Each sends every message in a call of its own, [EachAtOnce] at a time. Each takes its
// place among those under way until it is recorded in its [delivery.Journal].
func Each(ctx context.Context, messages []delivery.Message, one func(context.Context, delivery.Message) delivery.Result) []delivery.Result {
	results := make([]delivery.Result, len(messages))
	var group errgroup.Group
	group.SetLimit(EachAtOnce)
	var stopped atomic.Bool // something that was taken cannot be recorded
	for i, m := range messages {
		group.Go(func() error {
			if results[i] = delivery.Unrecorded(); stopped.Load() {
				return nil
			}
			if err := ctx.Err(); err != nil {
				results[i] = delivery.Result{Unsent: true, Detail: delivery.CauseOf(err)}
				return nil
			}
			// A panic in this goroutine would end the program.
			results[i] = delivery.Isolated(func() delivery.Result { return one(ctx, m) })
			if results[i].Status == delivery.Delivered && m.Journal != nil && m.Journal.Accepted(m.To.ID)(ctx) != nil {
				stopped.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait()
	return results
}
