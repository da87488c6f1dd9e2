package watermill

import (
	"context"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/musttest"
)

// TestPendingsOfGroups: a group counts as empty only as long as no event that was read since the
// last answer can have been pending for idle, and never if Redis has not answered for the group.
func TestPendingsOfGroups(t *testing.T) {
	client := startRedis(t).client(t)
	ctx := t.Context()
	idle, busy, missing := consumerGroup{"t", "idle"}, consumerGroup{"t", "busy"}, consumerGroup{"u", "none"}
	for _, g := range []consumerGroup{idle, busy} {
		musttest.OK(t, client.XGroupCreateMkStream(ctx, g.topic, g.name, "0").Err())
	}
	read := func(g consumerGroup) {
		t.Helper()
		musttest.OK(t, client.XAdd(ctx, &goredis.XAddArgs{Stream: g.topic, Values: []string{"a", "b"}}).Err())
		musttest.OK(t, client.XReadGroup(ctx, &goredis.XReadGroupArgs{Group: g.name, Consumer: "c", Streams: []string{g.topic, ">"}, Block: neverBlock}).Err())
	}
	read(busy)
	p := &pendings{client: client, groups: []consumerGroup{idle, busy, missing}, within: time.Minute}
	if !p.none(ctx, idle, time.Minute) || p.none(ctx, busy, time.Minute) || p.none(ctx, missing, time.Minute) {
		t.Errorf("known is %+v", p.last.Load())
	}
	read(idle)
	if !p.none(ctx, idle, time.Minute) {
		t.Error("an event that was just read may have been pending for a minute")
	}
	if p.none(ctx, idle, time.Nanosecond) {
		t.Error("an event that was pending for a nanosecond is overlooked")
	}
	p.last.Load().asked = time.Now().Add(-pendingFor)
	if p.none(ctx, idle, time.Minute) {
		t.Error("an old answer is used")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	p.last.Store(nil)
	if p.none(ended, busy, time.Minute) || p.none(ended, idle, time.Minute) {
		t.Error("no answer counts as one")
	}
	refused := *client.Options()
	refused.Username, refused.Password = "stranger", "wrong"
	stranger := goredis.NewClient(&refused)
	t.Cleanup(func() { _ = stranger.Close() })
	other := &pendings{client: stranger, groups: p.groups, within: time.Minute}
	if other.none(ctx, idle, time.Minute) || other.none(ctx, busy, time.Minute) {
		t.Error("a refused connection counts as an answer")
	}
}

// TestPendingsDoNotWait: while one subscription asks, none returns false to another
// subscription.
func TestPendingsDoNotWait(t *testing.T) {
	client := startRedis(t).client(t)
	g := consumerGroup{"t", "g"}
	musttest.OK(t, client.XGroupCreateMkStream(t.Context(), g.topic, g.name, "0").Err())
	p := &pendings{client: client, groups: []consumerGroup{g}, within: time.Minute}
	p.asking.Lock()
	if p.none(t.Context(), g, time.Minute) {
		t.Error("an answer that is not there yet is used")
	}
	p.asking.Unlock()
	if !p.none(t.Context(), g, time.Minute) {
		t.Errorf("known is %+v", p.last.Load())
	}
}

// TestPendingsAreWatched: a subscription sleeps until an event of its group may be pending,
// whatever happens in other groups, and wakes when it is to stop.
func TestPendingsAreWatched(t *testing.T) {
	client := startRedis(t).client(t)
	ctx := t.Context()
	one, other := consumerGroup{"t", "one"}, consumerGroup{"t", "other"}
	for _, g := range []consumerGroup{one, other} {
		musttest.OK(t, client.XGroupCreateMkStream(ctx, g.topic, g.name, "0").Err())
	}
	p := &pendings{client: client, groups: []consumerGroup{one, other}, within: time.Minute, every: time.Millisecond}
	watching, end := context.WithCancel(ctx)
	var loops sync.WaitGroup
	loops.Go(func() { p.watch(watching) })
	defer loops.Wait()
	defer end()
	found, slept, stopping := make(chan bool, 1), make(chan bool, 1), make(chan struct{})
	loops.Go(func() { found <- p.some(watching, one, nil) })
	loops.Go(func() { slept <- p.some(watching, other, stopping) })
	for range 3 {
		<-p.next()
	}
	select {
	case <-found:
		t.Fatal("a subscription woke without pending events")
	case <-slept:
		t.Fatal("the other one woke without pending events")
	default:
	}
	musttest.OK(t, client.XAdd(ctx, &goredis.XAddArgs{Stream: "t", Values: []string{"a", "b"}}).Err())
	musttest.OK(t, client.XReadGroup(ctx, &goredis.XReadGroupArgs{Group: "one", Consumer: "c", Streams: []string{"t", ">"}, Block: neverBlock}).Err())
	if !<-found {
		t.Error("the subscription was told that it is to stop")
	}
	close(stopping)
	if <-slept {
		t.Error("a subscription without pending events was told of some")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if p.some(ended, other, nil) {
		t.Error("a subscription that has ended was told of events")
	}
}

// TestLooksBeforeReadingDoNotWait: before the library reads, it looks again at once if it has
// found many events of silent consumers. These events are handled by then.
func TestLooksBeforeReadingDoNotWait(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	publish(t, bus, events(0, 1))
	ctx, client := t.Context(), s.client(t)
	defer client.Close()
	musttest.OK(t, client.XGroupCreate(ctx, topic, "h", "0").Err())
	bus.Handle("h", topic, new(seen).add)
	r := newReads(bus.subscriptions[0])
	look := func() int {
		return len(r.XPendingExt(ctx, &goredis.XPendingExtArgs{Stream: topic, Group: "h", Idle: time.Minute, Start: "-", End: "+", Count: 100}).Val())
	}
	for range 3 {
		if n := look(); n != 0 {
			t.Fatalf("%d events of silent consumers", n)
		}
	}
	if _, err := r.XReadGroup(ctx, &goredis.XReadGroupArgs{Group: "h", Consumer: "c", Streams: []string{topic, ">"}}).Result(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int)
	go func() { ended <- look() }()
	select {
	case n := <-ended:
		t.Errorf("a look beside reading ended with %d events", n)
	default:
	}
	r.stop()
	if n := <-ended; n != 0 {
		t.Errorf("%d events while stopping", n)
	}
}
