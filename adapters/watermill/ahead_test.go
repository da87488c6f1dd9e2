package watermill

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/musttest"
)

// TestQuickEventsAreReadAhead: a thousand quickly handled events take far fewer reads and
// acknowledgements than events, and each event is handled once.
func TestQuickEventsAreReadAhead(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	var got seen
	bus.Handle("h", topic, got.add, Ahead())
	list := events(0, 1000)
	publish(t, bus, list)
	run(t, bus)
	eventually(t, "everything is handled", func() bool { return got.count() >= 1000 })
	wantAcknowledged(t, s, "h")
	if !slices.Equal(got.sorted(), ids(list)) {
		t.Error("not each event once")
	}
	client := s.client(t)
	defer client.Close()
	for _, command := range []string{"xreadgroup", "xack"} {
		if n := commandCalls(t, client, command); n > 500 {
			t.Errorf("%d times %s for 1000 events", n, command)
		}
	}
}

// TestSlowEventsAreLeftToOthers: while a handler takes long, another consumer of its group
// gets the next event.
func TestSlowEventsAreLeftToOthers(t *testing.T) {
	s := startRedis(t)
	first, second := newBus(t, s), newBus(t, s)
	held, free := make(chan struct{}), make(chan struct{})
	var got seen
	first.Handle("h", topic, func(ctx context.Context, e Event) error {
		if e.ID == "id-00000" {
			close(held)
			<-free
		}
		return got.add(ctx, e)
	}, Ahead())
	publish(t, first, events(0, 1))
	run(t, first)
	<-held
	second.Handle("h", topic, got.add, Ahead())
	publish(t, second, events(1, 40))
	run(t, second)
	// The library reads up to two events while a third event is being handled.
	eventually(t, "the others are handled meanwhile", func() bool { return got.count() >= 37 })
	close(free)
	eventually(t, "all are handled", func() bool { return slices.Equal(got.sorted(), ids(events(0, 40))) })
}

// TestStoppingHandlesWhatWasReadAhead: when a process is stopped, the events that it has read
// ahead are handled and acknowledged, and the next process gets all further events.
func TestStoppingHandlesWhatWasReadAhead(t *testing.T) {
	const all = 20_000
	s := startRedis(t)
	bus := newBus(t, s)
	var got, rest seen
	var handled atomic.Int64
	started := make(chan struct{})
	bus.Handle("h", topic, func(ctx context.Context, e Event) error {
		if handled.Add(1) == 100 {
			close(started)
		}
		return got.add(ctx, e)
	}, Ahead())
	publish(t, bus, events(0, all))
	stop := run(t, bus)
	<-started
	stop()
	if got.count() == all {
		t.Fatal("the test did not stop in between")
	}
	client := s.client(t)
	defer client.Close()
	if pending, err := client.XPending(t.Context(), topic, "h").Result(); err != nil || pending.Count != 0 {
		t.Errorf("%d pending after the stop, %v", pending.Count, err)
	}
	next := newBus(t, s)
	next.Handle("h", topic, rest.add, Parallel(2), Ahead())
	run(t, next)
	eventually(t, "the next process gets the rest", func() bool { return rest.count() == all-got.count() })
	if every := slices.Sorted(slices.Values(append(got.sorted(), rest.sorted()...))); !slices.Equal(every, ids(events(0, all))) {
		t.Error("an event is missing or came twice")
	}
}

