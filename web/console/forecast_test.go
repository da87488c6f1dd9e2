package console

import (
	"testing"
	"time"

	"dropbell/domain/staff"
)

func TestForecast(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Viewer)
	b.get("/forecast").is(200).has("Nothing is due")
	d := g.published(10, 2*time.Hour)
	g.exec(`insert into bookings values ($1, 1, 0, 5000), ($1, 1, 2, 200000)`, d.ID)
	b.get("/forecast").is(200).has("50,000 of 205,000 reminders would miss their opening", "SMS: 6 min 40 s, 25% would miss the opening",
		"500 per second, assumed", "at least 670 messages per second", "Have 25% of the reminders go out on another channel.", "Nothing is due on: E-mail, Web push, Webhook.", "5 min before").
		hasNot("later: other drops")
	g.exec(`update channel_settings set rate_per_second = 100, paused = true where channel = 2`)
	b.get("/forecast").is(200).has("100 per second, the configured limit", "Raise the channel’s limit to at least 670", "170,000 (85%)", "This channel is paused")
	g.exec(`update bookings set booked = 20000 where channel = 2`)
	b.get("/forecast").is(200).has("25,000 reminders, all in time", "in time, 1 min 40 s to spare").hasNot("would miss the opening")
}

// Two drops that stand in each other's way are told apart by opening one later.
func TestForecastKnowsWhenToOpenLater(t *testing.T) {
	g := newRig(t)
	first, second := g.published(10, 2*time.Hour), g.published(11, 2*time.Hour)
	g.exec(`update templates set name = 'Tea time' where id = $1`, second.ID)
	g.exec(`update slots set opens_at = $1, due_at = $1::timestamptz - slot * interval '5 minutes'`, first.OpensAt)
	g.exec(`insert into bookings values ($1, 1, 2, 100000), ($2, 1, 2, 120000)`, first.ID, second.ID)
	b := g.as(staff.Viewer)
	b.get("/forecast").is(200).has("“Tea time” 5 min later: other drops need the channel")
	limited := g.as(staff.Viewer, 10).get("/forecast").is(200)
	limited.has("Moon cake night", "A drop of another shop", "220,000").hasNot("Tea time", "/templates/2\"")
}
