package forecast_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
)

// mailForecast is the forecast of mails on a channel of that many a second.
func mailForecast(t testing.TB, m forecast.Mails, rate float64, now time.Time, jobs ...forecast.Job) forecast.ChannelForecast {
	t.Helper()
	for i := range jobs {
		jobs[i].Channel = delivery.Email
	}
	store := &rates{jobs: jobs}
	store.measured[delivery.Email] = rate
	f := &forecast.Forecaster{Store: store, Now: func() time.Time { return now }, Mails: m}
	all, err := f.Forecast(t.Context(), 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return all[delivery.Email]
}

func shares(all map[string]float64) func(context.Context, []string) (map[string]float64, error) {
	return func(context.Context, []string) (map[string]float64, error) { return all, nil }
}

// 48,000 of 96,000 mails go to qq.com, which accepts 50 a second: 16 minutes, but a slot has
// five. The channel's own rate would be enough.
func TestTheForecastKnowsTheLimitsOfDomains(t *testing.T) {
	m := forecast.Mails{PerSecond: map[string]int{"qq.com": 50, "gmail.com": 1000, "163.com": 1}, Shares: shares(map[string]float64{"qq.com": 0.5, "gmail.com": 0.25})}
	f := mailForecast(t, m, 1000, noon, job(time.Minute, 5*time.Minute, 96_000))
	if len(f.Limits) != 2 || f.Missed != 33_000 || f.Needed != 0 {
		t.Fatalf("%+v", f)
	}
	gmail, qq := f.Limits[0], f.Limits[1]
	want := gmail
	want.Name, want.Messages, want.Missed, want.Takes, want.Earlier = "gmail.com", 24_000, 0, 24*time.Second, 0
	if diff := cmp.Diff(want, gmail, cmpopts.IgnoreUnexported(forecast.Limit{})); diff != "" {
		t.Errorf("gmail.com (-want +got):\n%s", diff)
	}
	slow := qq
	slow.Name, slow.PerSecond, slow.Messages, slow.Missed, slow.Takes, slow.Earlier = "qq.com", 50, 48_000, 33_000, 16*time.Minute, 11*time.Minute
	if diff := cmp.Diff(slow, qq, cmpopts.IgnoreUnexported(forecast.Limit{})); diff != "" {
		t.Errorf("qq.com (-want +got):\n%s", diff)
	}
	p := f.Jobs[0]
	if p.Missed != 33_000 || !p.FinishAt.Equal(p.Deadline) || p.Over != 11*time.Minute {
		t.Errorf("%+v", p)
	}
	earlier := mailForecast(t, m, 1000, noon, job(time.Minute, 16*time.Minute, 96_000))
	if p := earlier.Jobs[0]; earlier.Missed != 0 || p.FinishAt.Sub(p.DueAt) != 16*time.Minute {
		t.Errorf("%+v", p)
	}
	// A second slot waits for the first one's mails to the domain, not for its others.
	two := mailForecast(t, m, 1000, noon, job(0, 20*time.Minute, 96_000), job(time.Minute, 20*time.Minute, 9_600))
	if p := two.Jobs[1]; two.Missed != 0 || p.FinishAt.Sub(noon) != 16*time.Minute+96*time.Second {
		t.Errorf("%+v", p)
	}
	broken := errors.New("broken")
	failing := &forecast.Forecaster{Store: &rates{jobs: []forecast.Job{{Channel: delivery.Email, DueAt: noon, Deadline: noon.Add(time.Hour), Messages: 1}}}, Now: func() time.Time { return noon },
		Mails: forecast.Mails{PerSecond: m.PerSecond, Shares: func(context.Context, []string) (map[string]float64, error) { return nil, broken }}}
	if _, err := failing.Forecast(t.Context(), time.Hour); !errors.Is(err, broken) {
		t.Error(err)
	}
	if f := mailForecast(t, m, 1000, noon); len(f.Limits) != 0 {
		t.Errorf("nothing is due: %+v", f.Limits)
	}
}

// A slot misses the mails that the channel cannot send or the mails that the domains do not
// accept, whichever number is greater. It never misses more mails than it has.
func TestMissedMailsOfOneSlot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, window := int64(rapid.IntRange(0, 100_000).Draw(rt, "messages")), rapid.IntRange(1, 3600).Draw(rt, "window")
		rate := rapid.Float64Range(1, 500).Draw(rt, "rate")
		a, b := rapid.Float64Range(0, 0.5).Draw(rt, "a"), rapid.Float64Range(0, 0.5).Draw(rt, "b")
		limits := map[string]int{"a.example": rapid.IntRange(1, 300).Draw(rt, "limit a"), "b.example": rapid.IntRange(1, 300).Draw(rt, "limit b")}
		f := mailForecast(t, forecast.Mails{PerSecond: limits, Shares: shares(map[string]float64{"a.example": a, "b.example": b})}, rate, noon,
			job(0, time.Duration(window)*time.Second, n))
		over := func(messages, perSecond float64) float64 { return max(0, messages-perSecond*float64(window)) }
		want := max(over(float64(n), rate), over(a*float64(n), float64(limits["a.example"]))+over(b*float64(n), float64(limits["b.example"])))
		if got := float64(f.Missed); got < want-2 || got > want+2 || f.Missed > n {
			rt.Fatalf("%v missed, not %v", got, want)
		}
		if p := f.Jobs[0]; p.FinishAt.After(p.Deadline) {
			rt.Fatalf("goes on behind the deadline: %+v", p)
		}
	})
}

