package shop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	dropbell "dropbell/sdk/go"
	"dropbell/sdk/go/api"
)

// product is what the shop sells.
type product struct {
	Name, Latin string
	Price       int64 // minor units
}

func tea() product { return product{"明前龙井", "Longjing, first spring harvest, 50 g", 6800} }

// coupon is one that the user can pay with.
type coupon struct {
	ID, Name string
	Until    time.Time
}

// order is what a user has bought.
type order struct {
	ID, User, Coupon       string
	Price, Discount, Total int64
	State                  string // paid, cancelled, refunded
	Steps                  []string
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
			found = append(found, coupon{c.CouponId, c.TemplateName, c.ExpiresAt})
		}
	}
	return found, nil
}

func (s *Shop) checkout(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	p.Error = r.URL.Query().Get("error")
	var err error
	if p.Coupons, err = s.coupons(r.Context(), p.User); err != nil {
		p.Error = "Coupons cannot be shown right now: " + err.Error()
	}
	s.render(w, "checkout.html", p)
}

// pay places an order. The coupon is locked before the money is taken, used once it
// is there, and given back if the payment fails.
func (s *Shop) pay(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	o := order{ID: fmt.Sprintf("A-%d", time.Now().UnixMicro()), User: p.User, Coupon: r.FormValue("coupon"), Price: p.Product.Price, Total: p.Product.Price, State: "paid"}
	if err := s.settle(r.Context(), &o, r.FormValue("outcome") != "fail"); err != nil {
		p.Error = refusalText(err)
		p.Coupons, _ = s.coupons(r.Context(), p.User) // the error says enough
		w.WriteHeader(http.StatusConflict)
		s.render(w, "checkout.html", p)
		return
	}
	s.keep(o)
	http.Redirect(w, r, "/orders/"+o.ID, http.StatusSeeOther)
}

// settle carries the order out; paid says whether the payment succeeds.
func (s *Shop) settle(ctx context.Context, o *order, paid bool) error {
	if o.Coupon != "" {
		locked, err := s.client.LockCouponWithResponse(ctx, o.Coupon, nil, api.LockWish{OrderId: o.ID, OrderAmount: o.Price, UserId: &o.User})
		if err != nil {
			return err
		}
		o.Discount = *locked.JSON200.Discount
		o.Total -= o.Discount
		o.step("The coupon is locked for the order: %s off.", yuan(o.Discount))
	}
	ref := api.OrderRef{OrderId: o.ID}
	if !paid {
		o.State = "cancelled"
		o.step("The payment failed.")
		if o.Coupon != "" {
			if _, err := s.client.ReleaseCouponWithResponse(ctx, o.Coupon, nil, ref); err != nil {
				return err
			}
			o.step("The coupon was given back.")
		}
		return nil
	}
	o.step("%s were paid.", yuan(o.Total))
	if o.Coupon != "" {
		if _, err := s.client.ConfirmCouponWithResponse(ctx, o.Coupon, nil, ref); err != nil {
			return err
		}
		o.step("The coupon is used.")
	}
	return nil
}

// refund returns the money and the coupon.
func (s *Shop) refund(w http.ResponseWriter, r *http.Request) {
	p := s.page(w, r)
	o, ok := s.order(r.PathValue("id"), p.User)
	if !ok || o.State != "paid" {
		http.NotFound(w, r)
		return
	}
	if o.Coupon != "" {
		if _, err := s.client.RefundCouponWithResponse(r.Context(), o.Coupon, nil, api.OrderRef{OrderId: o.ID}); err != nil {
			http.Error(w, refusalText(err), http.StatusConflict)
			return
		}
	}
	o.State = "refunded"
	o.step("The money was refunded, and the coupon is back.")
	s.keep(o)
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
	o.Steps = append(o.Steps, fmt.Sprintf(format, args...))
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

// refusalText says what went wrong in words for the page.
func refusalText(err error) string {
	if p, ok := errors.AsType[*dropbell.Problem](err); ok {
		return p.Detail
	}
	return "Dropbell cannot be reached right now."
}
