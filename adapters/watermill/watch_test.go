package watermill

import (
	"fmt"
	"strings"
	"testing"
)

// TestReadersWithoutEventsShareOneBlockedRead: a bus with many subscriptions holds one
// connection in Redis, and its readers read when there are events.
func TestReadersWithoutEventsShareOneBlockedRead(t *testing.T) {
	s := startRedis(t)
	client := s.client(t)
	defer client.Close()
	bus := newBus(t, s)
	var got, heard seen
	for i := range 10 {
		bus.Handle("h", fmt.Sprintf("quiet.%d.v1", i), got.add)
	}
	bus.Handle("h", topic, got.add)
	bus.Listen("l", topic, heard.add)
	run(t, bus)
	idle := func() bool {
		return strings.Contains(client.Info(t.Context(), "clients").Val(), "blocked_clients:1\r")
	}
	eventually(t, "one read is blocked", idle)
	before := commandCalls(t, client, "xreadgroup")
	for i := range 20 {
		publish(t, bus, events(i, i+1))
		eventually(t, "the event arrives", func() bool { return got.count() == i+1 && heard.count() == i+1 })
		eventually(t, "one read is blocked again", idle)
	}
	// The reader of the topic reads each event and then nothing. The readers of the other topics
	// are not woken, except for one reader that looks by itself.
	if calls := commandCalls(t, client, "xreadgroup") - before; calls > 20*3 {
		t.Errorf("%d reads of 20 events", calls)
	}
	if bus.Health() != nil {
		t.Error(bus.Health())
	}
}
