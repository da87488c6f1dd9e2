package drops

import (
	"testing"
	"time"

	"dropbell/domain/template"
)

// The head of a drop's page shows the opening until it has passed, and then the end. The tab Live
// shows the other instant of the two, also if the coupons end before the drop.
func TestTheClockShowsWhatTheHeadDoesNot(t *testing.T) {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	closes, until := opens.Add(2*time.Hour), opens.Add(time.Hour)
	drop := template.Template{Stored: template.Published, Spec: template.Spec{Stock: 1, OpensAt: opens, ClosesAt: closes}}
	short, off := drop, drop
	short.ValidUntil, off.Stored = &until, template.Cancelled
	for _, c := range []struct {
		drop template.Template
		at   time.Time
		want time.Time
		key  string
	}{
		{drop, opens.Add(-time.Minute), closes, "field.closes_at"},
		{drop, opens, opens, "field.opens_at"},
		{short, opens.Add(-time.Minute), until, "field.closes_at"},
		{short, until, opens, "field.opens_at"},
		{off, opens.Add(-time.Minute), closes, "field.closes_at"},
		{off, closes, closes, "field.closes_at"},
	} {
		if at, key := (Cockpit{Template: c.drop, At: c.at}).other(); !at.Equal(c.want) || key != c.key {
			t.Errorf("at %v: %v %s, want %v %s", c.at, at, key, c.want, c.key)
		}
	}
}
