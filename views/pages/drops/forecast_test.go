package drops

import (
	"strconv"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
)

func coordinate(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGanttLinesStayOnTheirAxis(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	opens := now.Add(10 * time.Minute)
	job := func(before time.Duration, n int64) forecast.Job {
		return forecast.Job{TemplateID: 1, DueAt: opens.Add(-before), Deadline: opens, Messages: n}
	}
	for _, jobs := range [][]forecast.Job{
		{job(5*time.Minute, 1)}, {job(5*time.Minute, 1_000_000)}, {job(60*time.Minute, 100_000), job(5*time.Minute, 100_000)},
		{job(0, 5)}, {job(-time.Minute, 5)}, {job(10*time.Minute, 0)},
	} {
		f := forecast.ChannelForecast{Rate: forecast.Rate{PerSecond: 100}, Jobs: forecast.Forecast(jobs, forecast.Rate{PerSecond: 100}, now)}
		for _, d := range (Forecast{}).drops(f) {
			a := d.axis()
			for _, j := range d.jobs {
				list := a.gantt(j)
				for _, s := range list {
					if x, width := coordinate(t, s.X), coordinate(t, s.Width); x < -0.2 || width <= 0 || x+width > 1000.2 {
						t.Errorf("gantt: %+v lies outside of the axis", s)
					}
				}
				if late := len(list) > 0 && list[len(list)-1].Class == "gantt-late"; late != (j.Missed > 0) {
					t.Errorf("%d missed, drawn %+v", j.Missed, list)
				}
			}
		}
	}
}

func TestWorstJob(t *testing.T) {
	p := func(missed int64, spare time.Duration) forecast.Prognosis {
		end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		return forecast.Prognosis{Job: forecast.Job{TemplateID: 1, Deadline: end, Messages: 10}, FinishAt: end.Add(-spare), Missed: missed}
	}
	list := outlooks([]forecast.ChannelForecast{
		{Channel: delivery.App, Jobs: []forecast.Prognosis{p(0, time.Minute), p(3, time.Hour), p(2, 0)}},
		{Channel: delivery.SMS, Jobs: []forecast.Prognosis{p(0, time.Minute), p(0, time.Second)}},
		{Channel: delivery.Email},
	}, 1, Halted{})
	if len(list) != 2 || list[0].worst.Missed != 3 || list[0].missed != 5 || list[0].messages != 30 || spare(list[1].worst) != time.Second {
		t.Errorf("%+v", list)
	}
	if len(outlooks([]forecast.ChannelForecast{{Jobs: []forecast.Prognosis{p(0, 0)}}}, 2, Halted{})) != 0 {
		t.Error("another template's jobs are counted")
	}
}

func TestARateNamedAsEnoughIsEnough(t *testing.T) {
	for in, want := range map[float64]float64{0.4: 1, 9: 9, 99: 99, 100.5: 110, 666.7: 670, 1234: 1300, 99_500: 100_000} {
		if got := roundUp(in); got != want || got < in {
			t.Errorf("%v is rounded to %v, want %v", in, got, want)
		}
	}
}

// If a limit of mails causes misses, no rate of the channel is called enough. If the limit is the
// warm-up plan, the page does not say how long the remaining mails take.
func TestLimitsOfMailsAreNotFixedByARate(t *testing.T) {
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	p := forecast.Prognosis{Job: forecast.Job{TemplateID: 1, DueAt: end.Add(-time.Minute), Deadline: end, Messages: 90_000}, Rate: forecast.Rate{PerSecond: 500, Source: forecast.Assumed},
		FinishAt: end, Missed: 60_000, ByPlan: true}
	f := forecast.ChannelForecast{Rate: p.Rate, Jobs: []forecast.Prognosis{p}, Missed: p.Missed, Needed: 1500, Limits: []forecast.Limit{{Name: forecast.WarmUpLimit, Missed: 60_000}}}
	if list := (Forecast{}).fixes(t.Context(), f); list != nil {
		t.Errorf("%q", list)
	}
	if d := overrun(p); d != 0 {
		t.Errorf("goes on for %s", d)
	}
}

// The forecast looks a day ahead from now, which ends within an hour. Reminders due in this last
// hour have a column of their own.
func TestTheLastHourOfAForecast(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)
	job := func(at time.Time, n int64) forecast.Prognosis {
		return forecast.Prognosis{Job: forecast.Job{DueAt: at, Messages: n}}
	}
	hours := hourly([]forecast.ChannelForecast{{Jobs: []forecast.Prognosis{
		job(now.Add(-time.Hour), 1), job(now, 2), job(now.Add(23*time.Hour), 4), job(now.Add(24*time.Hour-time.Minute), 8)}}}, now)
	for i, want := range map[int]int64{0: 3, 23: 4, 24: 8} {
		if h := hours[i]; h.messages != want || !h.from.Equal(time.Date(2026, 11, 20, 10+i, 0, 0, 0, time.UTC)) {
			t.Errorf("column %d: %d messages from %s, want %d", i, h.messages, h.from, want)
		}
	}
}