// TestEventsReadLongAgoAreClaimedAgain: events that waited behind slow events for so long that
// another consumer may have taken them over are handled, unless another consumer has them.
func TestEventsReadLongAgoAreClaimedAgain(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	publish(t, bus, events(0, 3))
	ctx, client := t.Context(), s.client(t)
	defer client.Close()
	musttest.OK(t, client.XGroupCreate(ctx, topic, "h", "0").Err())
	bus.Handle("h", topic, new(seen).add, Ahead())
	r := newReads(bus.subscriptions[0])
	r.subscription.claimAfter = time.Minute
	r.subscription.quick.Store(true)
	read := func() (ids []string) {
		t.Helper()
		next, err := r.XReadGroup(ctx, &goredis.XReadGroupArgs{Group: "h", Consumer: r.subscription.consumer, Streams: []string{topic, ">"}}).Result()
		if err != nil || len(next) != 1 || len(next[0].Messages) != 1 {
			t.Fatalf("%+v, %v", next, err)
		}
		return []string{next[0].Messages[0].ID}
	}
	first := read()
	entries := client.XRange(ctx, topic, "-", "+").Val()
	// All events were read an hour ago; another consumer has been handling the second event for
	// a while.
	for i, e := range entries {
		owner, idle := r.subscription.consumer, time.Hour
		if i == 1 {
			owner, idle = "other", 45*time.Second
		}
		musttest.OK(t, client.Do(ctx, "XCLAIM", topic, "h", owner, 0, e.ID, "IDLE", idle.Milliseconds()).Err())
	}
	r.subscription.ahead.read = r.subscription.ahead.read.Add(-time.Hour)
	if third := read(); first[0] != entries[0].ID || third[0] != entries[2].ID {
		t.Errorf("read %v and %v of %v", first, third, entries)
	}
}

// TestWithoutAnAnswerAnEventIsHandled: if Redis does not say whether another consumer has an
// event that was read long ago, the event is handled.
func TestWithoutAnAnswerAnEventIsHandled(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	bus.Handle("h", topic, new(seen).add, Ahead())
	r := newReads(bus.subscriptions[0])
	r.subscription.ahead.keep([]goredis.XMessage{{ID: "1-1"}, {ID: "1-2"}})
	r.subscription.ahead.read = time.Now().Add(-time.Hour)
	s.kill(t)
	for _, want := range []string{"1-1", "1-2"} {
		next, found := r.nextAhead(t.Context())
		if !found || next.Val()[0].Messages[0].ID != want {
			t.Errorf("%+v, want %s", next, want)
		}
	}
}

// TestAcknowledgementsOutliveAnOutage: Redis refuses reads and acknowledgements for a while, so
// that the subscription begins anew. All events that were handled during the outage are
// acknowledged afterwards, and no event is handled twice.
func TestAcknowledgementsOutliveAnOutage(t *testing.T) {
	const all = 300
	s := startRedis(t)
	client := s.client(t)
	defer client.Close()
	allow := func(sign string) {
		t.Helper()
		if err := client.Do(context.Background(), "ACL", "SETUSER", "default", sign+"xack", sign+"xreadgroup").Err(); err != nil {
			t.Error(err)
		}
	}
	bus := newBus(t, s)
	var got seen
	var handled atomic.Int64
	bus.Handle("h", topic, func(ctx context.Context, e Event) error {
		if handled.Add(1) == 100 {
			allow("-")
		}
		return got.add(ctx, e)
	}, Ahead())
	list := events(0, all)
	publish(t, bus, list)
	run(t, bus)
	eventually(t, "the subscription is lost", func() bool { return handled.Load() >= 100 && !bus.subscriptions[0].connected.Load() })
	allow("+")
	eventually(t, "all are handled", func() bool { return got.count() >= all })
	wantAcknowledged(t, s, "h")
	if !slices.Equal(got.sorted(), ids(list)) {
		t.Error("not each event once")
	}
}

// TestClosingSendsAcknowledgements: close sends the acknowledgements that were added before;
// later acknowledgements are left to the caller.
func TestClosingSendsAcknowledgements(t *testing.T) {
	var sent []string
	var failed atomic.Bool
	a := acks{}
	a.send = func(ids []string) error {
		if failed.CompareAndSwap(false, true) {
			return errors.New("away")
		}
		sent = append(sent, ids...)
		return nil
	}
	a.add("1-1")
	a.add("1-2")
	eventually(t, "an attempt failed", failed.Load)
	a.close()
	if !slices.Equal(sent, []string{"1-1", "1-2"}) {
		t.Errorf("sent %v", sent)
	}
	if a.add("1-3") {
		t.Error("an acknowledgement was taken after the close")
	}
}
