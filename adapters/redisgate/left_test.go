package redisgate

import (
	"context"
	"testing"

	"dropbell/domain/claim"
)

// TestClaimsWhoseCallersLeft: a claim whose caller stopped waiting while the claim was queued is
// not decided. A claim that was already taken and found no stock is queued again.
func TestClaimsWhoseCallersLeft(t *testing.T) {
	g := New(nil, unwritten{}, Options{MaxGroup: 2})
	l := &lane{gate: g, running: true} // no goroutine decides anything
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for id := range claim.ID(3) {
		if _, err := l.do(gone, claim.Request{ID: id + 1}); err == nil {
			t.Fatal("a claim was decided")
		}
	}
	for id := range claim.ID(3) {
		l.queue = append(l.queue, g.waiter(claim.Request{ID: id + 10}))
	}
	group := l.next()
	if len(group) == 0 || len(group) > 2 || group[0].request.ID != 10 {
		t.Fatalf("the first group: %v", group)
	}
	l.back(group)
	var decided []claim.ID
	for group := l.next(); group != nil; group = l.next() {
		for _, w := range group {
			decided = append(decided, w.request.ID)
		}
	}
	if len(decided) != 3 || decided[0] != 10 || decided[1] != 11 || decided[2] != 12 {
		t.Errorf("decided: %v", decided)
	}
}
