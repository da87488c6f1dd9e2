package watermill

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestEveryAttemptIsTraced with the metadata that the publisher sent.
func TestEveryAttemptIsTraced(t *testing.T) {
	type insideKey struct{}
	s := startRedis(t)
	var mu sync.Mutex
	var ends []error
	names, inside := map[string]bool{}, 0
	bus := newBus(t, s, func(c *BusConfig) {
		c.Trace = func(ctx context.Context, name string, metadata map[string]string) (context.Context, func(error)) {
			mu.Lock()
			defer mu.Unlock()
			names[name] = true
			return context.WithValue(ctx, insideKey{}, metadata["traceparent"]), func(err error) {
				mu.Lock()
				defer mu.Unlock()
				ends = append(ends, err)
			}
		}
	})
	bus.Handle("counter", topic, func(ctx context.Context, _ Event) error {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Value(insideKey{}) == "00-abc-01" {
			inside++
		}
		switch inside {
		case 1:
			return errors.New("not yet")
		case 2:
			panic("nor now")
		}
		return nil
	})
	run(t, bus)
	publish(t, bus, []Event{{ID: "one", Topic: topic, Payload: []byte(`{}`), Metadata: map[string]string{"traceparent": "00-abc-01"}}})
	eventually(t, "third attempt", func() bool { mu.Lock(); defer mu.Unlock(); return len(ends) == 3 })
	if inside != 3 || !names["counter "+topic] {
		t.Errorf("%d attempts inside, named %v", inside, names)
	}
	if ends[0] == nil || ends[1] == nil || ends[2] != nil {
		t.Errorf("ends: %v", ends)
	}
}
