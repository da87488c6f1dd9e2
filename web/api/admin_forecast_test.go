package api_test

import (
	"context"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	messagesdb "dropbell/adapters/postgres/messages"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/flight"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
)

func TestForecast(t *testing.T) { testForecast(t) }

// testForecast: future slots with the rate of their channel, and the stored forecast of a finished
// slot next to its outcome.
func testForecast(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	path := "/admin/templates/" + id + "/forecast"
	a := r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	if a.at("channels.0") != nil || a.at("outcomes.0") != nil || a.at("error") != nil || a.at("median_error") != nil || a.at("median_drops") != 0.0 {
		t.Errorf("before the first booking: %s", a.Body)
	}
	r.exec(`insert into bookings (template_id, slot, channel, booked) values ($1, 1, 1, 100), ($1, 2, 1, 100)`, id)
	r.exec(`insert into reservations (template_id, user_id, slots) select $1, n, 3 << 12 from generate_series(1, 100) n`, id)
	r.exec(`insert into users (id, email) select n, case when n > 10 then 'u@shop.example' else '' end from generate_series(1, 100) n`)
	r.exec(`insert into channel_rates select 1, now() + n * interval '1 second', 10 * n, 1000 from generate_series(1, 3) n`)
	a = r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	for at, want := range map[string]any{"channels.0.channel": "email", "channels.0.rate_per_second": 20.0, "channels.0.rate_source": "measured", "channels.0.measured_slots": 3.0,
		"channels.0.measured_low": 10.0, "channels.0.measured_high": 30.0, "channels.0.slots.0.minutes": 10.0, "channels.0.slots.0.booked": 100.0, "channels.0.slots.0.messages": 90.0,
		"channels.0.slots.1.minutes": 5.0, "channels.0.missed": 0.0, "channels.0.missed_low": 0.0, "channels.0.missed_high": 0.0} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
	r.exec(`update slots set state = 'finished', fired_at = now(), finished_at = now() where template_id = $1 and slot = 2`, id)
	r.exec(`insert into slot_results (slot_id, channel, reserved, sent, skipped, expired, done_at) select id, 1, 100, 72, 10, 18, now() from slots where template_id = $1 and slot = 2`, id)
	r.exec(`insert into slot_forecasts select id, 1, opens_at, due_at, 100, 90, 0, 20, due_at from slots where template_id = $1 and slot = 2`, id)
	a = r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	for at, want := range map[string]any{"outcomes.0.channel": "email", "outcomes.0.minutes": 10.0, "outcomes.0.messages": 90.0, "outcomes.0.sent": 72.0, "outcomes.0.expired": 18.0,
		"outcomes.0.error": 0.2, "outcomes.1": nil, "error": 0.2, "median_error": nil, "channels.0.slots.1": nil} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
	r.exec(`update slot_forecasts set opens_at = now()`) // the drop has opened
	if a = r.want(r.call(r.admin(), "GET", path, nil), 200, ""); a.at("median_error") != 0.2 || a.at("median_drops") != 1.0 {
		t.Errorf("of the last drops: %s", a.Body)
	}
	r.want(r.call(r.admin(), "GET", "/admin/templates/999999/forecast", nil), 404, "template_not_found")
}

// flights are the flight checks of the fixture's drops.
func (r *fixture) flights(doors *door.Service, forecasts dropsdb.Forecasts, channels delivery.ChannelSet) *flight.Service {
	return app.NewFlight(app.NewStores(r.db), app.Flight{Doors: doors, Texts: message.Stored{Store: messagesdb.NewMessages(r.db)}, Now: r.now, Forecaster: &forecast.Forecaster{Store: forecasts, Now: r.now},
		Channels: func(context.Context) (delivery.ChannelSet, error) { return channels, nil }})
}

func TestFlight(t *testing.T) { testFlight(t) }

// testFlight: the findings about a drop with reminders that cannot be sent in time, and with the wave that is late.
func testFlight(t *testing.T) {
	r := newFixture(t, nil)
	id := r.drop(2 * time.Hour)
	path := "/admin/templates/" + id + "/flight"
	a := r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	if a.at("level") != "green" || a.at("findings.0.point") != "users" || a.at("findings.0.do") != nil || a.at("waves.0") != nil {
		t.Errorf("without reservations: %s", a.Body)
	}
	r.exec(`insert into bookings (template_id, slot, channel, booked) values ($1, 1, 1, 10000)`, id)
	r.exec(`insert into reservations (template_id, user_id, slots) select $1, n, 1 << 12 from generate_series(1, 100) n`, id)
	r.exec(`insert into users (id, email) select n, 'u@shop.example' from generate_series(1, 100) n`)
	r.exec(`insert into channel_rates select 1, now() + n * interval '1 second', 1, 1000 from generate_series(1, 3) n`)
	a = r.want(r.call(r.admin(), "GET", path, nil), 200, "")
	for at, want := range map[string]any{"level": "red", "findings.1.point": "providers", "findings.1.level": "red", "waves.0.minutes": 5.0, "waves.0.channel": "email", "waves.0.booked": 10000.0,
		"waves.0.messages": 10000.0, "waves.0.held_out": 0.0, "waves.0.no_contact": 0.0, "waves.0.missed": 9700.0} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
	r.want(r.call(r.admin(), "GET", "/admin/templates/999999/flight", nil), 404, "template_not_found")
}
