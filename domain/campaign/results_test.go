package campaign

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/delivery"
)

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

// TestIntervals compares the bounds with published figures: Newcombe 1998, Statistics in Medicine
// 17, pages 857 (one rate, method 3) and 873 (the difference of two rates, method 10).
func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		s         Share
		low, high float64
	}{
		{Share{81, 263}, 0.2553, 0.3662}, {Share{15, 148}, 0.0624, 0.1605}, {Share{0, 20}, 0, 0.1611}, {Share{1, 29}, 0.0061, 0.1718},
		{Share{0, 0}, 0, 1}, {Share{20, 20}, 0.8389, 1},
	} {
		if low, high := c.s.Interval(); !near(low, c.low, 5e-5) || !near(high, c.high, 5e-5) {
			t.Errorf("%v: %.4f to %.4f, want %.4f to %.4f", c.s, low, high, c.low, c.high)
		}
	}
	for _, c := range []struct {
		a, b      Share
		low, high float64
	}{
		{Share{56, 70}, Share{48, 80}, 0.0524, 0.3339}, {Share{9, 10}, Share{3, 10}, 0.1705, 0.8090}, {Share{10, 10}, Share{0, 20}, 0.6791, 1},
		{Share{5, 56}, Share{0, 29}, -0.0381, 0.1926}, {Share{0, 10}, Share{0, 10}, -0.2775, 0.2775},
	} {
		got := Compare(Claiming, Tally{Claimed: c.a.K, Assigned: c.a.N}, Tally{Claimed: c.b.K, Assigned: c.b.N})
		if !near(got.Low, c.low, 5e-5) || !near(got.High, c.high, 5e-5) {
			t.Errorf("%v − %v: %.4f to %.4f, want %.4f to %.4f", c.a, c.b, got.Low, got.High, c.low, c.high)
		}
	}
}

// TestIntervalsHoldTheTruth draws samples of known rates. About 95 of 100 intervals contain the
// rate, and about 95 of 100 comparisons of equal groups say that the difference may be chance.
func TestIntervalsHoldTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	sample := func(rate float64, n int) Tally {
		tally := Tally{Assigned: int64(n)}
		for range n {
			if random.Float64() < rate {
				tally.Claimed++
			}
		}
		return tally
	}
	const rounds = 2000
	for _, rate := range []float64{0.02, 0.3} {
		held, chance := 0, 0
		for range rounds {
			a, b := sample(rate, 400), sample(rate, 400)
			if low, high := a.Of(Claiming).Interval(); low <= rate && rate <= high {
				held++
			}
			if v := Compare(Claiming, a, b).Verdict(); v == MayChance || v == Nothing {
				chance++
			}
		}
		for name, n := range map[string]int{"the interval holds the rate": held, "equals may be chance": chance} {
			if part := float64(n) / rounds; part < 0.93 || part > 0.98 {
				t.Errorf("rate %g: %s in %.3f of the cases", rate, name, part)
			}
		}
	}
}

func TestIntervalsOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Share {
			n := rapid.Int64Range(0, 1<<50).Draw(t, name)
			return Share{rapid.Int64Range(0, n).Draw(t, name+" of them"), n}
		}
		a, b := draw("a"), draw("b")
		low, high := a.Interval()
		if !(0 <= low && low <= a.Rate()+1e-9 && a.Rate() <= high+1e-9 && high <= 1) {
			t.Fatalf("%v: %g to %g", a, low, high)
		}
		c, back := Compare(Using, Tally{Used: a.K, Assigned: a.N}, Tally{Used: b.K, Assigned: b.N}), Compare(Using, Tally{Used: b.K, Assigned: b.N}, Tally{Used: a.K, Assigned: a.N})
		if !near(c.Low, -back.High, 1e-12) || c.Low > c.Difference+1e-9 || c.High < c.Difference-1e-9 || math.IsNaN(c.Low+c.High) {
			t.Fatalf("%+v and back %+v", c, back)
		}
		if opposite := map[Verdict]Verdict{More: Less, Less: More, MayChance: MayChance, Nothing: Nothing}; back.Verdict() != opposite[c.Verdict()] {
			t.Fatalf("%s, and back %s", c.Verdict(), back.Verdict())
		}
	})
}

