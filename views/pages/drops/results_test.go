package drops

import (
	"testing"
	"time"

	"dropbell/domain/reminder"
)

// TestUntil keeps the points until the end, and always a line's first two.
func TestUntil(t *testing.T) {
	at := time.Date(2026, 11, 25, 20, 0, 0, 0, time.UTC)
	points := []reminder.Growth{{At: at}, {At: at.Add(2 * time.Minute)}, {At: at.Add(3 * time.Minute)}, {At: at.Add(4 * time.Minute)}}
	for end, want := range map[time.Duration]int{time.Minute: 2, 2 * time.Minute: 2, 3 * time.Minute: 3, time.Hour: 4} {
		if got := until(points, at.Add(end)); len(got) != want {
			t.Errorf("until %v: %d points, want %d", end, len(got), want)
		}
	}
	if got := until(nil, at); len(got) != 0 {
		t.Errorf("%v", got)
	}
	for start, want := range map[time.Duration]int{0: 4, 2 * time.Minute: 3, 150 * time.Second: 3, time.Hour: 2} {
		if got := since(points, at.Add(start)); len(got) != want {
			t.Errorf("since %v: %d points, want %d", start, len(got), want)
		}
	}
	if got := since(nil, at); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
