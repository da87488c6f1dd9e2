package increment

import (
	"math"
	"math/rand/v2"
	"testing"

	"dropbell/domain/money"
)

// drawn returns a group of n users, each of whom orders with this chance; an order has an amount
// around 100.00.
func drawn(r *rand.Rand, n int64, chance float64) Group {
	g := Group{Users: n}
	for range n {
		if r.Float64() < chance {
			g.Add(1, money.Amount(8000+r.IntN(4000)))
		}
	}
	return g
}

// TestIntervalsContainTheTruth draws groups whose true difference is known. About 95 of 100
// intervals must contain it. Of two equal groups about 5 in 100 seem different beyond chance.
func TestIntervalsContainTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	const runs = 400
	in, orders, sure := 0, 0, 0
	for range runs {
		i := Increment{"CNY", drawn(r, 9000, 0.12), drawn(r, 6000, 0.1)}
		e, o := i.Revenue(), i.Orders()
		if !e.Enough || !o.Enough {
			t.Fatal("not enough data")
		}
		if truth := 0.02 * 9999.5; e.Low <= truth && truth <= e.High {
			in++
		}
		if o.Low <= 0.02 && 0.02 <= o.High {
			orders++
		}
		if (Increment{"CNY", drawn(r, 6000, 0.1), drawn(r, 6000, 0.1)}).Revenue().Sure() {
			sure++
		}
	}
	for name, n := range map[string]int{"revenue": in, "orders": orders, "equal groups": runs - sure} {
		if part := float64(n) / runs; part < 0.92 || part > 0.98 {
			t.Errorf("%s: the truth is in %.3f of the intervals", name, part)
		}
	}
}

// TestExactly computes the figures of a small distribution by hand: 240 users of 800 order once for
// 10.00, against 150 held-out users of 600.
func TestExactly(t *testing.T) {
	group := func(users, orders int64, amount money.Amount) Group {
		g := Group{Users: users}
		for range orders {
			g.Add(1, amount)
		}
		return g
	}
	i := Increment{"CNY", group(800, 240, 1000), group(600, 150, 1000)}
	e := i.Revenue()
	half := 1.959963984540054 * 1000 * math.Sqrt(0.3*0.7/799+0.25*0.75/599)
	if !e.Enough || math.Abs(e.Difference-50) > 1e-9 || math.Abs(e.Low-(50-half)) > 1e-6 || math.Abs(e.High-(50+half)) > 1e-6 || !e.Sure() {
		t.Errorf("%+v, want 50 ± %.3f", e, half)
	}
	if n, low, high := e.Extra(); math.Abs(n-40_000) > 1e-6 || math.Abs(high+low-80_000) > 1e-6 {
		t.Errorf("%f from %f to %f", n, low, high)
	}
	if i.Reached.PerUser() != 300 || i.HeldOut.PerUser() != 250 || (Group{}).PerUser() != 0 {
		t.Errorf("%d and %d for each user", i.Reached.PerUser(), i.HeldOut.PerUser())
	}
}

// TestNotEnough: the sentence is said as long as the interval cannot be trusted.
func TestNotEnough(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	many := drawn(r, 20_000, 0.1)
	one := Group{Users: 20_000}
	one.Add(1, 1_000_000_000)
	equal := Group{Users: 200}
	for range 200 {
		equal.Add(1, 100)
	}
	for name, held := range map[string]Group{"nobody": {}, "few users": drawn(r, 99, 0.5), "no orders": {Users: 5000},
		"one order": one, "few orders of many users": drawn(r, 20_000, 0.005), "all the same": equal, "counted without powers": {Users: 500, Orders: 9, Revenue: 90_000}} {
		if e := (Increment{"CNY", many, held}).Revenue(); e.Enough || e.Sure() || e.Low != 0 || e.High != 0 {
			t.Errorf("%s: %+v", name, e)
		}
		if e := (Increment{"CNY", held, many}).Revenue(); e.Enough {
			t.Errorf("%s, the other way round: %+v", name, e)
		}
	}
	if e := (Increment{"CNY", many, drawn(r, 20_000, 0.1)}).Revenue(); !e.Enough {
		t.Error("enough is not enough")
	}
}