func TestVerdicts(t *testing.T) {
	tally := func(variant int, assigned, sent, opened, used int64) Tally {
		return Tally{Variant: variant, Assigned: assigned, Sent: sent, Opened: opened, Used: used}
	}
	r := Results{Groups: []Tally{tally(0, 5000, 4800, 480, 250), tally(1, 5000, 4700, 940, 250), tally(delivery.HeldOut, 1000, 0, 0, 20)}}
	if c, ok := r.Versions(Opening); !ok || c.Verdict() != More || c.First != (Share{940, 4700}) {
		t.Errorf("B was opened twice as often: %+v %s", c, c.Verdict())
	}
	if c, ok := r.Versions(Using); !ok || c.Verdict() != MayChance {
		t.Errorf("as many used it: %+v %s", c, c.Verdict())
	}
	c, ok := r.Effect(Using)
	if !ok || c.Verdict() != More || c.First != (Share{500, 10000}) || c.Than != (Share{20, 1000}) {
		t.Fatalf("against the held out: %+v %s", c, c.Verdict())
	}
	if part, known := c.Lift(); !known || !near(part, 1.5, 1e-9) {
		t.Errorf("lift %g", part)
	}
	if n, low, high := c.Extra(); n != 300 || low < 180 || low >= n || high <= n {
		t.Errorf("%d people more, between %d and %d", n, low, high)
	}
	if _, ok := r.Effect(Opening); ok {
		t.Error("who is held out has nothing to open")
	}
	if c := Compare(Using, tally(0, 10, 10, 0, 0), tally(1, 10, 10, 0, 0)); c.Verdict() != Nothing {
		t.Errorf("nobody used it: %s", c.Verdict())
	}
	one := Results{Groups: r.Groups[:1]}
	if _, ok := one.Versions(Using); ok {
		t.Error("one version is compared with another")
	}
	if _, ok := one.Effect(Using); ok {
		t.Error("nobody was held out")
	}
	if _, known := Compare(Using, r.Groups[0], Tally{Assigned: 100}).Lift(); known {
		t.Error("a lift over nothing")
	}
}

func TestMeasuresFollowTheTemplate(t *testing.T) {
	for name, c := range map[string]struct {
		audience Audience
		grant    int64
		goal     Measure
		has      []Measure
	}{
		"about nothing": {Audience{Kind: Everybody}, 0, Opening, []Measure{Opening}},
		"grant":         {Audience{Kind: Everybody}, 5, Using, []Measure{Opening, Reserving, Claiming, Using}},
		"reservers":     {Audience{Kind: Reserved, ID: 5}, 0, Claiming, []Measure{Opening, Claiming, Using}},
		"holders":       {Audience{Kind: Holds, ID: 5}, 0, Using, []Measure{Opening, Reserving, Claiming, Using}},
	} {
		s := Spec{Audience: c.audience, GrantTemplate: c.grant}
		if s.Goal() != c.goal || !slices.Equal(s.Measures(), c.has) {
			t.Errorf("%s: %q %v", name, s.Goal(), s.Measures())
		}
	}
}

func TestCountsAreSpread(t *testing.T) {
	for _, c := range []struct{ took, ended, want time.Duration }{
		{time.Millisecond, 0, 30 * time.Second}, {10 * time.Second, 0, 200 * time.Second}, {time.Millisecond, 48 * time.Hour, 2 * time.Hour},
		{time.Millisecond, time.Minute, 30 * time.Second},
	} {
		if got := CountAgain(c.took, c.ended); got != c.want {
			t.Errorf("after %v, ended %v ago: %v, want %v", c.took, c.ended, got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	at := func(d time.Duration) *time.Time { return new(now.Add(d)) }
	for name, c := range map[string]struct {
		c    Campaign
		want time.Duration
	}{
		"draft":     {Campaign{}, 0},
		"running":   {Campaign{StartedAt: at(-time.Minute)}, time.Minute},
		"cancelled": {Campaign{StartedAt: at(-time.Minute), EndedAt: at(-50 * time.Second)}, 10 * time.Second},
		"settled":   {Campaign{StartedAt: at(-time.Minute), EndedAt: at(-50 * time.Second), SettledAt: at(-40 * time.Second)}, 20 * time.Second},
	} {
		if got := c.c.Duration(now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
