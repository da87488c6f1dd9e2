package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	dropbell "dropbell/sdk/go"
	"dropbell/sdk/go/api"
)

// product is an article of the shop.
type product struct {
	Name, Latin string
	Price       int64 // minor units
}

func tea() product { return product{"明前龙井", "Longjing, first spring harvest, 50 g", 6800} }

// coupon is a coupon with which the user can pay.
type coupon struct {
	ID, Name string
	Until    time.Time
	// Apple and Google put it into a wallet; "" where Dropbell issues no such passes.
	Apple, Google string
	// Usable says that the cart can use the coupon, which alone takes Discount off; otherwise Missing is
	// what the cart lacks, if more would help. Best coupons together take the most off.
	Usable, Best      bool
	Discount, Missing int64
}

// order is a purchase of a user.
type order struct {
	ID, User               string
	Coupons                []string
	Lines                  []line
	Price, Discount, Total int64
	State                  string // paid, cancelled, refunded
	Steps                  []string
	Open                   bool // the coupon is still locked: it is to be used, or given back
}

// coupons returns the unused coupons of the user.
func (s *Shop) coupons(ctx context.Context, user string) ([]coupon, error) {
	unused := api.ListCouponsParamsStateUnused
	list, err := s.client.ListCouponsWithResponse(ctx, &api.ListCouponsParams{State: &unused, XUserID: &user})
	if err != nil {
		return nil, err
	}
	var found []coupon
	for _, c := range list.JSON200.Coupons {
		if c.ShopNumber == Number {
			found = append(found, s.inWallets(ctx, user, coupon{ID: c.CouponId, Name: c.TemplateName, Until: c.ExpiresAt}))
		}
	}
	return found, nil
}

// inWallets adds the links that put the coupon into a wallet. If Dropbell does not answer, there
// are no links; the coupon can be used all the same.
func (s *Shop) inWallets(ctx context.Context, user string, c coupon) coupon {
	pass, err := s.client.GetCouponPassWithResponse(ctx, c.ID, &api.GetCouponPassParams{XUserID: &user})
	if err != nil || pass.JSON200 == nil {
		return c
	}
	if link := pass.JSON200.AppleUrl; link != nil {
		c.Apple = *link
	}
	if link := pass.JSON200.GoogleUrl; link != nil {
		c.Google = *link
	}
	return c
}

func (s *Shop) checkout(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	p.Error = r.URL.Query().Get("error")
	s.offered(r, &p)
	s.render(w, "checkout.html", p)
}

// offered fills the page with the cart of the request and what the user's coupons do for it.
func (s *Shop) offered(r *http.Request, p *page) {
	p.Lines = cartOf(r)
	p.Total = total(p.Lines)
	var err error
	if p.Offer, err = s.offer(r.Context(), p.User, bought(p.Lines)); err != nil && p.Error == "" {
		p.Error = "Coupons cannot be shown right now: " + err.Error()
	}
}

// stepTime is how long a page waits for Dropbell.
const stepTime = 20 * time.Second

// untilDone returns a context that does not end when the client disconnects: an order is
// completed once its payment has begun.
func untilDone(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), stepTime)
}

// pay places an order. Its coupons are locked before the money is taken, used after the payment
// succeeded, and released if the payment fails.
func (s *Shop) pay(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	lines := bought(cartOf(r))
	if len(lines) == 0 {
		http.Redirect(w, r, "/checkout?error=The+cart+is+empty.", http.StatusSeeOther)
		return
	}
	o := order{ID: fmt.Sprintf("%s-%d", Number, time.Now().UnixMicro()), User: p.User, Coupons: r.Form["coupon"], Lines: lines, Price: total(lines), Total: total(lines), State: "paid"}
	ctx, cancel := untilDone(r)
	defer cancel()
	if err := s.take(ctx, &o, r.FormValue("outcome") != "fail"); err != nil {
		p.Error = refusalText(err)
		s.offered(r, &p)
		w.WriteHeader(http.StatusConflict)
		s.render(w, "checkout.html", p)
		return
	}
	s.keep(o)
	if o.Open {
		s.settle(ctx, o)
	}
	if o.State == "paid" {
		s.report(ctx, o, 0)
	}
	http.Redirect(w, r, "/orders/"+o.ID, http.StatusSeeOther)
}

