package drops

import (
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	"dropbell/views/ui"
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

// Channels, slots and the state of reminders are hidden while there are none, unless a channel has trouble.
func TestADropWithoutRemindersShowsNone(t *testing.T) {
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	ctx := ui.With(t.Context(), &ui.Frame{Locale: languages.Match("en"), Now: opens.Add(-time.Hour)})
	quiet := Cockpit{At: opens.Add(-time.Hour), Template: template.Template{Stored: template.Published,
		Spec: template.Spec{Stock: 1, OpensAt: opens, ClosesAt: opens.Add(time.Hour), Opening: template.Opening{OpeningMode: template.ByDraw}}}}
	quiet.Channels[delivery.Email] = delivery.ChannelStatus{Configured: true, CircuitKnown: true, Circuit: delivery.Circuit{State: delivery.CircuitClosed}}
	row := reminder.CockpitRow{Slot: reminder.Slot{Slot: 1, State: reminder.Waiting, DueAt: opens}}
	quiet.Snapshot.Rows = []reminder.CockpitRow{row}
	booked, troubled, claimed := quiet, quiet, quiet
	row.Lanes[delivery.Email].Booked = 5
	booked.Snapshot.Rows = []reminder.CockpitRow{row}
	troubled.Channels[delivery.Email].Paused = true
	claimed.OpeningMode = template.FirstCome
	for name, c := range map[string]struct {
		page             Cockpit
		reminders, clock string
	}{
		"draw":       {quiet, "1", "1"},
		"booked":     {booked, "", ""},
		"troubled":   {troubled, "", ""},
		"first come": {claimed, "1", ""},
	} {
		if cells := c.page.Cells(ctx); cells["reminders.none"] != c.reminders || cells["clock.none"] != c.clock {
			t.Errorf("%s: reminders hidden %q, their state hidden %q", name, cells["reminders.none"], cells["clock.none"])
		}
	}
}
