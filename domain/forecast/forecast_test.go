package forecast_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// anyJobs draws up to eight jobs around noon, some due already, some over.
func anyJobs() *rapid.Generator[[]forecast.Job] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) forecast.Job {
		due := noon.Add(time.Duration(rapid.IntRange(-600, 3600).Draw(t, "due")) * time.Second)
		return forecast.Job{DueAt: due, Deadline: due.Add(time.Duration(rapid.IntRange(1, 3600).Draw(t, "window")) * time.Second),
			Messages: int64(rapid.IntRange(0, 100_000).Draw(t, "messages"))}
	}), 0, 8)
}

func missed(ps []forecast.Prognosis) (sum int64) {
	for _, p := range ps {
		sum += p.Missed
	}
	return sum
}

// burden returns the rate at which nothing can be missed: no interval may need more messages than
// can be sent in it. EDF (earliest deadline first) reaches this bound, so burden computes the
// same numbers without a simulation.
func burden(jobs []forecast.Job) (rate float64, feasible bool) {
	feasible = true
	for _, from := range jobs {
		for _, to := range jobs {
			begin, end := later(from.DueAt, noon), to.Deadline
			var work int64
			for _, j := range jobs {
				if !later(j.DueAt, noon).Before(begin) && !j.Deadline.After(end) {
					work += j.Messages
				}
			}
			switch {
			case work == 0:
			case !end.After(begin):
				feasible = false
			default:
				rate = math.Max(rate, float64(work)/end.Sub(begin).Seconds())
			}
		}
	}
	return rate, feasible
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestForecastProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := anyJobs().Draw(t, "jobs")
		perSecond := rapid.Float64Range(0.1, 500).Draw(t, "rate")
		before := slices.Clone(jobs)
		ps := forecast.Forecast(jobs, forecast.Rate{PerSecond: perSecond}, noon)
		if !slices.Equal(before, jobs) || len(ps) != len(jobs) {
			t.Fatal("the jobs changed")
		}
		var sent int64
		var busy time.Duration
		for i, p := range ps {
			if i > 0 && p.DueAt.Before(ps[i-1].DueAt) {
				t.Fatalf("job %d is out of order", i)
			}
			if p.Missed < 0 || p.Missed > p.Messages || p.Share() < 0 || p.Share() > 1 {
				t.Fatalf("%+v", p)
			}
			if p.Messages == 0 {
				continue
			}
			sent += p.Messages - p.Missed
			if p.StartAt.Before(p.DueAt) && p.StartAt.Before(noon) || p.FinishAt.Before(p.StartAt) || p.FinishAt.After(p.Deadline) {
				t.Fatalf("starts %v, finishes %v: %+v", p.StartAt, p.FinishAt, p)
			}
			if p.Missed == p.Messages {
				continue
			}
			if p.StartAt.Before(later(p.DueAt, noon)) {
				t.Fatalf("starts before it is due: %+v", p)
			}
			if p.Missed > 0 && !p.FinishAt.Equal(p.Deadline) {
				t.Fatalf("gave up before the deadline: %+v", p)
			}
			if least := float64(p.Messages-p.Missed-1) / perSecond; p.FinishAt.Sub(p.StartAt).Seconds() < least-0.001 {
				t.Fatalf("too fast: %+v", p)
			}
			busy = max(busy, p.FinishAt.Sub(noon))
		}
		if most := busy.Seconds()*perSecond + float64(len(ps)); float64(sent) > most {
			t.Fatalf("%d sent where %v at most is possible", sent, most)
		}
		// A higher rate misses no more than a lower one.
		faster := forecast.Forecast(jobs, forecast.Rate{PerSecond: perSecond * rapid.Float64Range(1, 10).Draw(t, "faster")}, noon)
		if missed(faster) > missed(ps)+int64(len(ps)) { // each job rounds by half a message
			t.Fatalf("%d missed at %v, %d at a higher rate", missed(ps), perSecond, missed(faster))
		}
		need, feasible := burden(jobs)
		if feasible && perSecond > need*1.0001 && missed(ps) > 0 {
			t.Fatalf("%d missed at %v although %v would do", missed(ps), perSecond, need)
		}
		if (!feasible || perSecond < need*0.9) && need > 0 && missed(ps) == 0 && missedIsVisible(jobs, perSecond) {
			t.Fatalf("nothing missed at %v although %v is needed", perSecond, need)
		}
	})
}

