package redis

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/musttest"
)

// lead asks as a candidate that reaches Redis.
func lead(t *testing.T, l *Leader, lasting time.Duration) bool {
	t.Helper()
	leads, err := l.Lead(t.Context(), lasting)
	musttest.OK(t, err)
	return leads
}

// TestOneCandidateLeads: a candidate leads until it has not called Lead for long enough, or
// Redis was emptied. A candidate that does not reach Redis does not lead.
func TestOneCandidateLeads(t *testing.T) {
	client := open(t, startRedis(t))
	const long = time.Hour
	// ask is a candidate's first question, which it does not answer by itself.
	ask := func(id string, lasting time.Duration) bool {
		return lead(t, NewLeader(client, "relay", id), lasting)
	}
	if !ask("a", long) || ask("b", long) || !ask("a", long) {
		t.Error("the first candidate is not the only leader")
	}
	if !lead(t, NewLeader(client, "other", "b"), long) {
		t.Error("other work has the same leader")
	}
	if !ask("a", time.Millisecond) {
		t.Error("the leader was not confirmed")
	}
	eventually(t, "another candidate leads", func() bool { return ask("b", long) })
	if ask("a", long) {
		t.Error("there are two leaders")
	}
	NewLeader(client, "relay", "a").Resign(t.Context()) // b leads
	if ask("a", long) {
		t.Error("a candidate took the lead from another one")
	}
	NewLeader(client, "relay", "b").Resign(t.Context())
	if !ask("a", long) || ask("b", long) {
		t.Error("the lead was not given back")
	}
	musttest.OK(t, client.FlushDB(t.Context()).Err())
	if !ask("b", long) {
		t.Error("a candidate does not lead after Redis was emptied")
	}
	musttest.OK(t, client.Close())
	for _, id := range []string{"a", "b"} {
		if leads, err := NewLeader(client, "relay", id).Lead(t.Context(), long); leads || !errors.Is(err, redisclient.ErrUnavailable) {
			t.Errorf("without Redis %s leads: %t, %v", id, leads, err)
		}
	}
}

// TestALeaderAsksInTime: in the first half of its time the leader answers without Redis. In the
// second half it asks Redis, so that it stays the leader.
func TestALeaderAsksInTime(t *testing.T) {
	client := open(t, startRedis(t))
	asked := func() (n int64) {
		t.Helper()
		stats, err := client.InfoMap(t.Context(), "commandstats").Result()
		musttest.OK(t, err)
		for name, calls := range stats["Commandstats"] {
			if name == "cmdstat_set" {
				_, _ = fmt.Sscanf(calls, "calls=%d", &n)
			}
		}
		return n
	}
	leader := NewLeader(client, "relay", "a")
	for range 3 {
		if !lead(t, leader, time.Hour) {
			t.Fatal("it does not lead")
		}
	}
	if n := asked(); n != 1 {
		t.Errorf("the leader asked %d times", n)
	}
	leader.until = time.Now() // half of the time is over
	if !lead(t, leader, time.Hour) || asked() != 2 {
		t.Errorf("it asked %d times", asked())
	}
	leader.Resign(t.Context())
	if !lead(t, NewLeader(client, "relay", "b"), time.Hour) || lead(t, leader, time.Hour) {
		t.Error("a candidate that resigned goes on leading")
	}
}
