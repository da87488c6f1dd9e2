package sender_test

import (
	"context"
	"sync"
	"testing"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
)

// TestADividedCall: a call that the provider refuses because of one message is divided until
// that message has a call of its own. A panic is the result of only the half that panicked.
func TestADividedCall(t *testing.T) {
	messages := make([]delivery.Message, 8)
	results := make([]delivery.Result, len(messages))
	var mu sync.Mutex
	var sizes []int
	sender.Calls(t.Context(), messages, results, 2, [][]int{{0, 1, 2, 3, 4, 5}, {6, 7}}, func(_ context.Context, at []int) sender.Reply {
		mu.Lock()
		sizes = append(sizes, len(at))
		mu.Unlock()
		for _, i := range at {
			switch {
			case i == 4:
				reply := sender.All(delivery.Result{Status: delivery.Permanent}, len(at))
				reply.Divide = true
				return reply
			case i == 0 && len(at) == 3:
				panic("a message of this half")
			}
		}
		return sender.All(delivery.Result{Status: delivery.Delivered}, len(at))
	})
	for i, r := range results {
		want := delivery.Delivered
		if i < 3 || i == 4 {
			want = delivery.Permanent
		}
		if r.Status != want || (r.Crash != nil) != (i < 3) {
			t.Errorf("message %d: got %+v", i, r)
		}
	}
	if len(sizes) != 8 {
		t.Errorf("calls of %v messages", sizes)
	}
}
