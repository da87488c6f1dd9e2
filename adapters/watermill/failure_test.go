package watermill

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/domain/fault"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"
)

// handleOne runs h for one published event; c collects the dead messages.
func handleOne(t *testing.T, s *redisServer, c *deadMessages, h HandlerFunc) {
	t.Helper()
	bus := newBus(t, s, func(config *BusConfig) { config.DeadMessage = c.keep })
	bus.Handle("h", topic, h)
	run(t, bus)
	publish(t, bus, []Event{{ID: "1", Topic: topic, Payload: []byte(`{"a":1}`)}})
}

func TestAFailingHandlerIsTriedAgain(t *testing.T) {
	s, c := startRedis(t), &deadMessages{}
	var calls atomic.Int64
	done := make(chan struct{})
	handleOne(t, s, c, func(ctx context.Context, _ Event) error {
		if ctx.Err() != nil {
			t.Error("an attempt starts with a context that has ended")
		}
		if calls.Add(1) < 3 {
			return errors.New("not yet")
		}
		close(done)
		return nil
	})
	<-done
	wantAcknowledged(t, s, "h")
	if calls.Load() != 3 || len(c.kept()) != 0 {
		t.Errorf("%d calls, dead %v", calls.Load(), c.kept())
	}
}

func TestAnEventThatAlwaysFailsIsKeptOnceAndAcknowledged(t *testing.T) {
	s, c := startRedis(t), &deadMessages{}
	var calls atomic.Int64
	handleOne(t, s, c, func(context.Context, Event) error {
		calls.Add(1)
		return errors.New("never\x00 ever")
	})
	eventually(t, "it is kept", func() bool { return len(c.kept()) == 1 })
	wantAcknowledged(t, s, "h")
	dead := c.kept()[0]
	if string(dead.Payload) != `{"a":1}` {
		t.Errorf("%+v", dead)
	}
	want := dead
	want.ID, want.Topic, want.Handler, want.Reason = "1", topic, "h", "never ever"
	if diff := cmp.Diff(want, dead); diff != "" {
		t.Errorf("dead message (-want +got):\n%s", diff)
	}
	if calls.Load() != 3 || len(c.kept()) != 1 {
		t.Errorf("%d calls, %d kept", calls.Load(), len(c.kept()))
	}
}

func TestPermanentFaultsAreNotRetried(t *testing.T) {
	for kind, want := range map[fault.Kind]int64{fault.Invalid: 1, fault.NotFound: 1, fault.Conflict: 1, fault.Denied: 3} {
		s, c := startRedis(t), &deadMessages{}
		var calls atomic.Int64
		handleOne(t, s, c, func(context.Context, Event) error {
			calls.Add(1)
			return fault.New(kind, "x", "no")
		})
		eventually(t, "it is kept", func() bool { return len(c.kept()) == 1 })
		if calls.Load() != want {
			t.Errorf("kind %d: %d calls, want %d", kind, calls.Load(), want)
		}
	}
}

// TestUnavailableIsNoAttempt: an event whose handler finds PostgreSQL unavailable is handled
// once PostgreSQL is back, after many more failures than attempts. No dead message is made of
// the event.
func TestUnavailableIsNoAttempt(t *testing.T) {
	s, c := startRedis(t), &deadMessages{}
	var calls atomic.Int64
	away := fault.New(fault.Unavailable, "x", "the database is not available")
	handleOne(t, s, c, func(context.Context, Event) error {
		if calls.Add(1) <= 20 {
			return away
		}
		return nil
	})
	eventually(t, "it is handled", func() bool { return calls.Load() == 21 })
	wantAcknowledged(t, s, "h")
	if len(c.kept()) != 0 {
		t.Errorf("it was given up: %+v", c.kept())
	}
}

// TestUnavailableForTooLongIsGivenUp: an event that is the only event to find a service
// unavailable does not hold up the events behind it for ever.
func TestUnavailableForTooLongIsGivenUp(t *testing.T) {
	s, c := startRedis(t), &deadMessages{}
	var handled seen
	bus := newBus(t, s, func(config *BusConfig) { config.DeadMessage, config.Patience = c.keep, 50*time.Millisecond })
	bus.Handle("h", topic, func(ctx context.Context, e Event) error {
		if e.ID == "id-00000" {
			return fault.New(fault.Unavailable, "x", "it takes too long")
		}
		return handled.add(ctx, e)
	})
	run(t, bus)
	publish(t, bus, events(0, 2))
	eventually(t, "it is kept and the next one is handled", func() bool { return len(c.kept()) == 1 && handled.count() == 1 })
	wantAcknowledged(t, s, "h")
}