// missedIsVisible says that some interval is short of a whole message or more.
func missedIsVisible(jobs []forecast.Job, perSecond float64) bool {
	for _, from := range jobs {
		for _, to := range jobs {
			begin, end := later(from.DueAt, noon), to.Deadline
			room := math.Max(0, end.Sub(begin).Seconds()) * perSecond
			var work float64
			for _, j := range jobs {
				if !later(j.DueAt, noon).Before(begin) && !j.Deadline.After(end) {
					work += float64(j.Messages)
				}
			}
			if work > room+float64(len(jobs)) {
				return true
			}
		}
	}
	return false
}

func TestNeededRateIsEnoughAndHardlyMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := anyJobs().Draw(t, "jobs")
		need := forecast.NeededRate(jobs, noon)
		savable := slices.DeleteFunc(slices.Clone(jobs), func(j forecast.Job) bool { return !j.Deadline.After(noon) })
		if ps := forecast.Forecast(savable, forecast.Rate{PerSecond: need}, noon); missed(ps) > 0 {
			t.Fatalf("%v is not enough: %d missed", need, missed(ps))
		}
		least, _ := burden(savable)
		// Half a message per job may be lost to rounding.
		if slack := float64(len(savable)) + 1; need > least*1.001+0.001+slack {
			t.Fatalf("%v is said to be needed, %v would do", need, least)
		}
		if least > 10 && need < least*0.5 {
			t.Fatalf("%v cannot be enough, %v is needed", need, least)
		}
	})
}

func job(dueIn, window time.Duration, messages int64) forecast.Job {
	due := noon.Add(dueIn)
	return forecast.Job{DueAt: due, Deadline: due.Add(window), Messages: messages}
}

func TestForecastExamples(t *testing.T) {
	for _, c := range []struct {
		name                  string
		jobs                  []forecast.Job
		rate                  float64
		starts, ends, misseds []int64 // seconds after noon
		need                  float64
	}{
		{"alone, in time", []forecast.Job{job(60*time.Second, 300*time.Second, 1000)}, 10, []int64{60}, []int64{160}, []int64{0}, 10. / 3},
		{"alone, too slow", []forecast.Job{job(0, 300*time.Second, 4000)}, 10, []int64{0}, []int64{300}, []int64{1000}, 40. / 3},
		{"already due", []forecast.Job{job(-100*time.Second, 300*time.Second, 1000)}, 10, []int64{0}, []int64{100}, []int64{0}, 5},
		{"over", []forecast.Job{job(-400*time.Second, 300*time.Second, 7)}, 10, []int64{-100}, []int64{-100}, []int64{7}, 0},
		{"no rate at all", []forecast.Job{job(0, 10*time.Second, 5)}, 0, []int64{0}, []int64{10}, []int64{5}, 0.5},
		// The later job has the nearer deadline: it interrupts and the first one waits.
		{"interrupted", []forecast.Job{job(0, 1000*time.Second, 1000), job(50*time.Second, 100*time.Second, 1000)}, 10,
			[]int64{0, 50}, []int64{200, 150}, []int64{0, 0}, 10},
		{"one behind the other", []forecast.Job{job(0, 100*time.Second, 1000), job(0, 200*time.Second, 1500)}, 10,
			[]int64{0, 100}, []int64{100, 200}, []int64{0, 500}, 12.5},
	} {
		ps := forecast.Forecast(c.jobs, forecast.Rate{PerSecond: c.rate}, noon)
		for i, p := range ps {
			if start, end := p.StartAt.Sub(noon).Round(time.Second), p.FinishAt.Sub(noon).Round(time.Second); int64(start.Seconds()) != c.starts[i] ||
				int64(end.Seconds()) != c.ends[i] || p.Missed != c.misseds[i] {
				t.Errorf("%s, job %d: %v to %v, %d missed", c.name, i, start, end, p.Missed)
			}
		}
		if need := forecast.NeededRate(c.jobs, noon); math.Abs(need-c.need) > 0.1 {
			t.Errorf("%s: needs %v, want %v", c.name, need, c.need)
		}
	}
}

