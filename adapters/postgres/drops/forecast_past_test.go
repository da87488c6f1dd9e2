package drops_test

import (
	"math"
	"slices"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/template"
)

// TestContactsOfBookings: of 4,000 users who booked push, 3,516 have no phone. Users who opted
// out, suppressed addresses and unverified numbers count as having no contact. Bookings of
// other channels and other templates do not count.
func TestContactsOfBookings(t *testing.T) {
	w := newFixture(t)
	forecasts := dropsdb.NewForecasts(w.DB)
	read := func(verified bool) forecast.Contacts {
		t.Helper()
		got, err := forecasts.Contacts(t.Context(), []int64{7, 8, 9}, verified)
		if w.Must(err); got[9] != (forecast.Contacts{}) {
			t.Errorf("of a template without bookings: %v", got[9])
		}
		return got[7]
	}
	// Only every tenth user of the app has a row. All users book push of slot 1, app of slot 2
	// and webhook.
	w.Exec(`insert into reservations (template_id, user_id, slots) select 7, n, (1::bigint << 36) | 2 | (1::bigint << 48) from generate_series(1, 800) n`)
	w.Exec(`insert into reservations (template_id, user_id, slots) select 8, n, 1::bigint << 36 from generate_series(1, 800) n`)
	w.Exec(`insert into users (id, devices, opt_outs) select n, case n % 20 when 0 then '[{"platform":"ios"}]' else '[]' end::jsonb, case n when 20 then 8 when 30 then 1 else 0 end
		from generate_series(10, 800, 10) n`)
	if c := read(false); c[delivery.WebPush].Booked != 800 || c[delivery.WebPush].Reached != 39 || c[delivery.App].Booked != 800 || c[delivery.App].Reached != 799 ||
		c[delivery.Webhook].Reached != 800 || c[delivery.Email].Booked != 0 {
		t.Errorf("%+v", c)
	}
	w.Exec(`update reservations set slots = (1 << 12) | (1 << 24) where template_id = 7`)
	w.Exec(`update users set email = 'U' || id || '@shop.example', phone = '+4915' || id where id <= 400`)
	w.Exec(`insert into suppressions (address, reason) values ('u100@shop.example', 'bounced')`)
	w.Exec(`insert into suppressions (address, reason, released_at) values ('u200@shop.example', 'bounced', now())`)
	w.Exec(`update users set phone_verified_at = now() where id <= 40`)
	if c := read(false); c[delivery.Email].Booked != 800 || c[delivery.Email].Reached != 39 || c[delivery.SMS].Reached != 40 {
		t.Errorf("%+v", c)
	}
	if c := read(true); c[delivery.SMS].Reached != 4 {
		t.Errorf("verified alone: %+v", c)
	}
}

// TestContactsAreSampled: users with ids close together count with their full number, although
// no more rows are read of them than of other users.
func TestContactsAreSampled(t *testing.T) {
	w := newFixture(t)
	// 4,000 users have ids close together; only the newest 484 of them have a phone. 200 users
	// have ids far apart and a phone.
	w.Exec(`insert into reservations (template_id, user_id, slots) select 7, n, 1::bigint << 36 from generate_series(1, 4000) n`)
	w.Exec(`insert into users (id, devices) select n, case when n > 3516 then '[{"platform":"ios"}]' else '[]' end::jsonb from generate_series(1, 4000) n`)
	share := func() float64 {
		t.Helper()
		got, err := dropsdb.NewForecasts(w.DB).Contacts(t.Context(), []int64{7}, false)
		w.Must(err)
		return got[7][delivery.WebPush].Reached / got[7][delivery.WebPush].Booked
	}
	if got := share(); math.Abs(got-0.121) > 0.03 {
		t.Errorf("%f of the bookings have a phone, not 484 of 4,000", got)
	}
	w.Exec(`insert into reservations (template_id, user_id, slots) select 7, n * 1000000000000000, 1::bigint << 36 from generate_series(1, 9000, 45) n`)
	w.Exec(`insert into users (id, devices) select n * 1000000000000000, '[{"platform":"ios"}]' from generate_series(1, 9000, 45) n`)
	if got := share(); math.Abs(got-684.0/4200) > 0.06 {
		t.Errorf("%f of the bookings have a phone, not 684 of 4,200", got)
	}
}

