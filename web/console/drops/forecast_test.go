package drops_test

import (
	"context"
	"strings"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestForecast(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	b.Get("/forecast").Is(200).Has("Nothing is due")
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into bookings values ($1, 1, 0, 5000), ($1, 1, 2, 200000)`, d.ID)
	// In the zone of the drop's shop, as on the drop's own page.
	g.Exec(`update shops set timezone = 'America/New_York' where number = 10`)
	d.ShopTimezone = "America/New_York"
	l := g.Languages.Default()
	opens, due := l.DateTime(d.OpensAt, d.Zone()), l.Clock(d.OpensAt.Add(-5*time.Minute), d.Zone())
	b.Get(shell.TemplateURL(d.ID)).Is(200).Has(opens)
	b.Get("/forecast").Is(200).Has(opens, "<span>"+due).HasNot(l.DateTime(d.OpensAt, g.DefaultZone))
	b.Get("/forecast").Is(200).Has("50,000 of 205,000 reminders would miss their opening", "SMS: 6 min 40 s, 25% would miss the opening",
		"500 per second, assumed", "at least 670 messages per second", "Send 25% of the reminders through another channel.", "Nothing is due on: E-mail, Push, Webhook.", "5 min before").
		HasNot("later: other drops")
	g.Exec(`update channel_settings set rate_per_second = 100, paused = true where channel = 2`)
	b.Get("/forecast").Is(200).Has("100 per second, the configured limit", "Raise the channel’s limit to at least 670", "170,000 (85%)", "This channel is paused")
	g.Exec(`update bookings set booked = 20000 where channel = 2`)
	b.Get("/forecast").Is(200).Has("25,000 reminders, all in time", "in time, 1 min 40 s before the opening").HasNot("would miss the opening")
}

// For two drops that compete for a channel the forecast proposes opening one of them later.
func TestForecastKnowsWhenToOpenLater(t *testing.T) {
	g := consoletest.New(t)
	first, second := g.Published(10, 2*time.Hour), g.Published(11, 2*time.Hour)
	g.Exec(`update templates set name = 'Tea time' where id = $1`, second.ID)
	g.Exec(`update slots set opens_at = $1, due_at = $1::timestamptz - slot * interval '5 minutes'`, first.OpensAt)
	g.Exec(`insert into bookings values ($1, 1, 2, 100000), ($2, 1, 2, 120000)`, first.ID, second.ID)
	b := g.As(staff.Viewer)
	b.Get("/forecast").Is(200).Has("“Tea time” 5 min later: other drops need the channel")
	limited := g.As(staff.Viewer, 10).Get("/forecast").Is(200)
	limited.Has("Moon cake night", "A drop of another shop", "220,000").HasNot("Tea time", "/templates/65\"")
}

// The page of a forecast states the assumptions of the forecast.
func TestForecastOfChannelsThatStandStill(t *testing.T) {
	open := true
	g := consoletest.New(t, consoletest.Breakers(func(context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
		for i := range all {
			all[i].State = delivery.CircuitClosed
		}
		if open {
			all[delivery.SMS] = delivery.Circuit{State: delivery.CircuitOpen, Failures: 12}
		}
		return all, nil
	}))
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into bookings values ($1, 1, 1, 30), ($1, 1, 2, 20)`, d.ID)
	g.Exec(`update channel_settings set paused = true where channel = 1`)
	b := g.As(staff.Viewer)
	card := func() string {
		return strings.SplitN(strings.SplitN(b.Get(shell.TemplateURL(d.ID)).Is(200).Body, `<section id="forecast-`, 2)[1], "</section>", 2)[0]
	}
	b.Get("/").Is(200).Has("SMS: the provider fails", "In time if the provider works again", "In time once resumed").HasNot("All is well")
	b.Get("/forecast").Is(200).Has("all in time once this works again: E-mail, SMS", "if the provider works again", "once resumed", "The provider of this channel fails").HasNot(`class="badge is-good"`)
	if c := card(); !strings.Contains(c, "In time if the provider works again") || strings.Contains(c, "is-good") {
		t.Errorf("the template's card says %s", c)
	}
	open = false
	g.Exec(`update channel_settings set paused = false`)
	b.Get("/").Is(200).Has("All is well").HasNot("the provider fails")
	g.Must(g.Stores.Channels.RecordCalls(t.Context(), "a", []deliverydb.ProviderCalls{{Channel: delivery.SMS, Calls: 4, Messages: 40, Failed: 40, Error: "HTTP 503"}}))
	b.Get("/").Is(200).Has("SMS: no call was successful in the last minute").HasNot("All is well")
	b.Get("/channels").Is(200).Has("No successful calls")
}