// Mails beyond the daily number of a warm-up plan wait for the next day, or are missed. Mails
// with the nearest opening come first.
func TestTheForecastKnowsTheWarmUpPlan(t *testing.T) {
	evening := time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC)
	at := func(d, window time.Duration, n int64) forecast.Job {
		return forecast.Job{DueAt: evening.Add(d), Deadline: evening.Add(d + window), Messages: n}
	}
	sent := int64(40)
	m := forecast.Mails{WarmUp: delivery.WarmUp{Start: evening.Truncate(24 * time.Hour), First: 200, Factor: 1.5},
		Sent: func(context.Context, time.Time) (int64, error) { return sent, nil }}
	f := mailForecast(t, m, 500, evening, at(0, 3*time.Hour, 100), at(10*time.Minute, 30*time.Minute, 90), at(20*time.Minute, 30*time.Minute, 7))
	if len(f.Limits) != 1 || f.Missed != 37 {
		t.Fatalf("%+v", f)
	}
	l := f.Limits[0]
	want := l
	want.Name, want.Today, want.Tomorrow, want.Messages, want.Missed = forecast.WarmUpLimit, 160, 300, 197, 37
	if diff := cmp.Diff(want, l, cmpopts.IgnoreUnexported(forecast.Limit{})); diff != "" {
		t.Errorf("limit (-want +got):\n%s", diff)
	}
	if a, b, c := f.Jobs[0], f.Jobs[1], f.Jobs[2]; a.Missed != 0 || b.Missed != 30 || c.Missed != 7 || a.ByPlan || !b.ByPlan || !c.ByPlan {
		t.Errorf("%+v\n%+v\n%+v", a, b, c)
	}
	sent = 500 // more than the plan has, since it was changed
	f = mailForecast(t, m, 500, evening, at(0, 3*time.Hour, 310), at(0, 2*time.Hour, 50))
	if a, b := f.Jobs[0], f.Jobs[1]; f.Limits[0].Today != 0 || a.Missed+b.Missed != 60 || b.Missed != 0 || a.FinishAt.Before(evening.Add(time.Hour)) {
		t.Errorf("%+v\n%+v", a, b)
	}
	m.WarmUp.First = 9_000_000 // from the next day on there is no limit
	f = mailForecast(t, m, 500, evening, at(0, 3*time.Hour, 10))
	if l := f.Limits[0]; l.Tomorrow != -1 || l.Missed != 0 {
		t.Errorf("%+v", l)
	}
	m.WarmUp.Start = evening.AddDate(-1, 0, 0)
	if f := mailForecast(t, m, 500, evening, at(0, 3*time.Hour, 10)); len(f.Limits) != 0 {
		t.Errorf("a plan that is over: %+v", f.Limits)
	}
}

// The shares of domains are read once for all calls within some minutes, and again after a
// failure.
func TestSharesAreKept(t *testing.T) {
	now, reads, fail := time.Now(), 0, errors.New("away")
	shares := forecast.KeptShares(time.Minute, func() time.Time { return now }, func(context.Context, []string) (map[string]float64, error) {
		reads++
		return map[string]float64{"qq.com": float64(reads)}, fail
	})
	expect := func(want int, domains ...string) {
		t.Helper()
		if got, err := shares(t.Context(), domains); err != fail || reads != want || got["qq.com"] != float64(want) {
			t.Errorf("%v, %v after %d reads", got, err, reads)
		}
	}
	expect(1, "qq.com")
	fail = nil
	expect(2, "qq.com")
	expect(2, "qq.com")
	now = now.Add(time.Minute)
	expect(3, "qq.com")
	expect(4, "gmail.com", "qq.com")
}