func TestWhileTheDeadCannotBeKeptTheEventComesAgain(t *testing.T) {
	s, c := startRedis(t), &deadMessages{failures: 3}
	var calls atomic.Int64
	handleOne(t, s, c, func(context.Context, Event) error {
		calls.Add(1)
		return errors.New("never")
	})
	eventually(t, "it is kept", func() bool { return len(c.kept()) == 1 })
	wantAcknowledged(t, s, "h")
	if calls.Load() != 12 {
		t.Errorf("%d calls in four rounds of three", calls.Load())
	}
}

func TestAPanicIsAFailure(t *testing.T) {
	s, c := startRedis(t), &deadMessages{}
	handleOne(t, s, c, func(context.Context, Event) error { panic("nil map") })
	eventually(t, "it is kept", func() bool { return len(c.kept()) == 1 })
	if reason := c.kept()[0].Reason; !strings.Contains(reason, "nil map") || !strings.Contains(reason, "failure_test.go") {
		t.Errorf("reason %q", reason)
	}
}

func TestAnAttemptEndsWithItsTimeout(t *testing.T) {
	s, c := startRedis(t), &deadMessages{}
	bus := newBus(t, s, func(config *BusConfig) { config.DeadMessage = c.keep })
	var calls atomic.Int64
	bus.Handle("h", topic, func(ctx context.Context, _ Event) error {
		calls.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}, Timeout(50*time.Millisecond))
	run(t, bus)
	publish(t, bus, events(0, 1))
	eventually(t, "it is kept", func() bool { return len(c.kept()) == 1 })
	if calls.Load() != 3 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestAForeignEntryIsKeptAndStopsNobody(t *testing.T) {
	s, c := startRedis(t), &deadMessages{}
	var got, heard seen
	bus := newBus(t, s, func(config *BusConfig) { config.DeadMessage = c.keep })
	bus.Handle("h", topic, got.add)
	bus.Listen("l", topic, heard.add)
	run(t, bus)
	client := s.client(t)
	defer client.Close()
	publish(t, bus, events(0, 1))
	for _, values := range [][]any{{"hello", "world\xff"}, {"_watermill_message_uuid", "x", "metadata", "not msgpack"}} {
		if err := client.XAdd(t.Context(), &goredis.XAddArgs{Stream: topic, Values: values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, bus, events(1, 2))
	eventually(t, "events around it arrive", func() bool { return got.count() == 2 && heard.count() == 2 })
	eventually(t, "both are kept", func() bool { return len(c.kept()) == 2 })
	wantAcknowledged(t, s, "h")
	dead := c.kept()[0]
	if !strings.HasPrefix(dead.ID, "foreign-") || !strings.Contains(string(dead.Payload), "hello") || !strings.Contains(dead.Reason, "not an event") {
		t.Errorf("%+v", dead)
	}
	if c.kept()[1].ID == dead.ID {
		t.Error("two entries share an id")
	}
}

func TestMetricsAreTold(t *testing.T) {
	s := startRedis(t)
	var handled, failed, dead atomic.Int64
	bus := newBus(t, s, func(config *BusConfig) {
		config.Metrics = Metrics{
			Handled: func(handler, on string, took time.Duration, err error) {
				if handler != "h" || on != topic || took <= 0 {
					t.Errorf("handled %s %s %v", handler, on, took)
				}
				handled.Add(1)
				if err != nil {
					failed.Add(1)
				}
			},
			Dead: func(handler, on string) { dead.Add(1) },
		}
	})
	var calls atomic.Int64
	bus.Handle("h", topic, func(context.Context, Event) error {
		if calls.Add(1) == 1 {
			return nil
		}
		panic("x")
	})
	run(t, bus)
	publish(t, bus, events(0, 2))
	eventually(t, "one died", func() bool { return dead.Load() == 1 })
	if handled.Load() != 4 || failed.Load() != 3 {
		t.Errorf("handled %d, failed %d", handled.Load(), failed.Load())
	}
}
