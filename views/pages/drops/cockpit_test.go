package drops

import (
	"testing"
	"time"

	"dropbell/domain/template"
)

// TestTheClockCountsToTheEnd also where the coupons end before the drop.
func TestTheClockCountsToTheEnd(t *testing.T) {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	closes, until := opens.Add(2*time.Hour), opens.Add(time.Hour)
	drop := template.Template{Stored: template.Published, Spec: template.Spec{Stock: 1, OpensAt: opens, ClosesAt: closes}}
	short := drop
	short.ValidUntil = &until
	for _, c := range []struct {
		drop template.Template
		at   time.Time
		want time.Time
		key  string
	}{
		{drop, opens.Add(-time.Minute), opens, "drop.opens_in"},
		{drop, until, closes, "drop.closes_in"},
		{short, opens, until, "drop.closes_in"},
		{short, until, time.Time{}, "cockpit.over"},
	} {
		if at, key, _ := (Cockpit{Template: c.drop, At: c.at}).next(); !at.Equal(c.want) || key != c.key {
			t.Errorf("at %v: %v %s, want %v %s", c.at, at, key, c.want, c.key)
		}
	}
}
