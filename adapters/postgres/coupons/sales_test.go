package coupons_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/increment"
	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// till pays orders with coupons of two drops of one shop.
type till struct {
	*fixture
	steps *coupon.Service
}

func newTill(t *testing.T) *till {
	w := newFixture(t)
	return &till{w, &coupon.Service{Store: w.Payments, LockFor: time.Hour}}
}

// pay uses a new coupon of the drop for the order and returns the coupon.
func (w *till) pay(tpl template.Template, user int64, order string, amount int64) int64 {
	w.Helper()
	w.Exec(`update templates set issued = issued + 1 where id = $1`, tpl.ID)
	id := w.ID("coupons", pgtest.Row{"template_id": tpl.ID, "user_id": user})
	_, err := w.steps.Lock(w.Context(), "key:1", id, coupon.Order{ID: order, Amount: money.Amount(amount)})
	w.Must(err)
	_, err = w.steps.Confirm(w.Context(), "key:1", id, order)
	w.Must(err)
	return id
}

func (w *till) refund(id int64, order string) {
	w.Helper()
	_, err := w.steps.Refund(w.Context(), "key:1", id, order)
	w.Must(err)
}

func (w *till) sums(tpl template.Template, want report.Sums) {
	w.Helper()
	want.Currency = tpl.Currency
	got, err := w.Reports.Sums(w.Context(), tpl.ID)
	if w.Must(err); !cmp.Equal(want, got) {
		w.Errorf("sums of the drop (-want +got):\n%s", cmp.Diff(want, got))
	}
	if n, err := w.Tallies.SalesOff(w.Context(), tpl.ID); err != nil || n != 0 {
		w.Errorf("the sums are off by %d, %v", n, err)
	}
}

// shop returns the sums of all shops over all time.
func (w *till) shop() (sum report.Sums) {
	w.Helper()
	list, err := w.Reports.Shops(w.Context(), nil, time.Now().Add(-48*time.Hour), time.Now().Add(48*time.Hour))
	w.Must(err)
	for _, h := range list {
		sum = h.Sums.Plus(sum)
	}
	return sum
}

// TestSumsOfOrders: each order counts once in each drop and once in the shop, with the
// discounts of all its coupons. A refund takes back what the payment counted. Events that
// come twice, or in another order, change nothing.
func TestSumsOfOrders(t *testing.T) {
	w := newTill(t)
	a, b := w.Published(time.Hour), w.Published(time.Hour)
	off := int64(a.AmountOff)
	w.pay(a, 1, "A-1", 18_000)
	twice := w.pay(a, 2, "A-2", 10_000)
	w.pay(a, 3, "A-2", 9_000) // a second coupon of the drop in one order
	w.pay(b, 4, "A-2", 10_000)
	w.pay(b, 5, "A-3", 7_000)
	list := relayedSteps(w.fixture)
	for i := range list {
		count(w.fixture, list[len(list)-1-i], list[i])
	}
	d := money.Amount(off)
	w.sums(a, report.Sums{Paid: 2, PaidAmount: 28_000, PaidDiscount: 3 * d})
	w.sums(b, report.Sums{Paid: 2, PaidAmount: 17_000, PaidDiscount: 2 * d})
	if got, want := w.shop(), (report.Sums{Currency: a.Currency, Paid: 3, PaidAmount: 35_000, PaidDiscount: 5 * d}); got != want {
		t.Errorf("shop (-want +got):\n%s", cmp.Diff(want, got))
	}
	w.refund(twice, "A-2")
	w.refund(twice, "A-2")
	w.sums(a, report.Sums{Paid: 2, PaidAmount: 28_000, PaidDiscount: 3 * d}) // the event waits
	list = relayedSteps(w.fixture)
	count(w.fixture, list...)
	count(w.fixture, list...)
	w.sums(a, report.Sums{Paid: 2, PaidAmount: 28_000, PaidDiscount: 3 * d, Refunds: 1, RefundedAmount: 10_000, RefundedDiscount: d})
	hours, err := w.Reports.Hours(t.Context(), a.ID)
	w.Must(err)
	var sum report.Sums
	for _, h := range hours {
		sum = h.Sums.Plus(sum)
	}
	if sum.Revenue() != 18_000-2*d || sum.Orders() != 1 || sum.Basket() != 18_000 || sum.Refunded() != 10_000-d {
		t.Errorf("by hour: %+v", sum)
	}
}