// rates is a forecast store.
type rates struct {
	jobs             []forecast.Job
	measured         [delivery.Channels]float64 // each in as many slots that it is sure
	limits           [delivery.Channels]float64
	until            time.Time
	jobsErr, rateErr error
	android          map[string]float64
	androidErr       error
}

func (r *rates) Jobs(_ context.Context, until time.Time) ([]forecast.Job, error) {
	r.until = until
	return r.jobs, r.jobsErr
}

func (r *rates) Rates(context.Context) (measured [delivery.Channels]forecast.Throughput, limits [delivery.Channels]float64, err error) {
	for c, n := range r.measured {
		if n > 0 {
			measured[c] = forecast.Throughput{PerSecond: n, Low: n, High: n, Slots: 5}
		}
	}
	return measured, r.limits, r.rateErr
}

func (r *rates) AndroidShares(context.Context) (map[string]float64, error) {
	return r.android, r.androidErr
}

func TestForecastPerChannel(t *testing.T) {
	mail, text := job(0, 100*time.Second, 60_000), job(0, 100*time.Second, 1000)
	mail.Channel, text.Channel = delivery.Email, delivery.SMS
	store := &rates{jobs: []forecast.Job{mail, text}}
	store.measured[delivery.SMS], store.limits[delivery.SMS] = 20, 5
	store.measured[delivery.Webhook], store.limits[delivery.Webhook] = 300, 5000
	store.limits[delivery.WebPush] = 50
	f := &forecast.Forecaster{Store: store, Now: func() time.Time { return noon }}
	all, err := f.Forecast(t.Context(), time.Hour)
	if err != nil || len(all) != delivery.Channels || !store.until.Equal(noon.Add(time.Hour)) {
		t.Fatalf("%v %v until %v", all, err, store.until)
	}
	for c, want := range map[delivery.Channel]forecast.Rate{
		delivery.App: {PerSecond: 100_000, Source: forecast.Assumed}, delivery.Email: {PerSecond: 500, Source: forecast.Assumed},
		delivery.SMS:     {PerSecond: 5, Source: forecast.Configured},  // the operators' limit lies below what was measured
		delivery.Webhook: {PerSecond: 300, Source: forecast.Measured},  // a limit above it changes nothing
		delivery.WebPush: {PerSecond: 50, Source: forecast.Configured}, // nor does it take a measurement to obey one
	} {
		if got := all[c]; got.Channel != c || got.Rate != want {
			t.Errorf("%s: %+v, want %+v", c, got.Rate, want)
		}
	}
	if m := all[delivery.Email]; m.Missed != 10_000 || len(m.Jobs) != 1 || m.Jobs[0].Share() < 0.16 || m.Jobs[0].Share() > 0.17 || m.Needed < 599 || m.Needed > 601 {
		t.Errorf("e-mail: %+v", m)
	}
	if s := all[delivery.SMS]; s.Missed != 500 || s.Needed < 9.9 || s.Needed > 10.1 {
		t.Errorf("SMS: %+v", s)
	}
	if a := all[delivery.App]; a.Missed != 0 || a.Needed != 0 || len(a.Jobs) != 0 {
		t.Errorf("app: %+v", a)
	}
	broken := errors.New("broken")
	for _, s := range []*rates{{jobsErr: broken}, {rateErr: broken}} {
		f.Store = s
		if _, err := f.Forecast(t.Context(), time.Hour); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	}
}
