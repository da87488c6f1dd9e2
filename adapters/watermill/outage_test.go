package watermill

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/musttest"
)

// publishUntil publishes events one after the other until arrived returns true. Redis may lose
// events that are published while it is being emptied, so one event is not enough.
func publishUntil(t *testing.T, bus *Bus, arrived func() bool) {
	t.Helper()
	n := 100_000
	eventually(t, "events arrive again", func() bool {
		n++
		// It fails while Redis is away.
		_ = bus.Publish(t.Context(), events(n, n+1))
		return arrived()
	})
}

func TestAnEmptiedRedisIsSubscribedToAgain(t *testing.T) {
	s := startRedis(t)
	var got, heard seen
	var restored atomic.Int64
	bus := newBus(t, s, func(c *BusConfig) {
		c.Metrics.Resubscribed = func(handler, on string) { restored.Add(1) }
	})
	bus.Handle("h", topic, got.add, Parallel(2))
	bus.Listen("l", topic, heard.add)
	run(t, bus)
	publish(t, bus, events(0, 5))
	eventually(t, "five arrive", func() bool { return got.count() == 5 && heard.count() == 5 })
	client := s.client(t)
	defer client.Close()
	musttest.OK(t, client.FlushAll(t.Context()).Err())
	// All of these come after the loss, so none may be missed.
	list := events(5, 25)
	publish(t, bus, list)
	eventually(t, "all later events arrive", func() bool { return got.count() == 25 && heard.count() == 25 })
	if want := ids(append(events(0, 5), list...)); !slices.Equal(got.sorted(), want) || !slices.Equal(heard.sorted(), want) {
		t.Error("events are missing or came twice")
	}
	eventually(t, "both readers of the group are back", func() bool { return restored.Load() >= 2 && bus.Health() == nil })
}

func TestRedisKilledAndStartedEmpty(t *testing.T) {
	s := startRedis(t)
	var got, heard seen
	bus := newBus(t, s)
	bus.Handle("h", topic, got.add)
	bus.Listen("l", topic, heard.add)
	stop := run(t, bus)
	publish(t, bus, events(0, 5))
	eventually(t, "five arrive", func() bool { return got.count() == 5 && heard.count() == 5 })
	s.kill(t)
	eventually(t, "the loss shows", func() bool { return bus.Health() != nil })
	goroutines := runtime.NumGoroutine()
	s.restart(t)
	before, heardBefore := got.count(), heard.count()
	publishUntil(t, bus, func() bool { return got.count() > before && heard.count() > heardBefore })
	eventually(t, "all handlers are back", func() bool { return bus.Health() == nil })
	if now := runtime.NumGoroutine(); now > goroutines+40 {
		t.Errorf("%d goroutines after the outage, %d in it", now, goroutines)
	}
	stop()
}

func TestTheBusComesUpWithoutRedis(t *testing.T) {
	s := startRedis(t)
	s.kill(t)
	var got seen
	bus := newBus(t, s)
	bus.Handle("h", topic, got.add)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bus.Run(ctx) }()
	s.restart(t)
	publishUntil(t, bus, func() bool { return got.count() > 0 })
	select {
	case <-bus.Running():
	default:
		t.Error("handlers run but Running is not closed")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRunEndsDuringAnOutage(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	bus.Handle("h", topic, new(seen).add)
	stop := run(t, bus)
	s.kill(t)
	eventually(t, "the loss shows", func() bool { return bus.Health() != nil })
	stop()
}

func TestStoppingFinishesAndAcknowledgesWhatWasRead(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	var got seen
	running := make(chan struct{}, 100)
	bus.Handle("h", topic, func(ctx context.Context, e Event) error {
		running <- struct{}{}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Error("the handler was cut off")
		}
		return got.add(ctx, e)
	})
	stop := run(t, bus)
	publish(t, bus, events(0, 50))
	<-running
	<-running
	stop()
	handled := got.count()
	if handled == 50 {
		t.Fatal("the test did not stop in between")
	}
	client := s.client(t)
	defer client.Close()
	pending, err := client.XPending(t.Context(), topic, "h").Result()
	if err != nil || pending.Count != 0 {
		t.Errorf("%d pending after the stop, %v", pending.Count, err)
	}
	var rest seen
	next := newBus(t, s)
	next.Handle("h", topic, rest.add)
	run(t, next)
	eventually(t, "the next process gets the rest", func() bool { return rest.count() == 50-handled })
	if all := slices.Sorted(slices.Values(append(got.sorted(), rest.sorted()...))); !slices.Equal(all, ids(events(0, 50))) {
		t.Error("an event is missing or came twice")
	}
}

func TestAHandlerThatDoesNotEndIsCutOffAfterTheDrainTime(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s, func(c *BusConfig) { c.DrainTimeout = 100 * time.Millisecond })
	running, cut := make(chan struct{}), make(chan struct{})
	bus.Handle("h", topic, func(ctx context.Context, _ Event) error {
		close(running)
		<-ctx.Done()
		close(cut)
		return ctx.Err()
	}, Timeout(time.Hour))
	stop := run(t, bus)
	publish(t, bus, events(0, 1))
	<-running
	stop()
	<-cut
	client := s.client(t)
	defer client.Close()
	if pending := client.XPending(t.Context(), topic, "h").Val(); pending == nil || pending.Count != 1 {
		t.Errorf("the event must stay for another process: %+v", pending)
	}
}

func TestEventsOfADeadProcessAreTakenOver(t *testing.T) {
	s := startRedis(t)
	client := s.client(t)
	defer client.Close()
	publisher := newBus(t, s)
	publish(t, publisher, events(0, 3))
	musttest.OK(t, client.XGroupCreate(t.Context(), topic, "h", "0").Err())
	// A process that read two events and died.
	musttest.OK(t, client.Do(t.Context(), "XREADGROUP", "GROUP", "h", "dead", "COUNT", 2, "STREAMS", topic, ">").Err())
	var got seen
	bus := newBus(t, s, func(c *BusConfig) { c.Attempts = 1 })
	bus.Handle("h", topic, got.add, Timeout(time.Millisecond))
	run(t, bus)
	eventually(t, "all three arrive", func() bool { return slices.Equal(got.sorted(), ids(events(0, 3))) })
	wantAcknowledged(t, s, "h")
}

func TestAListenerSurvivesAClockThatWentBack(t *testing.T) {
	s := startRedis(t)
	var heard seen
	bus := newBus(t, s)
	bus.Listen("l", topic, heard.add)
	run(t, bus)
	client := s.client(t)
	ahead := fmt.Sprintf("%d-0", time.Now().Add(time.Hour).UnixMilli())
	values := []any{redisstream.UUIDHeaderKey, "ahead", "payload", "{}"}
	musttest.OK(t, client.XAdd(t.Context(), &goredis.XAddArgs{Stream: topic, ID: ahead, Values: values}).Err())
	client.Close()
	eventually(t, "the first event is heard", func() bool { return heard.count() == 1 })
	s.kill(t)
	eventually(t, "the loss shows", func() bool { return bus.Health() != nil })
	s.restart(t)
	publishUntil(t, bus, func() bool { return heard.count() > 1 })
}
