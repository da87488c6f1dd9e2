package past

import (
	"context"
	"math"
	"strconv"
	"time"

	"dropbell/domain/money"
)

// Orders without coupons, which the shop reports: how many there are for a reservation, their
// usual amount in proportion to orders with coupons, and the share that is returned.
const (
	plainOrders  = .3
	plainBasket  = .74
	plainReturns = .03
)

// storeOrders stores the orders that other customers of the shop make without a coupon, from the
// opening until the last coupon ends, or until now.
func (d *made) storeOrders(ctx context.Context) error {
	r, rows := random(d.Key+" orders"), &table{name: "orders", columns: []string{"shop_number", "order_id", "user_id", "currency", "amount", "refunded", "ordered_at", "reported_at"}}
	end := d.closes.Add(time.Duration(d.ValidHours) * time.Hour)
	if last := d.now.Add(-time.Minute); last.Before(end) {
		end = last
	}
	for n := range int(plainOrders * float64(d.Bookers)) {
		at := d.OpensAt.Add(time.Duration(r.Float64() * float64(end.Sub(d.OpensAt)))).Truncate(time.Second)
		amount := max(money.Amount(plainBasket*float64(d.Basket)*math.Exp(.5*r.NormFloat64()))/100*100, 900)
		refunded := money.Amount(0)
		if r.Float64() < plainReturns {
			refunded = amount
		}
		rows.add(d.ShopNumber, "W-"+d.Key+"-"+strconv.Itoa(n+1), d.known[r.IntN(len(d.known))].id, d.Currency, int64(amount), int64(refunded), at, at.Add(time.Second))
	}
	return store(ctx, d.tx, rows)
}