// TestSumsOfOrdersAreRecounted: sums that differ from the log are found and replaced, while
// events are handled; hours whose log was removed stay.
func TestSumsOfOrdersAreRecounted(t *testing.T) {
	w := newTill(t)
	tpl := w.Published(time.Hour)
	var ids []int64
	for n := range int64(30) {
		ids = append(ids, w.pay(tpl, n+1, fmt.Sprint("o-", n), 5_000+n))
	}
	for n := range 10 {
		w.refund(ids[n], fmt.Sprint("o-", n))
	}
	list := relayedSteps(w.fixture)
	count(w.fixture, list[:20]...)
	w.Exec(`update sale_hours set orders = orders - 7, ordered = ordered + 1`)
	if n, err := w.Tallies.RecountSales(t.Context(), tpl.ID); err != nil || n != 0 { // the first comparison reports nothing
		t.Errorf("off by %d, %v", n, err)
	}
	for _, err := range pgtest.Together(3, func(i int) error {
		if i == 0 {
			for range 10 {
				if _, err := w.Tallies.RecountSales(context.Background(), tpl.ID); err != nil {
					return err
				}
			}
			return nil
		}
		for n := 20 + i - 1; n < len(list); n += 2 {
			count(w.fixture, list[n])
		}
		return nil
	}) {
		w.Must(err)
	}
	d := tpl.AmountOff
	want := report.Sums{Paid: 30, PaidAmount: 150_435, PaidDiscount: 30 * d, Refunds: 10, RefundedAmount: 50_045, RefundedDiscount: 10 * d}
	w.sums(tpl, want)
	w.Exec(`delete from sale_hours where refund`)
	if n, err := w.Tallies.RecountSales(t.Context(), tpl.ID); err != nil || n != 10+50_045+10*int64(d) {
		t.Errorf("off by %d, %v", n, err)
	}
	w.sums(tpl, want)
	w.Exec(`insert into removed_steps (until) values (clock_timestamp())`)
	w.Exec(`delete from coupon_operations`)
	w.sums(tpl, want)
	if ids, err := w.Tallies.SalesToRecount(t.Context(), 10); err != nil || len(ids) != 0 {
		t.Errorf("%v are to be recounted, %v", ids, err)
	}
	w.Exec(`update sale_hours set orders = -1 where refund`)
	if ids, err := w.Tallies.SalesImpossible(t.Context(), 10); err != nil || len(ids) != 1 {
		t.Errorf("%v cannot be true, %v", ids, err)
	}
}

// TestOrdersWithoutCoupons: an order that a coupon was used for is none of them, nor is one
// that was refunded in full.
func TestOrdersWithoutCoupons(t *testing.T) {
	w := newTill(t)
	tpl := w.Published(time.Hour)
	w.pay(tpl, 1, "A-1", 5_000)
	check := func(want report.Plain) {
		t.Helper()
		got, err := w.Reports.Without(t.Context(), tpl.ShopNumber, tpl.Currency, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		if w.Must(err); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	check(report.Plain{})
	w.Exec(`insert into orders (shop_number, order_id, currency, amount, refunded, ordered_at) values ($1, 'A-1', $2, 5000, 0, now()),
		($1, 'B-1', $2, 4000, 1000, now()), ($1, 'B-2', $2, 900, 900, now()), ($1, 'B-3', 'JPY', 900, 0, now()), ($1, 'B-4', $2, 700, 0, now() - interval '2 hours')`,
		tpl.ShopNumber, tpl.Currency)
	check(report.Plain{Reported: true, Orders: 1, Amount: 3000})
}

// TestIncrementIsWhatTheRowsSay: users with a reservation are divided by the rule of the
// reminders. Their paid orders count once each, refunded orders and users without a reservation do not.
func TestIncrementIsWhatTheRowsSay(t *testing.T) {
	w := newTill(t)
	tpl := w.Published(time.Hour)
	tpl.HoldOutPercent = 25
	const users = 400
	w.Exec(`update templates set stock = 1000`)
	w.Exec(`insert into reservations (template_id, user_id, slots) select $1, n, 1 from generate_series(1, $2) n`, tpl.ID, users)
	want := increment.Increment{Currency: tpl.Currency}
	for id := range int64(users) {
		id++
		g := &want.Reached
		if delivery.HeldOutOfDrop(tpl.ID, tpl.HoldOutPercent, user.ID(id)) {
			g = &want.HeldOut
		}
		g.Users++
		switch id % 5 {
		case 0:
			w.pay(tpl, id, fmt.Sprint("o-", id), 6000+id)
			g.Add(1, money.Amount(6000+id)-tpl.AmountOff)
		case 1:
			w.pay(tpl, id, fmt.Sprint("o-", id), 20_000) // two coupons in one order, and another order
			w.pay(tpl, id, fmt.Sprint("o-", id), 20_000)
			w.pay(tpl, id, fmt.Sprint("p-", id), 7000)
			g.Add(2, 27_000-3*tpl.AmountOff)
		case 2:
			w.refund(w.pay(tpl, id, fmt.Sprint("o-", id), 6000), fmt.Sprint("o-", id))
		}
	}
	w.pay(tpl, users+1, "stranger", 9000)
	got, err := w.Reports.Increment(t.Context(), tpl)
	if w.Must(err); !cmp.Equal(want, got) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	if got.HeldOut.Users < 60 || got.HeldOut.Orders == 0 {
		t.Errorf("the held-out users: %+v", got.HeldOut)
	}
}
