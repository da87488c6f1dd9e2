package redis

import (
	"testing"
	"time"
)

// TestOneCandidateLeads until it does not ask for long enough, or Redis was emptied.
// Without Redis all lead.
func TestOneCandidateLeads(t *testing.T) {
	client := open(t, startRedis(t))
	first, second := NewLeader(client, "relay", "a"), NewLeader(client, "relay", "b")
	const long = time.Hour
	if !first.Lead(t.Context(), long) || second.Lead(t.Context(), long) || !first.Lead(t.Context(), long) {
		t.Error("the first candidate is not the only leader")
	}
	if !NewLeader(client, "other", "b").Lead(t.Context(), long) {
		t.Error("other work has the same leader")
	}
	if !first.Lead(t.Context(), time.Millisecond) {
		t.Error("the leader was not confirmed")
	}
	eventually(t, "another candidate leads", func() bool { return second.Lead(t.Context(), long) })
	if first.Lead(t.Context(), long) {
		t.Error("there are two leaders")
	}
	first.Resign(t.Context()) // another one leads
	if first.Lead(t.Context(), long) {
		t.Error("a candidate took the lead from another one")
	}
	second.Resign(t.Context())
	if !first.Lead(t.Context(), long) || second.Lead(t.Context(), long) {
		t.Error("the lead was not given back")
	}
	if err := client.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if !second.Lead(t.Context(), long) {
		t.Error("a candidate does not lead after Redis was emptied")
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if !first.Lead(t.Context(), long) || !second.Lead(t.Context(), long) {
		t.Error("without Redis a candidate does not lead")
	}
}