// TestForecastsAreKeptUntilSlotsFire: the last forecast of a waiting slot is kept. A forecast
// of a fired slot does not change. A forecast made for a slot that is overdue does not count
// as made before.
func TestForecastsAreKeptUntilSlotsFire(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	forecasts := dropsdb.NewForecasts(m.DB)
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 300), pgtest.Reminders(delivery.Webhook, 60, 5)...)
	m.RelayCounts()
	keep := func(messages, missed int64) {
		t.Helper()
		jobs, err := forecasts.Jobs(t.Context(), pgtest.Clock().Add(3*time.Hour))
		m.Must(err)
		list := forecast.Forecast(jobs, forecast.Rate{PerSecond: 50}, pgtest.Clock())
		for i := range list {
			list[i].Booked, list[i].Messages, list[i].Missed = list[i].Messages, messages, missed
		}
		m.Must(forecasts.Keep(t.Context(), list))
	}
	keep(290, 0)
	keep(280, 5)
	m.CutSlot(tpl, 12, 1000)
	keep(270, 0) // slot 12 is being sent: its job is in the list, and is not kept
	m.Drain()
	m.Finish(tpl)
	past, err := forecasts.PastForecasts(t.Context(), tpl.ID)
	m.Must(err)
	if len(past) != 2 || past[0].Slot != 12 || past[0].Booked != 300 || past[0].Messages != 280 || past[0].Missed != 5 || past[0].InTime() != 275 || past[0].PerSecond != 50 ||
		past[1].Slot != 1 || past[1].Messages != 270 {
		t.Fatalf("%+v", past)
	}
	c, err := dropsdb.NewCockpits(m.DB).Cockpit(t.Context(), tpl.ID, nil)
	m.Must(err)
	outcomes := forecast.OutcomesOf(past, c)
	if len(outcomes) != 1 || outcomes[0].Sent != 300 || outcomes[0].DoneAt == nil || math.Abs(outcomes[0].Error()-25.0/300) > 1e-9 {
		t.Errorf("%+v", outcomes)
	}
	m.Exec(`update slots set due_at = now() - interval '1 second' where slot = 1`)
	keep(260, 0)
	if n := m.Number(`select messages from slot_forecasts f join slots s on s.id = f.slot_id where s.slot = 1`); n != 270 {
		t.Errorf("a forecast made after the due instant was kept: %d", n)
	}
}

// TestErrorsOfTheLastDrops: the errors are of drops that have opened, the latest first, and
// computed as the domain does.
func TestErrorsOfTheLastDrops(t *testing.T) {
	w := newFixture(t)
	forecasts := dropsdb.NewForecasts(w.DB)
	read := func(limit int) []float64 {
		t.Helper()
		list, err := forecasts.Errors(t.Context(), limit)
		w.Must(err)
		return list
	}
	if list := read(10); len(list) != 0 {
		t.Errorf("of nothing: %v", list)
	}
	var drops []template.Template
	for range 4 {
		drops = append(drops, w.Published(2*time.Hour))
	}
	for i, d := range drops[:3] {
		w.Exec(`update slots set opens_at = now() - $2 * interval '1 hour', state = 'finished' where template_id = $1`, d.ID, i+1)
	}
	// Each drop has two slots, with forecasts of 100 and 50 messages in time. Ten times the
	// drop's number fewer messages were sent.
	w.Exec(`insert into slot_forecasts select id, 1, opens_at, now(), 120, 110, case slot when 1 then 10 else 60 end, 5, now() from slots where slot <= 2`)
	w.Exec(`insert into slot_results (slot_id, channel, reserved, sent) select s.id, 1, 120, case slot when 1 then 100 else 50 end - 10 * s.template_id from slots s where slot <= 2`)
	want := make([]float64, 3)
	for i := range want {
		off := int64(10 * drops[i].ID)
		list := []forecast.Outcome{{PastForecast: forecast.PastForecast{Messages: 110, Missed: 10}, Counts: delivery.Counts{Sent: 100 - off}},
			{PastForecast: forecast.PastForecast{Messages: 110, Missed: 60}, Counts: delivery.Counts{Sent: 50 - off}}}
		want[i] = forecast.ErrorOf(list)
	}
	if list := read(10); !slices.EqualFunc(list, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
		t.Errorf("%v, want %v", list, want)
	}
	if list := read(2); len(list) != 2 {
		t.Errorf("%v", list)
	}
	if a, err := (&forecast.Forecaster{Past: forecasts}).Accuracy(t.Context()); err != nil || a.Drops != 3 || math.Abs(a.Median-want[1]) > 1e-9 {
		t.Errorf("%+v, %v", a, err)
	}
}
