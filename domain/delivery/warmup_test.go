package delivery_test

import (
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/musttest"
)

func TestWarmUp(t *testing.T) {
	for _, wrong := range []string{"2026-12-01", "2026-12-01:200", "2026-12-01:x1.5", "2026-12-01:200x1", "2026-12-01:200x0.5", "2026-12-01:0x2", "12/01:200x1.5", "2026-12-01:200x11", "2026-12-01:200xNaN"} {
		if w, err := delivery.ParseWarmUp(wrong); err == nil {
			t.Errorf("%s is %+v", wrong, w)
		}
	}
	for _, text := range []string{"2026-12-01:200x1.5", "2026-12-01: 200 × 1.5", "2026-12-01:200*1.5"} {
		w, err := delivery.ParseWarmUp(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for at, want := range map[string]int64{"2026-11-01T00:00:00Z": 200, "2026-12-01T23:59:59Z": 200, "2026-12-02T00:00:00Z": 300, "2026-12-04T07:00:00+08:00": 450, "2027-01-01T00:00:00Z": 0} {
			now, err := time.Parse(time.RFC3339, at)
			musttest.OK(t, err)
			if got := w.Most(now); got != want {
				t.Errorf("%s: %d mails at %s, not %d", text, got, at, want)
			}
		}
	}
	if none, err := delivery.ParseWarmUp(""); err != nil || none.Most(time.Now()) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

// The days of a plan end with it; before the first day, today has that one's number.
func TestDaysOfAWarmUp(t *testing.T) {
	now := time.Date(2026, 12, 3, 5, 0, 0, 0, time.UTC)
	plan := func(start string, first int64) delivery.WarmUp {
		day, err := time.Parse(time.DateOnly, start)
		musttest.OK(t, err)
		return delivery.WarmUp{Start: day, First: first, Factor: 2}
	}
	for _, c := range []struct {
		plan  delivery.WarmUp
		most  []int64
		today int
	}{
		{plan("2026-12-01", 200), []int64{200, 400, 800, 1600}, 2}, {plan("2026-12-03", 200), []int64{200, 400}, 0}, {plan("2026-12-04", 200), []int64{200, 200}, 0},
		{plan("2026-12-01", 4_000_000), []int64{4_000_000, 8_000_000}, -1}, {plan("2026-12-01", 2_000_000), []int64{2_000_000, 4_000_000, 8_000_000}, 2}, {delivery.WarmUp{}, nil, -1},
	} {
		days := c.plan.Days(now, 2, 1)
		if len(days) != len(c.most) {
			t.Errorf("%+v: %+v", c.plan, days)
			continue
		}
		for i, d := range days {
			if d.Most != c.most[i] || d.Today != (i == c.today) || d.Day.Hour() != 0 || i > 0 && d.Day.Sub(days[i-1].Day) != 24*time.Hour {
				t.Errorf("%+v: day %d is %+v", c.plan, i, d)
			}
		}
	}
}
