package campaign

import (
	"errors"
	"slices"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/user"
)

func TestDecisions(t *testing.T) {
	arm := func(sent, did int64) Arm { return Arm{Assigned: sent + 10, Sent: sent, Did: did} }
	paid := func(n, amount int64) Arm {
		return Arm{Assigned: 1000, Sent: 1000, Did: n, Revenue: n * amount, Squares: float64(n * amount * amount), Currency: "CNY"}
	}
	none := -1
	for name, c := range map[string]struct {
		by     string
		look   Look
		a, b   Arm
		winner int
		beyond bool
	}{
		"more clicks":                     {delivery.ByOpened, AtEnd, arm(1000, 50), arm(1000, 90), 1, true},
		"fewer clicks":                    {delivery.ByOpened, AtEnd, arm(1000, 90), arm(1000, 50), 0, true},
		"by chance":                       {delivery.ByOpened, AtEnd, arm(1000, 50), arm(1000, 52), 1, false},
		"equal":                           {delivery.ByClaimed, AtEnd, arm(1000, 50), arm(1000, 50), 0, false},
		"nobody":                          {delivery.ByClaimed, AtEnd, Arm{}, Arm{}, 0, false},
		"halfway, beyond 95 % only":       {delivery.ByOpened, Halfway, arm(1000, 50), arm(1000, 75), none, true},
		"halfway, beyond 99.9 %":          {delivery.ByOpened, Halfway, arm(1000, 50), arm(1000, 150), 1, true},
		"halfway, A beyond 99.9 %":        {delivery.ByClaimed, Halfway, arm(1000, 150), arm(1000, 50), 0, true},
		"halfway, nobody":                 {delivery.ByOpened, Halfway, arm(1000, 0), arm(1000, 0), none, false},
		"revenue":                         {delivery.ByRevenue, AtEnd, paid(100, 5000), paid(60, 20000), 1, true},
		"revenue halfway":                 {delivery.ByRevenue, Halfway, paid(100, 5000), paid(120, 5000), none, false},
		"fewer orders, the same revenue":  {delivery.ByRevenue, AtEnd, paid(100, 5000), paid(50, 10000), 0, false},
		"revenue halfway, beyond 99.9 %":  {delivery.ByRevenue, Halfway, paid(200, 5000), paid(50, 5000), 0, true},
		"revenue of nobody":               {delivery.ByRevenue, AtEnd, Arm{}, Arm{}, 0, false},
		"claims of more users, fewer did": {delivery.ByClaimed, AtEnd, arm(100, 30), arm(1000, 100), 0, true},
	} {
		d := DecideTest(delivery.Test{By: c.by}, c.look, time.Time{}, c.a, c.b)
		got := none
		if d.Winner != nil {
			got = *d.Winner
		}
		if got != c.winner || d.Beyond(c.by) != c.beyond || len(d.Arms) != 2 {
			t.Errorf("%s: %d wins, beyond chance %t; want %d, %t", name, got, d.Beyond(c.by), c.winner, c.beyond)
		}
	}
}

// A mean amount has the interval of a mean: 100 of 1000 recipients paid 50.00, so that the mean is
// 5.00 and its standard error 15.00/√1000 = 0.4743.
func TestMeanAmounts(t *testing.T) {
	a := Arm{Assigned: 1000, Did: 100, Revenue: 500_000, Squares: 100 * 5000 * 5000}
	if value, low, high := a.Value(delivery.ByRevenue); !near(value, 500, 1e-9) || !near(low, 500-1.96*47.43, 0.1) || !near(high, 500+1.96*47.43, 0.1) {
		t.Errorf("%.2f from %.2f to %.2f", value, low, high)
	}
	if value, low, high := (Arm{Assigned: 263, Did: 81}).Value(delivery.ByClaimed); !near(value, 0.308, 1e-3) || !near(low, 0.2553, 5e-5) || !near(high, 0.3662, 5e-5) {
		t.Errorf("%.4f from %.4f to %.4f", value, low, high)
	}
}

