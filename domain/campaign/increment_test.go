package campaign

import (
	"math"
	"testing"

	"dropbell/domain/delivery"
	"dropbell/domain/money"
)

// The increment compares all users who were meant to get a message with the held-out users.
func TestIncrement(t *testing.T) {
	orders := func(n int64, amount money.Amount) (s Spent) {
		for range n {
			s = s.Plus(Spent{Currency: "CNY", Orders: 1, Ordered: amount + 100, Discount: 100}.OfUser())
		}
		return s
	}
	r := Results{Groups: []Tally{{Variant: 0, Assigned: 400, Spent: orders(120, 1000)}, {Variant: 1, Assigned: 400, Spent: orders(120, 1000)},
		{Variant: delivery.HeldOut, Assigned: 600, Spent: orders(150, 1000)}}}
	i, ok := r.Increment()
	half := 1.959963984540054 * math.Sqrt(0.3*0.7/799+0.25*0.75/599)
	if e := i.Orders(); !ok || i.Currency != "CNY" || i.Reached.Users != 800 || i.HeldOut.Revenue != 150_000 || math.Abs(e.Difference-0.05) > 1e-9 || math.Abs(e.High-0.05-half) > 1e-9 {
		t.Errorf("%+v: %+v", i, i.Orders())
	}
	for name, r := range map[string]Results{"nobody held out": {Groups: r.Groups[:2]}, "no orders": {Groups: []Tally{{Assigned: 9}, {Variant: delivery.HeldOut, Assigned: 3}}}, "not counted": {}} {
		if _, ok := r.Increment(); ok {
			t.Errorf("%s: there is a comparison", name)
		}
	}
}
