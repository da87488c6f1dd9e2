package housekeeping_test

import (
	"testing"
	"time"

	"dropbell/domain/housekeeping"
)

// A step is behind from its first unfinished run until a run finishes.
func TestBehind(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	since := func(d time.Duration) *time.Time {
		at := now.Add(-d)
		return &at
	}
	for name, c := range map[string]struct {
		since  *time.Time
		behind bool
		lasts  time.Duration
	}{
		"finished":                   {nil, false, 0},
		"behind":                     {since(time.Hour), true, time.Hour},
		"a clock that is a bit late": {since(-time.Second), true, 0},
	} {
		s := housekeeping.Step{BehindSince: c.since}
		if s.Behind() != c.behind || s.BehindFor(now) != c.lasts {
			t.Errorf("%s: %v for %v", name, s.Behind(), s.BehindFor(now))
		}
	}
}
