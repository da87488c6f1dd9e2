package app

import (
	"context"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/flight"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
	"dropbell/domain/template"
)

// gonePages answers HTTP 404 while it is true.
type gonePages bool

func (g *gonePages) Call(context.Context, string) int {
	if *g {
		return 404
	}
	return 200
}

// TestFlightSweep: a check is stored by the sweep, a red one is an alert until it is corrected, and a drop whose stored check is red
// is published only with a reason.
func TestFlightSweep(t *testing.T) {
	f := pgtest.New(t)
	stores, gone := NewStores(f.DB), gonePages(true)
	templates := &template.Service{Store: stores.Templates, Now: time.Now}
	checks := NewFlight(stores, Flight{Doors: &door.Service{Store: stores.Templates, Templates: templates, Members: stores.Doors, Segments: stores.Segments, Now: time.Now},
		Forecaster: &forecast.Forecaster{Store: stores.Forecasts, Now: time.Now}, Texts: message.Stored{Store: stores.Messages}, Links: &gone, Now: time.Now,
		Channels: func(context.Context) (delivery.ChannelSet, error) {
			return delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS), nil
		}})
	drop := f.Published(2 * time.Hour)
	f.Exec(`update templates set claim_url = 'https://shop.example/gone' where id = $1`, drop.ID)
	alerts := func() (n int) {
		t.Helper()
		list, err := stores.Alerts.Conditions(t.Context())
		f.Must(err)
		for _, c := range list {
			if c.Kind == "flight" && c.Template == drop.ID {
				n++
			}
		}
		return n
	}
	f.Must(checks.Sweep(t.Context()))
	c, ok, err := checks.Kept(t.Context(), drop.ID)
	if err != nil || !ok || c.Level() != flight.Red || c.Count(flight.Red) != 1 {
		t.Fatalf("%+v %v %v", c, ok, err)
	}
	if alerts() != 1 {
		t.Error("the red check is no alert")
	}
	stored, err := stores.Templates.Template(t.Context(), drop.ID)
	f.Must(err)
	if err := checks.Publishable(t.Context(), stored, ""); err == nil {
		t.Error("a red drop is publishable without a reason")
	}
	if err := checks.Publishable(t.Context(), stored, "the page is published at noon"); err != nil {
		t.Error(err)
	}
	gone = false
	f.Exec(`update flight_checks set checked_at = now() - interval '11 minutes'`)
	f.Must(checks.Sweep(t.Context()))
	if n := alerts(); n != 0 {
		t.Errorf("%d alerts after the correction", n)
	}
	if err := checks.Publishable(t.Context(), stored, ""); err != nil {
		t.Error(err)
	}
	if reds, err := checks.Reds(t.Context(), stored); err != nil || len(reds) != 0 {
		t.Error(reds, err)
	}
}
