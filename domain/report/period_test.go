package report_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/report"
)

// Every instant of a period and of the period before belongs to the part that has it, across changes of
// the clock; both periods have equally many parts and touch.
func TestPartsOfPeriods(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, berlin).Add(time.Duration(rapid.Int64Range(0, 3*365*24*3600).Draw(t, "seconds")) * time.Second)
		p := report.PeriodOf(rapid.SampledFrom(report.Spans()[:3]).Draw(t, "span"), now, berlin)
		if rapid.Bool().Draw(t, "chosen") {
			last := p.To().AddDate(0, 0, -1)
			if p, err = report.PeriodBetween(last.AddDate(0, 0, -rapid.IntRange(0, report.MostDays-1).Draw(t, "days")), last); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.Starts); n != len(p.BeforeStarts) || !p.BeforeStarts[n-1].Equal(p.From()) || p.Span != report.Chosen && now.Before(p.From()) || p.Span != report.Chosen && !now.Before(p.To()) {
			t.Fatalf("%+v", p)
		}
		for b, starts := range [][]time.Time{p.Starts, p.BeforeStarts} {
			for i, from := range starts[:len(starts)-1] {
				for _, at := range []time.Time{from, starts[i+1].Add(-time.Microsecond)} {
					if got, before := p.Part(at); got != i || before != (b == 1) {
						t.Fatalf("%v is in part %d (%t), want %d of %v", at, got, before, i, starts)
					}
				}
			}
		}
	})
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, berlin)
	for days, parts := range map[int]int{0: 1, 44: 45, 45: 7, 181: 26, 182: 7, 730: 25} {
		if p, err := report.PeriodBetween(day, day.AddDate(0, 0, days)); err != nil || len(p.Starts) != parts+1 {
			t.Errorf("%d days later: %d parts, %v, want %d", days, len(p.Starts)-1, err, parts)
		}
	}
	for _, days := range []int{-1, 731} {
		if _, err := report.PeriodBetween(day, day.AddDate(0, 0, days)); err == nil {
			t.Errorf("%d days later is accepted", days)
		}
	}
}
