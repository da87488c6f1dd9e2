package watermill

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/event"
	"dropbell/musttest"

	goredis "github.com/redis/go-redis/v9"
)

// aStream holds ten events from an hour ago, 1-0 to 10-0 after a common prefix, and one event
// from now.
func aStream(t *testing.T, s *redisServer, name string) (*goredis.Client, func(n int) string) {
	t.Helper()
	client := s.client(t)
	t.Cleanup(func() { client.Close() })
	start := time.Now().Add(-time.Hour).UnixMilli()
	id := func(n int) string { return fmt.Sprintf("%d-0", start+int64(n)) }
	for n := range 10 {
		add(t, client, name, id(n+1))
	}
	add(t, client, name, "*")
	return client, id
}

func add(t *testing.T, client *goredis.Client, stream, id string) {
	t.Helper()
	musttest.OK(t, client.XAdd(t.Context(), &goredis.XAddArgs{Stream: stream, ID: id, Values: []any{"k", "v"}}).Err())
}

// read makes a group that has read n entries and acknowledged all of them except the entries in
// pending.
func read(t *testing.T, client *goredis.Client, stream, group string, n int, pending ...string) {
	t.Helper()
	musttest.OK(t, client.XGroupCreate(t.Context(), stream, group, "0").Err())
	if n == 0 {
		return
	}
	reply, err := client.XReadGroup(t.Context(), &goredis.XReadGroupArgs{Group: group, Consumer: "c", Streams: []string{stream, ">"}, Count: int64(n)}).Result()
	musttest.OK(t, err)
	keep := map[string]bool{}
	for _, id := range pending {
		keep[id] = true
	}
	for _, m := range reply[0].Messages {
		if !keep[m.ID] {
			client.XAck(t.Context(), stream, group, m.ID)
		}
	}
}

func first(t *testing.T, client *goredis.Client, stream string) string {
	t.Helper()
	entries := client.XRangeN(t.Context(), stream, "-", "+", 1).Val()
	if len(entries) == 0 {
		return ""
	}
	return entries[0].ID
}

func TestTrimKeepsWhatTheSlowestGroupNeeds(t *testing.T) {
	type groups map[string]struct {
		read    int
		pending []int
	}
	for name, c := range map[string]struct {
		groups groups
		first  int // 0 = only the newest event is left
	}{
		"all read":          {groups{"a": {11, nil}}, 0},
		"no group":          {groups{}, 0},
		"one behind":        {groups{"a": {11, nil}, "b": {4, nil}}, 4},
		"one read nothing":  {groups{"a": {11, nil}, "b": {0, nil}}, 1},
		"unacknowledged":    {groups{"a": {11, []int{3, 7}}}, 3},
		"behind and unack.": {groups{"a": {11, []int{6}}, "b": {9, []int{8}}}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := startRedis(t)
			stream := event.SlotFired
			client, id := aStream(t, s, stream)
			for group, g := range c.groups {
				var pending []string
				for _, n := range g.pending {
					pending = append(pending, id(n))
				}
				read(t, client, stream, group, g.read, pending...)
			}
			deleted, err := newBus(t, s).Trim(t.Context(), time.Minute)
			musttest.OK(t, err)
			left := client.XLen(t.Context(), stream).Val()
			if deleted+left != 11 {
				t.Errorf("deleted %d, left %d", deleted, left)
			}
			if c.first == 0 && left != 1 || c.first > 0 && first(t, client, stream) != id(c.first) {
				t.Errorf("%d left from %s, want from %d (%s)", left, first(t, client, stream), c.first, id(c.first))
			}
		})
	}
}

func TestTrimKeepsTheYoung(t *testing.T) {
	s := startRedis(t)
	client, _ := aStream(t, s, event.SlotFired)
	if n, err := newBus(t, s).Trim(t.Context(), 2*time.Hour); err != nil || n != 0 {
		t.Errorf("deleted %d, %v", n, err)
	}
	if n := client.XLen(t.Context(), event.SlotFired).Val(); n != 11 {
		t.Errorf("%d left", n)
	}
}

func TestLagCountsUnreadAndUnacknowledged(t *testing.T) {
	s := startRedis(t)
	client, id := aStream(t, s, event.SlotFired)
	read(t, client, event.SlotFired, "a", 11)
	read(t, client, event.SlotFired, "b", 4, id(2), id(3))
	bus := newBus(t, s)
	want := map[Group]int64{{event.SlotFired, "a"}: 0, {event.SlotFired, "b"}: 9}
	check := func(when string) {
		t.Helper()
		got, err := bus.Lag(t.Context())
		musttest.OK(t, err)
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		for group, n := range want {
			if got[group] != n {
				t.Errorf("%s: %v has %d, want %d", when, group, got[group], n)
			}
		}
	}
	check("at first")
	// Deleting in the middle makes Redis forget its own count.
	musttest.OK(t, client.XDel(t.Context(), event.SlotFired, id(6)).Err())
	want[Group{event.SlotFired, "b"}] = 8
	check("after a deletion")
}

func TestEntryIDsCompareAsNumbers(t *testing.T) {
	ordered := []string{"0-0", "9-0", "9-9", "9-10", "10-0", "18446744073709551615-18446744073709551615"}
	for i, a := range ordered {
		for j, b := range ordered {
			left, err1 := parseEntryID(a)
			right, err2 := parseEntryID(b)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if got := left.compare(right); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
			if left.String() != a {
				t.Errorf("%s becomes %s", a, left)
			}
		}
	}
	for _, bad := range []string{"", "1", "1-", "-1", "a-1", "1-1-1"} {
		if _, err := parseEntryID(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
