package network

import (
	"testing"
	"time"
)

// TestRoundTrips: the round trips follow from how the time grows with the delay, whatever the time
// without a delay is.
func TestRoundTrips(t *testing.T) {
	took := map[int]time.Duration{0: 3 * time.Millisecond, 1: 9 * time.Millisecond, 5: 33 * time.Millisecond}
	if n := roundTrips(took); n != 3 {
		t.Errorf("%v round trips, want 3", n)
	}
	if n := roundTrips(map[int]time.Duration{5: time.Second}); n != 0 {
		t.Errorf("%v round trips of one delay", n)
	}
}
