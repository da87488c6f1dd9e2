package drops_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func forecastJobs(w *pgtest.Fixture, within time.Duration) map[string]int64 {
	w.Helper()
	jobs, err := dropsdb.NewForecasts(w.DB).Jobs(w.Context(), pgtest.Clock().Add(within))
	w.Must(err)
	found := map[string]int64{}
	for i, j := range jobs {
		if i > 0 && j.DueAt.Before(jobs[i-1].DueAt) {
			w.Errorf("job %d is out of order", i)
		}
		if j.Name == "" || j.Deadline.Sub(j.DueAt) <= 0 {
			w.Errorf("%+v", j)
		}
		found[fmt.Sprintf("%d/%d/%s", j.TemplateID, j.Slot, j.Channel)] += j.Messages
	}
	return found
}

// TestForecastJobsFollowTheSlots: a job has the bookings of a waiting slot, or
// the remaining reminders of a slot that is being sent. Done, stopped and
// cancelled slots have no job.
func TestForecastJobsFollowTheSlots(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	near, far := m.Published(2*time.Hour), m.Published(5*time.Hour)
	m.ReserveAll(near, pgtest.Users(1, 10), append(pgtest.Reminders(delivery.Webhook, 60, 5), pgtest.Reminders(delivery.App, 60)...)...)
	m.ReserveAll(far, pgtest.Users(1, 3), pgtest.Reminders(delivery.App, 5)...)
	m.Cancel(near, 10, pgtest.Reminders(delivery.Webhook, 5)...)
	m.RelayCounts()
	key := func(tpl template.Template, k int, c delivery.Channel) string {
		return fmt.Sprintf("%d/%d/%s", tpl.ID, k, c)
	}
	expect := func(when string, within time.Duration, want map[string]int64) {
		t.Helper()
		if got := forecastJobs(m.Fixture, within); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	booked := map[string]int64{key(near, 12, delivery.Webhook): 10, key(near, 1, delivery.Webhook): 9, key(near, 12, delivery.App): 10}
	expect("within three hours", 3*time.Hour, booked)
	expect("within an hour and a half", 90*time.Minute, map[string]int64{key(near, 12, delivery.Webhook): 10, key(near, 12, delivery.App): 10})
	booked[key(far, 1, delivery.App)] = 3
	expect("within six hours", 6*time.Hour, booked)
	delete(booked, key(far, 1, delivery.App))

	m.Cause = func(id user.ID) string { return map[bool]string{true: "status 500"}[id == 1] }
	m.Daemon.Policy.MaxAttempts = 5
	m.CutSlot(near, 12, 4)
	expect("fired", 3*time.Hour, booked)
	m.Must(m.Daemon.RunNext(t.Context(), delivery.Webhook)) // users 1–4, of whom the first waits for a retry
	booked[key(near, 12, delivery.Webhook)] = 7
	expect("going out", 3*time.Hour, booked)
	m.Must(m.Daemon.Drain(t.Context(), delivery.App))
	delete(booked, key(near, 12, delivery.App))
	expect("app is done", 3*time.Hour, booked)
	m.MoveBy(near, time.Hour)
	expect("moved", 4*time.Hour, map[string]int64{key(near, 12, delivery.Webhook): 10, key(near, 1, delivery.Webhook): 9, key(near, 12, delivery.App): 10})
	m.Do(near, template.Cancelling)
	expect("cancelled", 4*time.Hour, map[string]int64{})
}

// TestRatesAreMeasuredOnce: the rate is the median of the last ten slots with
// enough messages that loaded the channel. A later replay of dead letters does
// not change the throughput.
func TestRatesAreMeasuredOnce(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	store := dropsdb.NewForecasts(m.DB)
	rates := func() (measured [delivery.Channels]forecast.Throughput, limits [delivery.Channels]float64) {
		t.Helper()
		measured, limits, err := store.Rates(t.Context())
		m.Must(err)
		return measured, limits
	}
	if measured, limits := rates(); measured != [delivery.Channels]forecast.Throughput{} || limits != [delivery.Channels]float64{} {
		t.Errorf("a new database knows %v %v", measured, limits)
	}
	m.Bury(1, 199, 100)
	if measured, _ := rates(); measured[delivery.Webhook].Slots != 0 {
		t.Errorf("measured %v with too few messages", measured)
	}
	m.Cause = func(id user.ID) string { return map[bool]string{true: "status 500"}[id > 250] }
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 260), pgtest.Reminders(delivery.Webhook, 5)...)
	m.CutSlot(tpl, 1, 100)
	m.Drain()
	m.Exec(`update batches set started_at = '2026-01-01 00:00:00+00', finished_at = '2026-01-01 00:00:05+00' where template_id = $1`, tpl.ID)
	m.Finish(tpl)
	if measured, _ := rates(); measured[delivery.Webhook] != (forecast.Throughput{PerSecond: 50, Low: 50, High: 50, Slots: 1}) {
		t.Errorf("measured %v, 250 went out in 5 s", measured[delivery.Webhook])
	}
	m.Cause = func(user.ID) string { return "" }
	m.Work(delivery.Replay, delivery.DeadLetterFilter{}, 0)
	m.Drain()
	m.Finish(tpl)
	if n := m.Number(`select count(*) from channel_rates`); n != 1 {
		t.Errorf("%d measurements of one slot", n)
	}
	for i := range 11 {
		m.Exec(`insert into channel_rates (channel, at, per_second, messages) values (4, now() + $1 * interval '1 second', $2, 1000)`, i+1, float64(100-i))
	}
	m.Exec(`update channel_settings set rate_per_second = 30 where channel = 2`)
	measured, limits := rates()
	if want := [delivery.Channels]forecast.Throughput{delivery.Webhook: {PerSecond: 94.5, Low: 90, High: 99, Slots: 10}}; measured != want {
		t.Errorf("measured %v, want the median of the last ten", measured)
	}
	m.Exec(`update channel_rates set messages = 400 where per_second in (98, 99)`)
	if measured, _ := rates(); measured[delivery.Webhook] != (forecast.Throughput{PerSecond: 93.5, Low: 90, High: 97, Slots: 8}) {
		t.Errorf("measured %v, slots with fewer than half of the messages count", measured[delivery.Webhook])
	}
	if want := [delivery.Channels]float64{delivery.SMS: 30}; limits != want {
		t.Errorf("limits %v", limits)
	}
	f := &forecast.Forecaster{Store: store, Now: pgtest.Clock}
	all, err := f.Forecast(t.Context(), time.Hour)
	m.Must(err)
	if all[delivery.Webhook].Rate != (forecast.Rate{PerSecond: 93.5, Source: forecast.Measured}) ||
		all[delivery.SMS].Rate != (forecast.Rate{PerSecond: 30, Source: forecast.Configured}) || all[delivery.App].Rate.Source != forecast.Assumed {
		t.Errorf("%+v", all)
	}
}

func TestSharesOfAndroidPhones(t *testing.T) {
	w := newFixture(t)
	forecasts := dropsdb.NewForecasts(w.DB)
	want := func(apps int, low, high float64) {
		t.Helper()
		got, err := forecasts.AndroidShares(t.Context())
		if w.Must(err); len(got) != apps || apps > 0 && (got[""] < low || got[""] > high || got["shop"] < low/2 || got["shop"] > high/2) {
			t.Errorf("got %v", got)
		}
	}
	want(0, 0, 0)
	w.Exec(`insert into users (id, devices) select n, case n % 8 when 0 then '[]' when 1 then '[{"platform":"android"},{"platform":"android","app":"shop"}]'
		when 2 then '[{"platform":"android"},{"platform":"android"}]' when 3 then '[{"platform":"ios","app":"shop"}]' else '[{"platform":"ios"}]' end::jsonb
		from generate_series(1, 80000) n`)
	want(2, 0.285, 0.286)
	w.Exec(`analyze users`)
	want(2, 0.25, 0.32) // from a sample
}
