package coupons_test

import (
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/user"
)

// The orders of all customers together are the orders of the shops, with shared orders and refunds;
// amounts of two currencies stay apart, and a member of one shop sees the orders of that shop.
func TestWorthOfCustomersIsWorthOfShops(t *testing.T) {
	w := newTill(t)
	a, b, euro := w.Published(time.Hour), w.Published(time.Hour), w.Published(time.Hour)
	w.Shops(11)
	w.Exec(`update templates set currency = 'EUR', shop_number = 11 where id = $1`, euro.ID)
	w.pay(a, 1, "A-1", 18_000)
	w.pay(b, 1, "A-1", 18_000) // the same order with a coupon of another drop
	gone := w.pay(a, 1, "A-2", 10_000)
	w.pay(a, 2, "A-3", 7_000)
	w.pay(euro, 2, "E-1", 5_000)
	w.refund(gone, "A-2")
	count(w.fixture, relayedSteps(w.fixture)...)
	w.Exec(`insert into orders (shop_number, order_id, user_id, currency, amount, refunded, ordered_at) values
		(10, 'A-1', 1, 'CNY', 18000, 0, now()), (10, 'P-1', 1, 'CNY', 5000, 1000, now()), (10, 'P-2', 1, 'CNY', 900, 900, now()), (11, 'P-3', 3, 'EUR', 300, 0, now() - interval '2 days')`)

	purse := couponsdb.NewCouponSteps(w.DB)
	users := []user.ID{1, 2, 3, 4}
	all, err := purse.Worth(t.Context(), users, nil)
	w.Must(err)
	sums := map[string]report.Sums{}
	for _, of := range all {
		for _, s := range of.Spent {
			sums[s.With.Currency] = s.With.Plus(sums[s.With.Currency])
		}
	}
	list, err := w.Reports.Shops(t.Context(), nil, time.Now().Add(-48*time.Hour), time.Now().Add(48*time.Hour))
	w.Must(err)
	shops := map[string]report.Sums{}
	for _, h := range list {
		shops[h.Currency] = h.Sums.Plus(shops[h.Currency])
	}
	for currency, want := range shops {
		if sums[currency] != want {
			t.Errorf("%s: customers have %+v, shops %+v", currency, sums[currency], want)
		}
	}
	off := money.Amount(a.AmountOff)
	one := all[1]
	if s := one.Spent[0]; len(one.Spent) != 1 || s.Orders() != 2 || s.Revenue() != 18_000-2*off+4_000 || s.Basket() != 11_000 || s.Without.Orders != 1 {
		t.Errorf("customer 1: %+v", one)
	}
	if one.Coupons != 3 || one.Used != 2 || time.Since(one.LastOrder) > time.Minute {
		t.Errorf("customer 1: %d coupons, %d used, last order %v", one.Coupons, one.Used, one.LastOrder)
	}
	if two := all[2]; len(two.Spent) != 2 || two.Spent[0].Orders() != 1 || two.Spent[1].Revenue() != 5_000-off {
		t.Errorf("customer 2: %+v", two)
	}
	if four, known := all[4]; known {
		t.Errorf("customer 4: %+v", four)
	}
	of11, err := purse.Worth(t.Context(), users, []int64{11})
	w.Must(err)
	if len(of11) != 2 || len(of11[2].Spent) != 1 || of11[3].Spent[0].Revenue() != 300 || time.Since(of11[3].LastOrder) < 24*time.Hour {
		t.Errorf("shop 11: %+v", of11)
	}
	for shops, want := range map[int64]int64{10: 3, 11: 1, 12: 0} {
		if n, err := purse.Used(t.Context(), []int64{shops}); err != nil || n != want {
			t.Errorf("shop %d: %d coupons used, %v", shops, n, err)
		}
	}
}
