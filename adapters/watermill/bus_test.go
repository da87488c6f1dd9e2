package watermill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"dropbell/domain/fault"
	"dropbell/musttest"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	goredis "github.com/redis/go-redis/v9"
)

func TestTwoProcessesOfOneGroupShareTheEvents(t *testing.T) {
	s := startRedis(t)
	var a, b, other seen
	first, second := newBus(t, s), newBus(t, s)
	first.Handle("count", topic, a.add)
	second.Handle("count", topic, b.add, Parallel(3))
	second.Handle("audit", topic, other.add)
	run(t, first)
	run(t, second)
	list := events(0, 500)
	publish(t, first, list)
	eventually(t, "everything is handled", func() bool { return a.count()+b.count() == 500 && other.count() == 500 })
	if a.count() == 0 || b.count() == 0 {
		t.Errorf("shared %d to %d", a.count(), b.count())
	}
	if all := append(a.sorted(), b.sorted()...); !slices.Equal(slices.Sorted(slices.Values(all)), ids(list)) {
		t.Error("not each event once in the group")
	}
	if !slices.Equal(other.sorted(), ids(list)) {
		t.Error("the other group missed events")
	}
	wantAcknowledged(t, s, "count")
}

func TestAGroupBeginsWithTheOldestEvent(t *testing.T) {
	s := startRedis(t)
	var got seen
	bus := newBus(t, s)
	list := events(0, 3)
	publish(t, bus, list)
	bus.Handle("late", topic, got.add)
	run(t, bus)
	eventually(t, "earlier events arrive", func() bool { return slices.Equal(got.sorted(), ids(list)) })
}

func TestAnEventArrivesWhole(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	got := make(chan Event, 1)
	bus.Handle("h", topic, func(_ context.Context, e Event) error { got <- e; return nil })
	run(t, bus)
	sent := Event{ID: "1", Topic: topic, Payload: []byte("{\"x\":\"\x00é\"}"), Metadata: map[string]string{"traceparent": "00-1"}}
	publish(t, bus, []Event{sent})
	e := <-got
	if e.ID != sent.ID || e.Topic != topic || string(e.Payload) != string(sent.Payload) || e.Metadata["traceparent"] != "00-1" {
		t.Errorf("%+v", e)
	}
}

func TestTheLibrarysOwnPublisherIsUnderstoodAndUnderstands(t *testing.T) {
	s := startRedis(t)
	var got seen
	bus := newBus(t, s)
	bus.Handle("h", topic, got.add)
	run(t, bus)
	publisher, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: s.client(t)}, nil)
	musttest.OK(t, err)
	defer publisher.Close()
	musttest.OK(t, publisher.Publish(topic, message.NewMessage("theirs", []byte("{}"))))
	publish(t, bus, []Event{{ID: "ours", Topic: topic}})
	eventually(t, "both arrive", func() bool { return slices.Equal(got.sorted(), []string{"ours", "theirs"}) })
	client := s.client(t)
	defer client.Close()
	entries := client.XRange(t.Context(), topic, "-", "+").Val()
	theirs, ours := entries[0].Values, entries[1].Values
	for key := range theirs {
		if _, ok := ours[key]; !ok || len(ours) != len(theirs) {
			t.Errorf("entry %v differs in shape from the library's %v", ours, theirs)
		}
	}
}

func TestEveryListenerGetsEachEventFromNowOn(t *testing.T) {
	s := startRedis(t)
	var a, b seen
	first, second := newBus(t, s), newBus(t, s, func(c *BusConfig) { c.DeadMessage = nil })
	publish(t, first, events(0, 3))
	first.Listen("cache", topic, a.add)
	second.Listen("cache", topic, func(ctx context.Context, e Event) error {
		if err := b.add(ctx, e); err != nil {
			return err
		}
		// Neither stops a listener.
		if b.count()%2 == 0 {
			panic("listener")
		}
		return errors.New("listener")
	})
	run(t, first)
	run(t, second)
	// Reads with nothing to read must not move the position.
	client := s.client(t)
	defer client.Close()
	idle := commandCalls(t, client, "xread")
	eventually(t, "idle reads", func() bool {
		first.watch.notify(topic)
		second.watch.notify(topic)
		return commandCalls(t, client, "xread") > idle+6
	})
	list := events(3, 40)
	for _, e := range list {
		publish(t, first, []Event{e})
	}
	eventually(t, "both got everything", func() bool { return a.count() >= 37 && b.count() >= 37 })
	if !slices.Equal(a.sorted(), ids(list)) || !slices.Equal(b.sorted(), ids(list)) {
		t.Errorf("got %d and %d", a.count(), b.count())
	}
}

func TestPublishingAThousandEventsIsOneRoundTrip(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	publish(t, bus, events(0, 1))
	client := s.client(t)
	defer client.Close()
	before := readsOf(t, client)
	publish(t, bus, events(1, 1001))
	trips := readsOf(t, client) - before
	publish(t, bus, events(1001, 3500))
	if n := client.XLen(t.Context(), topic).Val(); n != 3500 {
		t.Errorf("stream holds %d", n)
	}
	if stats := commandCalls(t, client, "xadd"); stats != 3500 {
		t.Errorf("%d XADDs", stats)
	}
	if trips > 200 { // a pipeline of 1,000 arrives in several pieces
		t.Errorf("1000 events were read in %d pieces: not pipelined", trips)
	}
	if err := bus.Publish(t.Context(), nil); err != nil {
		t.Errorf("publishing nothing: %v", err)
	}
}

func commandCalls(t *testing.T, client *goredis.Client, command string) int {
	t.Helper()
	info := client.Info(t.Context(), "commandstats").Val()
	_, rest, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	var n int
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// readsOf is how often the server has read from a connection of a client.
func readsOf(t *testing.T, client *goredis.Client) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(client.Info(t.Context(), "stats").Val(), "total_reads_processed:")
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPublishWithoutRedisIsUnavailable(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	s.kill(t)
	if err := bus.Publish(t.Context(), events(0, 1)); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	if _, err := bus.Lag(t.Context()); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	if _, err := bus.Trim(t.Context(), 0); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
}

func TestWrongUseIsNoticedAtOnce(t *testing.T) {
	s := startRedis(t)
	nothing := func(context.Context, Event) error { return nil }
	panics := func(name string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		f()
	}
	bus := newBus(t, s)
	bus.Handle("h", topic, nothing)
	bus.Handle("h", "other.v1", nothing)
	panics("handler twice", func() { bus.Handle("h", topic, nothing) })
	panics("listener twice", func() { bus.Listen("h", topic, nothing) })
	web := newBus(t, s, func(c *BusConfig) { c.DeadMessage = nil })
	panics("no place for the dead", func() { web.Handle("h", topic, nothing) })
	stop := run(t, web)
	stop()
	if err := web.Run(t.Context()); err == nil {
		t.Error("a second Run is accepted")
	}
	if _, err := NewBus(BusConfig{RedisURL: s.URL, Logger: slog.Default()}); err == nil {
		t.Error("a bus without a consumer name is accepted")
	}
}
