package coupons_test

import (
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/cart"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// TestTogether: the table names what goes together, and the example follows the typed cart, with
// and without scripts.
func TestTogether(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	b.Get("/coupons/together").Is(200).Has("No drop has coupons yet")
	a, c, alone := g.Published(10, time.Hour), g.Published(10, 2*time.Hour), g.Published(10, 3*time.Hour)
	set := func(id int64, name, change string) {
		g.Exec(`update templates set name = $2, `+change+` where id = $1`, id, name)
	}
	set(a.ID, "Welcome", `kind = 'amount_off', amount_off = 2000, stack_group = 'welcome', stacks_with = 'member'`)
	set(c.ID, "Members", `kind = 'percent_off', amount_off = 0, percent_off = 10, max_off = 5000, stack_group = 'member', stacks_with = 'other welcome'`)
	set(alone.ID, "Tea", `kind = 'threshold_off', amount_off = 2500, threshold = 11200, stack_group = 'other'`)
	// 20.00 of 100.00, then 10 % of 80.00.
	b.Get("/coupons/together").Is(200).Has("Welcome", "¥28", "¥72", "¥12 more", "Only one side names the other: Tea", "Stands alone", `name="amount1"`)
	b.Get("/coupons/together?shop=10&amount1=120&product1=").Is(200).Has("¥30", "¥90").HasNot("more</td>")
	b.Get("/coupons/together?amount1=abc").Is(200).Has("Correct the cart", "with at most 2 decimals", "Welcome")
	b.Get("/coupons/together?amount1=").Is(200).Has("No coupon takes anything off")
	b.Header.Set("HX-Request", "true")
	b.Header.Set("HX-Request-Type", "partial")
	b.Get("/coupons/together?amount1=120").Is(200).Has("¥30").HasNot("<html")
	b.Header.Del("HX-Request")
	g.Shop(11)
	g.As(staff.Viewer, 11).Get("/coupons/together?shop=10").Is(200).HasNot("Welcome")
}

// TestUserShowsOrders: the page of a user shows an order with its lines and coupons, to members of
// its shop.
func TestUserShowsOrders(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	id := g.Gives(d, 7)
	orders := &cart.Orders{Store: pgtest.Payments(t, g.DB), LockFor: time.Hour}
	_, err := orders.Lock(t.Context(), "key:1 Till", cart.Wish{OrderID: "A-77", UserID: 7, Coupons: []int64{id}, Cart: cart.Cart{Currency: "CNY",
		Lines: []cart.Line{{ID: "1", Product: "Jasmine tea", Quantity: 4, Amount: 40000}}}})
	g.Must(err)
	_, err = orders.Confirm(t.Context(), "", 7, "A-77", 0)
	g.Must(err)
	_, err = orders.Refund(t.Context(), "", 7, "A-77", cart.Return{ID: "R-1", Lines: []cart.ReturnedLine{{ID: "1", Quantity: 1}}})
	g.Must(err)
	g.As(staff.Viewer).Get("/users/7").Is(200).Has("Orders with coupons", "A-77", "Jasmine tea × 4", "1 returned", "Confirmed", "paid back")
	g.Shop(11)
	g.As(staff.Viewer, 11).Get("/users/7").Is(200).HasNot("A-77")
}
