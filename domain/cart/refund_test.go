package cart

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/coupon"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

// bought is a confirmed order of lines at 20.00 each with the coupon, which takes 30.00 off from 100.00 on.
func bought(t interface{ Fatal(...any) }, recompute bool, quantities ...int64) (*Order, map[int64]Held) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	h := Held{Recompute: recompute, Case: coupon.Case{Now: now, ShopNumber: 10,
		Rule:   coupon.Rule{Kind: template.ThresholdOff, AmountOff: 3000, Threshold: 10_000, Currency: "CNY", Target: template.WholeShop},
		Coupon: coupon.Coupon{ID: 1, TemplateID: 1, UserID: 7, State: coupon.Unused, ExpiresAt: now.Add(time.Hour)}}}
	w := Wish{OrderID: "A", UserID: 7, Coupons: []int64{1}, Cart: Cart{Currency: "CNY"}}
	for i, n := range quantities {
		w.Cart.Lines = append(w.Cart.Lines, Line{ID: string(rune('a' + i)), Quantity: n, Amount: 2000 * money.Amount(n)})
	}
	d := w.lock("till", Stored{Coupons: map[int64]Held{1: h}}, time.Hour)
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	o := d.Order
	o.State = Confirmed
	h.Coupon.State, h.Coupon.OrderID = coupon.Used, "A"
	return &o, map[int64]Held{1: h}
}

// TestBrokenThreshold is the known exploit: six lines are bought to reach a threshold, and five come
// back. With recompute the discount of the line that stays is taken back.
func TestBrokenThreshold(t *testing.T) {
	for _, c := range []struct {
		recompute         bool
		payBack, clawback money.Amount
	}{{false, 7500, 0}, {true, 7000, 500}} {
		o, held := bought(t, c.recompute, 6)
		r := Return{ID: "R-1", Lines: []ReturnedLine{{"a", 5}}}
		d := r.refund("till", Stored{Order: o, Coupons: held})
		if d.Err != nil || d.Refund.PayBack != c.payBack || d.Refund.Clawback != c.clawback || len(d.Refund.Coupons) != 0 || len(d.Moves) != 0 || d.Order.State != Confirmed {
			t.Fatalf("recompute %v: %+v, %v", c.recompute, d.Refund, d.Err)
		}
		// The last line brings the coupon back, and what was taken back before.
		last := Return{}.refund("till", Stored{Order: &d.Order, Coupons: held})
		if last.Err != nil || d.Refund.PayBack+last.Refund.PayBack != 9000 || len(last.Moves) != 1 || last.Order.State != Refunded {
			t.Fatalf("recompute %v: the last line %+v, %v", c.recompute, last.Refund, last.Err)
		}
	}
}

// TestRefundIsNeverNegative: the discount that is lost is more than the returned line.
func TestRefundIsNeverNegative(t *testing.T) {
	o, held := bought(t, true, 1, 4)
	o.Lines[0].Amount, o.Lines[1].Amount = 100, 9900
	o.Uses[0].Shares = []money.Amount{0, 3000}
	d := Return{ID: "R-1", Lines: []ReturnedLine{{"a", 1}}}.refund("till", Stored{Order: o, Coupons: held})
	if d.Err != nil || d.Refund.PayBack != 0 || d.Refund.Clawback != 100 {
		t.Fatalf("%+v, %v", d.Refund, d.Err)
	}
	rest := Return{ID: "R-2", Lines: []ReturnedLine{{"b", 4}}}.refund("till", Stored{Order: &d.Order, Coupons: held})
	if rest.Err != nil || rest.Refund.PayBack != 7000 || rest.Order.PaidBack != 7000 {
		t.Fatalf("%+v, %v", rest.Refund, rest.Err)
	}
}

func TestReturnIsChecked(t *testing.T) {
	o, held := bought(t, false, 6)
	for name, r := range map[string]Return{
		"lines without an id":    {Lines: []ReturnedLine{{"a", 1}}},
		"a line twice":           {ID: "R", Lines: []ReturnedLine{{"a", 1}, {"a", 1}}},
		"nothing of a line":      {ID: "R", Lines: []ReturnedLine{{"a", 0}}},
		"an id with a blank":     {ID: "R 1"},
		"more than was bought":   {ID: "R", Lines: []ReturnedLine{{"a", 7}}},
		"a line of other orders": {ID: "R", Lines: []ReturnedLine{{"z", 1}}},
	} {
		err := r.check()
		if err == nil {
			err = r.refund("till", Stored{Order: o, Coupons: held}).Err
		}
		if err == nil {
			t.Error(name)
		}
	}
	stored := &Refund{ID: "R", Lines: []ReturnedLine{{"a", 1}}}
	if d := (Return{ID: "R", Lines: stored.Lines}).refund("till", Stored{Order: o, Coupons: held, Refund: stored}); d.Err != nil || d.Save || d.Refund != stored {
		t.Errorf("repeated: %+v", d)
	}
	if d := (Return{ID: "R", Lines: []ReturnedLine{{"a", 2}}}).refund("till", Stored{Order: o, Coupons: held, Refund: stored}); d.Err == nil {
		t.Error("another return with the same id")
	}
	if d := (Return{ID: "R"}).refund("till", Stored{Order: o, Coupons: held, Refund: stored}); d.Err == nil {
		t.Error("the id of a part is that of all that is left")
	}
	stored.Orders = 1
	if d := (Return{ID: "R"}).refund("till", Stored{Order: o, Coupons: held, Refund: stored}); d.Err != nil || d.Save || d.Refund != stored {
		t.Errorf("all that was left, repeated: %+v", d)
	}
}

// TestRefundsAddUp: whatever comes back in which order, no refund is negative, what stays is never below
// nothing, and the refunds of all lines are what was paid.
func TestRefundsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantities := rapid.SliceOfN(rapid.Int64Range(1, 9), 1, 4).Draw(t, "quantities")
		quantities[0] += 5 // the threshold is met
		o, held := bought(t, rapid.Bool().Draw(t, "recompute"), quantities...)
		paid := o.Amount() - o.Discount
		for n := 0; o.State != Refunded; n++ {
			var r Return
			for i, l := range o.Lines {
				if left := l.Quantity - o.Returned[i]; left > 0 && (n > 5 || rapid.Bool().Draw(t, "comes back")) {
					r.Lines = append(r.Lines, ReturnedLine{l.ID, rapid.Int64Range(1, left).Draw(t, "quantity")})
				}
			}
			if n > 12 {
				r.Lines = nil
			} else if len(r.Lines) == 0 {
				continue
			} else {
				r.ID = string(rune('a' + n))
			}
			d := r.refund("till", Stored{Order: o, Coupons: held})
			if d.Err != nil || d.Refund.PayBack < 0 || d.Refund.Clawback < 0 || d.Order.PaidBack > paid {
				t.Fatalf("%+v, %v", d.Refund, d.Err)
			}
			if (d.Order.State == Refunded) != (len(d.Moves) == 1) {
				t.Fatalf("the order is %s and %d coupons came back", d.Order.State, len(d.Moves))
			}
			o = &d.Order
		}
		if o.PaidBack != paid {
			t.Fatalf("%d of %d were paid back", o.PaidBack, paid)
		}
	})
}
