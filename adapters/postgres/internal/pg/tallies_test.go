package pg

import (
	"testing"
	"time"

	"dropbell/domain/delivery"
)

// A result is kept for some seconds, and forgotten after that.
func TestTalliesAreKeptForSeconds(t *testing.T) {
	var k keptTallies
	now := time.Now()
	k.keep("a", []delivery.FeedbackSum{{OwnerID: 7}}, now)
	if list, ok := k.get("a", now.Add(talliesLife-1)); !ok || len(list) != 1 || list[0].OwnerID != 7 {
		t.Errorf("%v, %t", list, ok)
	}
	if _, ok := k.get("a", now.Add(talliesLife)); ok {
		t.Error("kept for too long")
	}
	if k.keep("b", nil, now.Add(talliesLife)); len(k.all) != 1 {
		t.Errorf("%d are kept", len(k.all))
	}
}
