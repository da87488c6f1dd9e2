package watermill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/musttest"
)

const topic = "things.happened.v1"

// A seen collects the events that handlers got.
type seen struct {
	mu  sync.Mutex
	ids []string
}

func (s *seen) add(_ context.Context, e Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, e.ID)
	return nil
}

func (s *seen) sorted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.ids))
}

func (s *seen) count() int { return len(s.sorted()) }

// deadMessages collects dead messages; the first failures are refused.
type deadMessages struct {
	mu       sync.Mutex
	failures int
	dead     []DeadMessage
}

func (c *deadMessages) keep(_ context.Context, dead DeadMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures > 0 {
		c.failures--
		return errors.New("database down")
	}
	c.dead = append(c.dead, dead)
	return nil
}

func (c *deadMessages) kept() []DeadMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.dead)
}

var consumers atomic.Int64

// newBus returns a bus as one more process would have it, with short pauses.
func newBus(t *testing.T, s *redisServer, change ...func(*BusConfig)) *Bus {
	t.Helper()
	config := BusConfig{
		RedisURL: s.URL, Logger: slog.New(slog.DiscardHandler), Consumer: fmt.Sprint("process-", consumers.Add(1)),
		DeadMessage: (&deadMessages{}).keep, Attempts: 3, RetryInterval: time.Millisecond,
		MaxRetryInterval: 5 * time.Millisecond, NackPause: 10 * time.Millisecond, DrainTimeout: 5 * time.Second,
	}
	for _, c := range change {
		c(&config)
	}
	bus, err := NewBus(config)
	musttest.OK(t, err)
	t.Cleanup(func() { bus.Close() })
	return bus
}

// run serves bus until the returned function is called.
func run(t *testing.T, bus *Bus) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- bus.Run(ctx) }()
	select {
	case <-bus.Running():
	case <-time.After(20 * time.Second):
		t.Fatal("the bus does not come up")
	}
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the bus does not stop")
		}
	})
	t.Cleanup(stop)
	return stop
}

func events(from, to int) []Event {
	var list []Event
	for i := from; i < to; i++ {
		list = append(list, Event{ID: fmt.Sprintf("id-%05d", i), Topic: topic, Payload: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	return list
}

func ids(list []Event) []string {
	var all []string
	for _, e := range list {
		all = append(all, e.ID)
	}
	return all
}

func publish(t *testing.T, bus *Bus, list []Event) {
	t.Helper()
	musttest.OK(t, bus.Publish(t.Context(), list))
}

func wantAcknowledged(t *testing.T, s *redisServer, group string) {
	t.Helper()
	client := s.client(t)
	defer client.Close()
	eventually(t, group+" has nothing pending", func() bool {
		pending, err := client.XPending(t.Context(), topic, group).Result()
		return err == nil && pending.Count == 0
	})
}