// Users who are not in the test wait until it is decided, at the latest until its stated end, and
// then get the version that won.
func TestRemainingUsersWait(t *testing.T) {
	started := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	c := delivery.Copy{Variants: []delivery.Variant{{Percent: 50}, {Percent: 50}}, Test: &delivery.Test{Share: 50, By: delivery.ByOpened, Minutes: 60}}
	s := &screen{owner: 7, copy: &c, started: started}
	var all, waiting []user.ID
	for id := range user.ID(100) {
		all = append(all, id+1)
		if c.Group(7, id+1) == delivery.Remaining {
			waiting = append(waiting, id+1)
		}
	}
	for at, until := range map[time.Duration]time.Duration{0: time.Hour, time.Hour - time.Second: time.Hour - time.Second + undecidedFor, 2 * time.Hour: 2*time.Hour + undecidedFor} {
		var got []user.ID
		for _, v := range s.Check(all, started.Add(at)) {
			if got = append(got, v.UserID); v.Reason != delivery.ReasonTest || !v.Until.Equal(started.Add(until)) {
				t.Errorf("after %v: %+v", at, v)
			}
		}
		if !slices.Equal(got, waiting) {
			t.Errorf("after %v %d of %d users wait", at, len(got), len(waiting))
		}
	}
	c.Test.Winner = new(1)
	if got := s.Check(all, started); len(got) != 0 {
		t.Errorf("%d users wait after the decision", len(got))
	}
}

func TestRulesOfTests(t *testing.T) {
	start := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	text := map[string]delivery.Text{"": {Title: "Come", Body: "Now"}}
	for name, c := range map[string]struct {
		change func(*Spec)
		broken []string
	}{
		"right":            {func(*Spec) {}, nil},
		"one version":      {func(s *Spec) { s.Content.Variants = []delivery.Variant{{Percent: 100, Texts: text}} }, []string{"test"}},
		"share":            {func(s *Spec) { s.Content.Test.Share = 91 }, []string{"test_share"}},
		"no share":         {func(s *Spec) { s.Content.Test.Share = 0 }, []string{"test_share"}},
		"measure":          {func(s *Spec) { s.Content.Test.By = "luck" }, []string{"test_by", "test_by"}},
		"claims, no drop":  {func(s *Spec) { s.Content.Test.By = delivery.ByClaimed }, []string{"test_by"}},
		"claims, granted":  {func(s *Spec) { s.Content.Test.By, s.GrantTemplate = delivery.ByClaimed, 3 }, []string{"test_by"}},
		"revenue, granted": {func(s *Spec) { s.Content.Test.By, s.GrantTemplate = delivery.ByRevenue, 3 }, nil},
		"short":            {func(s *Spec) { s.Content.Test.Minutes = 9 }, []string{"test_minutes"}},
		"after the end":    {func(s *Spec) { s.Content.Test.Minutes = 24 * 60 }, []string{"test_minutes"}},
	} {
		s := Spec{Name: "Spring", Audience: Audience{Kind: Everybody}, StartsAt: start, EndsAt: start.Add(24 * time.Hour),
			Content: delivery.Copy{Variants: []delivery.Variant{{Percent: 50, Texts: text}, {Percent: 50, Texts: text}}, Test: &delivery.Test{Share: 20, By: delivery.ByOpened, Minutes: 60}}}
		c.change(&s)
		var broken *fault.Fields
		var got []string
		if errors.As(s.Check(), &broken) {
			for _, f := range broken.List {
				got = append(got, f.Name)
			}
		}
		if !slices.Equal(got, c.broken) {
			t.Errorf("%s: %v, want %v", name, got, c.broken)
		}
	}
}

func TestSpansOfSeries(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{0: time.Minute, time.Hour: time.Minute, 3 * time.Hour: 5 * time.Minute, 8 * 24 * time.Hour: 6 * time.Hour, 400 * 24 * time.Hour: 7 * 24 * time.Hour} {
		if got := SeriesSpan(window); got != want {
			t.Errorf("%v has spans of %v, want %v", window, got, want)
		}
	}
}