// take locks the coupons and takes the money; paid says whether the payment succeeds.
func (s *Shop) take(ctx context.Context, o *order, paid bool) error {
	if len(o.Coupons) > 0 {
		number := Number
		locked, err := s.client.LockOrderWithResponse(ctx, o.ID, nil, api.OrderLock{UserId: o.User, ShopNumber: &number, Currency: "CNY", Lines: cartLines(o.Lines), Coupons: o.Coupons})
		if err != nil {
			return err
		}
		o.Discount = locked.JSON200.Discount
		o.Total -= o.Discount
		for i, l := range locked.JSON200.Lines {
			o.Lines[i].Discount = l.Discount
		}
		o.step("The coupons are locked for the order: %s off.", yuan(o.Discount))
		o.Open = true
	}
	if !paid {
		o.State = "cancelled"
		o.step("The payment failed.")
		return nil
	}
	o.step("%s were paid.", yuan(o.Total))
	return nil
}

// settle carries out the last step of an order; the order is stored before. If Dropbell does not
// answer, the step is repeated until Dropbell answers. A shop with a database would repeat it
// from there.
func (s *Shop) settle(ctx context.Context, o order) {
	done := "The coupon is used."
	var err error
	if o.State == "paid" {
		_, err = s.client.ConfirmOrderWithResponse(ctx, o.ID, nil, api.OrderConfirm{})
	} else {
		done = "The coupon was given back."
		_, err = s.client.ReleaseOrderWithResponse(ctx, o.ID, nil)
	}
	switch {
	case err == nil:
		o.step("%s", done)
	case slices.Contains([]string{"coupon_not_usable", "coupon_not_found", "order_not_found"}, dropbell.Code(err)):
		s.config.Log.Warn("the last step of an order was refused", "order", o.ID, "err", err)
		o.step("Dropbell refused the last step: %s", refusalText(err))
	default:
		s.config.Log.Warn("the last step of an order is repeated", "order", o.ID, "err", err)
		time.AfterFunc(s.again, func() {
			ctx, cancel := context.WithTimeout(s.ended, stepTime)
			defer cancel()
			if s.ended.Err() == nil {
				s.settle(ctx, o)
			}
		})
		return
	}
	o.Open = false
	s.keep(o)
}

// report tells Dropbell of an order, with or without a coupon, so that reports can compare them. The
// order does not depend on it. A shop with a database would report until Dropbell answers.
func (s *Shop) report(ctx context.Context, o order, refunded int64) {
	if _, err := s.client.ReportOrderWithResponse(ctx, nil, api.OrderReport{ShopNumber: Number, OrderId: o.ID, UserId: &o.User, Currency: "CNY", Amount: o.Price, Refunded: &refunded}); err != nil {
		s.config.Log.Warn("an order is not reported", "order", o.ID, "err", err)
	}
}

// refund returns pieces of a line, what they cost less their discount, and the coupon with its last line.
func (s *Shop) refund(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	o, ok := s.order(r.PathValue("id"), p.User)
	if !ok || o.State != "paid" || o.Open {
		http.NotFound(w, r)
		return
	}
	ctx, cancel := untilDone(r)
	defer cancel()
	at := slices.IndexFunc(o.Lines, func(l line) bool { return l.ID == r.FormValue("line") })
	pieces, _ := strconv.ParseInt(r.FormValue("pieces"), 10, 64) // nonsense is none
	if at < 0 || pieces < 1 || pieces > o.Lines[at].Left() {
		http.NotFound(w, r)
		return
	}
	o.Lines = slices.Clone(o.Lines)
	refund := fmt.Sprintf("%s-%d", o.Lines[at].ID, o.Lines[at].Returned) // the same for a repeated click
	if err := s.giveBack(ctx, &o, refund, at, pieces); err != nil {
		http.Error(w, refusalText(err), http.StatusConflict)
		return
	}
	var returned int64
	for _, l := range o.Lines {
		returned += l.Returned * l.Price
	}
	if returned == o.Price {
		o.State = "refunded"
	}
	s.keep(o)
	s.report(ctx, o, returned)
	http.Redirect(w, r, "/orders/"+o.ID, http.StatusSeeOther)
}

func (s *Shop) receipt(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	var ok bool
	if p.Order, ok = s.order(r.PathValue("id"), p.User); !ok {
		http.NotFound(w, r)
		return
	}
	s.render(w, "receipt.html", p)
}

func (o *order) step(format string, args ...any) {
	o.Steps = append(slices.Clip(o.Steps), fmt.Sprintf(format, args...))
}

func (s *Shop) keep(o order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[o.ID] = o
}

// order returns an order of the user.
func (s *Shop) order(id, user string) (order, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[id]
	return o, ok && o.User == user
}

// refusalText describes the error in words for the page.
func refusalText(err error) string {
	if p, ok := errors.AsType[*dropbell.Problem](err); ok {
		return p.Detail
	}
	return "Dropbell cannot be reached right now."
}
