package forecast_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// TestForecastCountsContacts: users without a contact take no time and are not missed.
func TestForecastCountsContacts(t *testing.T) {
	push := job(0, 5*time.Minute, 4000)
	push.Channel, push.TemplateID = delivery.WebPush, 7
	mail := job(0, 5*time.Minute, 100)
	mail.Channel, mail.TemplateID = delivery.Email, 8
	store := &rates{jobs: []forecast.Job{push, mail}}
	store.measured[delivery.WebPush] = 10
	var asked []int64
	f := &forecast.Forecaster{Store: store, Now: func() time.Time { return noon }, Contacts: func(_ context.Context, templates []int64) (map[int64]forecast.Contacts, error) {
		asked = templates
		return map[int64]forecast.Contacts{7: {delivery.WebPush: {Booked: 1000, Reached: 121}}}, nil
	}}
	all, err := f.Forecast(t.Context(), time.Hour)
	musttest.OK(t, err)
	p := all[delivery.WebPush].Jobs[0]
	if p.Booked != 4000 || p.Messages != 484 || p.Missed != 0 || p.FinishAt.Sub(noon) != 48400*time.Millisecond {
		t.Errorf("%+v", p)
	}
	if p := all[delivery.Email].Jobs[0]; p.Booked != 100 || p.Messages != 100 {
		t.Errorf("without a sample: %+v", p)
	}
	if len(asked) != 2 || asked[0] != 7 || asked[1] != 8 {
		t.Errorf("asked for %v", asked)
	}
	store.jobs = []forecast.Job{push}
	f.Contacts = func(context.Context, []int64) (map[int64]forecast.Contacts, error) {
		return map[int64]forecast.Contacts{7: {delivery.WebPush: {Booked: 10}}}, nil
	}
	if all, err = f.Forecast(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if p := all[delivery.WebPush].Jobs[0]; p.Messages != 0 || !p.FinishAt.Equal(p.DueAt) {
		t.Errorf("without any phone: %+v", p)
	}
	broken := errors.New("broken")
	f.Contacts = func(context.Context, []int64) (map[int64]forecast.Contacts, error) { return nil, broken }
	if _, err := f.Forecast(t.Context(), time.Hour); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// throughputs is a store of jobs and of one channel's throughput.
type throughputs struct {
	rates
	mail  forecast.Throughput
	limit float64
}

func (s *throughputs) Rates(context.Context) (measured [delivery.Channels]forecast.Throughput, limits [delivery.Channels]float64, err error) {
	measured[delivery.Email], limits[delivery.Email] = s.mail, s.limit
	return measured, limits, nil
}

// TestHowSureAForecastIs: one past slot says little about how the rate varies, several slots say
// more. A limit set by operators is an upper bound of the rate.
func TestHowSureAForecastIs(t *testing.T) {
	mail := job(0, 100*time.Second, 3000)
	mail.Channel = delivery.Email
	for name, c := range map[string]struct {
		mail                forecast.Throughput
		limit               float64
		missed, least, most int64
	}{
		"nothing was measured": {forecast.Throughput{}, 0, 0, 0, 0}, // 500 a second is assumed
		"one past slot":        {forecast.Throughput{PerSecond: 10, Low: 10, High: 10, Slots: 1}, 0, 2000, 1000, 2500},
		"several past slots":   {forecast.Throughput{PerSecond: 20, Low: 15, High: 40, Slots: 4}, 0, 1000, 0, 1500},
		"a limit":              {forecast.Throughput{PerSecond: 20, Low: 15, High: 40, Slots: 4}, 18, 1200, 1200, 1500},
		"a lower limit":        {forecast.Throughput{PerSecond: 20, Low: 15, High: 40, Slots: 4}, 10, 2000, 2000, 2000},
	} {
		f := &forecast.Forecaster{Store: &throughputs{rates{jobs: []forecast.Job{mail}}, c.mail, c.limit}, Now: func() time.Time { return noon }}
		all, err := f.Forecast(t.Context(), time.Hour)
		musttest.OK(t, err)
		got := all[delivery.Email]
		want := got
		want.Missed, want.Least, want.Most, want.Measured = c.missed, c.least, c.most, c.mail
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(forecast.Limit{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestErrorsOfForecasts(t *testing.T) {
	outcome := func(messages, missed, sent int64) forecast.Outcome {
		return forecast.Outcome{PastForecast: forecast.PastForecast{Messages: messages, Missed: missed}, Counts: delivery.Counts{Sent: sent}}
	}
	for _, c := range []struct {
		list []forecast.Outcome
		want float64
	}{
		{nil, 0},
		{[]forecast.Outcome{outcome(0, 0, 0)}, 0},
		{[]forecast.Outcome{outcome(4000, 0, 484)}, 3516.0 / 4000},
		{[]forecast.Outcome{outcome(4000, 2310, 3325)}, 1635.0 / 3325},
		{[]forecast.Outcome{outcome(100, 0, 0), outcome(100, 0, 100)}, 0.5},
		{[]forecast.Outcome{outcome(0, 0, 10)}, 1},
	} {
		if got := forecast.ErrorOf(c.list); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %f, want %f", c.list, got, c.want)
		}
	}
	for _, c := range []struct {
		errors []float64
		want   forecast.Accuracy
	}{{nil, forecast.Accuracy{}}, {[]float64{0.3}, forecast.Accuracy{Drops: 1, Median: 0.3}}, {[]float64{0.9, 0.1, 0.2}, forecast.Accuracy{Drops: 3, Median: 0.2}},
		{[]float64{0.5, 0.25, 0.75, 0}, forecast.Accuracy{Drops: 4, Median: 0.375}}} {
		if got := forecast.AccuracyOf(c.errors); got != c.want {
			t.Errorf("%v: %+v", c.errors, got)
		}
	}
}

// TestOutcomesAreOfFinishedSlots: the messages that a running slot has sent so far say nothing about its forecast.
func TestOutcomesAreOfFinishedSlots(t *testing.T) {
	row := func(id int64, state reminder.SlotState, sent int64) (r reminder.CockpitRow) {
		r.ID, r.Slot.Slot, r.State = id, template.Slot(id), state
		r.Lanes[delivery.SMS].Sent = sent
		return r
	}
	c := reminder.Cockpit{Rows: []reminder.CockpitRow{row(3, reminder.Finished, 30), row(2, reminder.Sending, 5), row(1, reminder.Waiting, 0)}}
	list := forecast.OutcomesOf([]forecast.PastForecast{{SlotID: 2, Channel: delivery.SMS}, {SlotID: 3, Channel: delivery.SMS, Messages: 33}}, c)
	if len(list) != 1 || list[0].SlotID != 3 || list[0].Sent != 30 || list[0].InTime() != 33 {
		t.Errorf("%+v", list)
	}
}

type pastForecasts = forecast.PastForecasts

// kept notes what was to be kept.
type kept struct {
	pastForecasts
	list []forecast.Prognosis
}

func (k *kept) Keep(_ context.Context, list []forecast.Prognosis) error {
	k.list = append(k.list, list...)
	return nil
}

// TestForecastsOfSlotsThatFireSoonAreKept, and no others.
func TestForecastsOfSlotsThatFireSoonAreKept(t *testing.T) {
	at := func(d time.Duration) forecast.Prognosis { return forecast.Prognosis{Job: job(d, time.Hour, 1)} }
	k := &kept{}
	channels := []forecast.ChannelForecast{{Jobs: []forecast.Prognosis{at(0), at(time.Second), at(10 * time.Minute), at(10*time.Minute + 1)}}, {}}
	f := &forecast.Forecaster{Past: k, Now: func() time.Time { return noon }}
	if err := f.Keep(t.Context(), channels); err != nil || len(k.list) != 2 || !k.list[1].DueAt.Equal(noon.Add(10*time.Minute)) {
		t.Errorf("%+v, %v", k.list, err)
	}
	k.list = nil
	if err := f.Keep(t.Context(), channels[1:]); err != nil || k.list != nil {
		t.Errorf("%+v, %v", k.list, err)
	}
}

// TestContactsAreKept for some time, each template's for itself; a failure is not.
func TestContactsAreKept(t *testing.T) {
	now, fail := noon, errors.New("away")
	var reads [][]int64
	contacts := forecast.KeptContacts(time.Minute, func() time.Time { return now }, func(_ context.Context, templates []int64) (map[int64]forecast.Contacts, error) {
		reads = append(reads, templates)
		return map[int64]forecast.Contacts{7: {delivery.App: {Booked: float64(len(reads))}}}, fail
	})
	expect := func(n int, want float64, templates ...int64) {
		t.Helper()
		got, err := contacts(t.Context(), templates)
		if !errors.Is(err, fail) || len(reads) != n || got[7][delivery.App].Booked != want {
			t.Errorf("%v, %v after %v", got, err, reads)
		}
	}
	expect(1, 0, 7)
	fail = nil
	expect(2, 2, 7)
	expect(2, 2, 7)
	expect(3, 2, 7, 8)
	now = now.Add(time.Minute)
	expect(4, 4, 7, 8)
	if last := reads[2]; len(last) != 1 || last[0] != 8 {
		t.Errorf("read again: %v", reads)
	}
}
