package coupons

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/web/api/pipeline"
)

// OrderLock is the request to lock several coupons for an order.
type OrderLock struct {
	UserID         string     `json:"user_id" pattern:"^[1-9][0-9]{0,18}$" doc:"The owner of the coupons." example:"1001"`
	ShopNumber     string     `json:"shop_number,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"If given, coupons of other shops are refused." example:"10"`
	Currency       string     `json:"currency" doc:"ISO 4217." example:"CNY"`
	Lines          []CartLine `json:"lines" minItems:"1" maxItems:"200" nullable:"false"`
	Coupons        []string   `json:"coupons" minItems:"1" maxItems:"5" nullable:"false" example:"[\"1\"]"`
	Revision       int64      `json:"revision,omitempty" minimum:"0" doc:"0 at first; a changed cart of the same order has a higher one." example:"0"`
	ExpectDiscount *int64     `json:"expect_discount,omitempty" doc:"The discount that the customer saw; with another one the answer is cart_changed." example:"1000"`
}

// OrderConfirm confirms an order.
type OrderConfirm struct {
	Revision int64 `json:"revision,omitempty" minimum:"0" doc:"If given and not 0, it must be the revision that is locked." example:"1"`
}

// RefundLine is a quantity of a line that comes back.
type RefundLine struct {
	ID       string `json:"id" minLength:"1" maxLength:"64" doc:"The id of the line in the lock." example:"1"`
	Quantity int64  `json:"quantity" minimum:"1" maximum:"1000000" example:"1"`
}

// OrderRefund returns lines of an order.
type OrderRefund struct {
	RefundID string       `json:"refund_id,omitempty" maxLength:"64" doc:"Your id of this return within the order: 1 to 64 bytes without spaces. Required with lines. A repeated refund is known by it." example:"R-1"`
	Lines    []RefundLine `json:"lines,omitempty" maxItems:"200" nullable:"false" doc:"What comes back; without it, all that is left of the order."`
	RefundTo string       `json:"refund_to,omitempty" enum:"holder,stock,nobody" default:"holder" doc:"Who gets a coupon whose last line comes back: its holder; the stock of its drop, so that another user can get it; or nobody: it stays used."`
}

// OrderLine is one line of an order with its discount.
type OrderLine struct {
	CartLine
	Discount int64 `json:"discount" doc:"What the coupons take off the line, in minor units." example:"1000"`
	Returned int64 `json:"returned" doc:"The part of quantity that came back." example:"0"`
}

// OrderCoupon is a coupon of an order.
type OrderCoupon struct {
	UsableCoupon
	State string `json:"state" enum:"unused,locked,used,expired,refunded,revoked,suspended" example:"locked"`
}

// CouponOrder is an order with its coupons.
type CouponOrder struct {
	OrderID     string        `json:"order_id" example:"A-1001"`
	State       string        `json:"state" enum:"locked,confirmed,released,refunded" doc:"locked also after the lock has timed out: see the state of the coupons." example:"locked"`
	Revision    int64         `json:"revision" example:"0"`
	Currency    string        `json:"currency,omitempty" example:"CNY"`
	Amount      int64         `json:"amount" doc:"Before discounts, in minor units." example:"3800"`
	Discount    int64         `json:"discount" example:"1000"`
	Lines       []OrderLine   `json:"lines" nullable:"false"`
	Coupons     []OrderCoupon `json:"coupons" nullable:"false"`
	LockedUntil *time.Time    `json:"locked_until,omitempty" doc:"The locks hold at least until then."`
	PaidBack    int64         `json:"paid_back" doc:"What all refunds of the order paid back, in minor units." example:"0"`
}

// RefundAnswer says what to pay back.
type RefundAnswer struct {
	RefundID string       `json:"refund_id" example:"R-1"`
	PayBack  int64        `json:"pay_back" doc:"Pay this back: the returned lines less their share of the discount, less clawback; in minor units." example:"1500"`
	Clawback int64        `json:"clawback" doc:"The discount of lines that stay which the customer loses, because a coupon's threshold is no longer met; taken off pay_back." example:"0"`
	Lines    []RefundLine `json:"lines" nullable:"false"`
	Coupons  []string     `json:"coupons" nullable:"false" doc:"The coupons that came back with this refund."`
	Order    CouponOrder  `json:"order"`
}

// OrderPath is the address of an order.
type OrderPath struct {
	Order string `path:"order" maxLength:"64" doc:"Your id of the order: 1 to 64 bytes without spaces, / and %." example:"A-1001"`
}

// check returns an error unless the path names an order.
func (p OrderPath) check() error {
	if coupon.CheckOrderID(p.Order) != nil || strings.ContainsAny(p.Order, "/%") {
		return pipeline.Refused("path.order", "must be 1 to %d bytes without spaces, control characters, / and %%", coupon.MaxOrderID)
	}
	return nil
}

type orderAnswer struct{ Body CouponOrder }

func (h *handlers) cartOrderRoutes() {
	step := func(name, summary, description, example string, codes ...string) pipeline.Route {
		return pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForPayment}, Method: http.MethodPost, Path: "/orders/{order}/" + name, ID: name + "-order",
			Summary: summary, Description: description + " Repeating it changes nothing.", Codes: append(codes, "coupon_not_usable"), Example: example}
	}
	pipeline.Register(h.Pipeline, step("lock", "Lock several coupons for an order",
		"All of them or none. A changed cart is the same order with a higher revision: coupons that it no longer uses are released, and cannot come back to this order. "+
			"Order ids are unique within the installation; begin them with the shop's number if shops number their orders alike.",
		`{"user_id":"1001","currency":"CNY","lines":[{"id":"1","product":"tea","quantity":2,"amount":3000}],"coupons":["1"]}`,
		"coupon_not_found", "coupon_suspended", "combination_refused", "cart_changed"), h.lockOrder)
	pipeline.Register(h.Pipeline, step("confirm", "Use the coupons that the order holds", "All of them or none.", `{"revision":1}`, "order_not_found", "cart_changed"), h.confirmOrder)
	pipeline.Register(h.Pipeline, step("release", "Give the coupons of the order back", "Works before the lock too, which then fails. A confirmed order is refused: refund it.", ""), h.releaseOrder)
	pipeline.Register(h.Pipeline, step("refund", "Return lines of an order, and its coupons with their last line",
		"Answers what to pay back. A line's share of the discount is not paid back; a drop with the refund_rule recompute also takes back the discount of the lines that stay, "+
			"if they are below its threshold.", `{"refund_id":"R-1","lines":[{"id":"1","quantity":1}]}`, "order_not_found", "idempotency_conflict"), h.refundOrder)
}

func (h *handlers) lockOrder(ctx context.Context, in *struct {
	OrderPath
	Body OrderLock
}) (*orderAnswer, error) {
	b := in.Body
	owner, err := ownerOf(ctx, b.UserID)
	c, bad := CartOrder{b.ShopNumber, b.Currency, b.Lines}.cart("body.")
	w := cart.Wish{OrderID: in.Order, UserID: owner, Cart: c, Revision: b.Revision}
	err = pipeline.Merge(in.check(), err, bad)
	for i, text := range b.Coupons {
		id, bad := pipeline.ParseID("body.coupons["+strconv.Itoa(i)+"]", text)
		w.Coupons, err = append(w.Coupons, id), pipeline.Merge(err, bad)
	}
	if b.ExpectDiscount != nil {
		w.Expect = new(money.Amount(*b.ExpectDiscount))
	}
	if err != nil {
		return nil, err
	}
	return answerOrder(h.CartOrders.Lock(ctx, signature(ctx), w))
}

func (h *handlers) confirmOrder(ctx context.Context, in *struct {
	OrderPath
	Body *OrderConfirm
}) (*orderAnswer, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	var revision int64
	if in.Body != nil {
		revision = in.Body.Revision
	}
	return answerOrder(h.CartOrders.Confirm(ctx, signature(ctx), pipeline.UserOf(ctx), in.Order, revision))
}

func (h *handlers) releaseOrder(ctx context.Context, in *OrderPath) (*orderAnswer, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return answerOrder(h.CartOrders.Release(ctx, signature(ctx), pipeline.UserOf(ctx), in.Order))
}

func (h *handlers) refundOrder(ctx context.Context, in *struct {
	OrderPath
	Body *OrderRefund
}) (*struct{ Body RefundAnswer }, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	r := cart.Return{}
	if in.Body != nil {
		r.ID, r.To = in.Body.RefundID, template.RefundTo(in.Body.RefundTo)
		for _, l := range in.Body.Lines {
			r.Lines = append(r.Lines, cart.ReturnedLine{ID: l.ID, Quantity: l.Quantity})
		}
	}
	t, err := h.CartOrders.Refund(ctx, signature(ctx), pipeline.UserOf(ctx), in.Order, r)
	if err != nil {
		return nil, err
	}
	a := RefundAnswer{RefundID: t.Refund.ID, PayBack: int64(t.Refund.PayBack), Clawback: int64(t.Refund.Clawback), Coupons: []string{}, Lines: []RefundLine{}, Order: orderJSON(t)}
	for _, l := range t.Refund.Lines {
		a.Lines = append(a.Lines, RefundLine{l.ID, l.Quantity})
	}
	for _, id := range t.Refund.Coupons {
		a.Coupons = append(a.Coupons, pipeline.Decimal(id))
	}
	return &struct{ Body RefundAnswer }{a}, nil
}

func answerOrder(t cart.Taken, err error) (*orderAnswer, error) {
	if err != nil {
		return nil, err
	}
	return &orderAnswer{orderJSON(t)}, nil
}

func orderJSON(t cart.Taken) CouponOrder {
	o := t.Order
	a := CouponOrder{OrderID: o.ID, State: string(o.State), Revision: o.Revision, Currency: o.Currency, Amount: int64(o.Amount()), Discount: int64(o.Discount),
		PaidBack: int64(o.PaidBack), Lines: []OrderLine{}, Coupons: []OrderCoupon{}}
	off := cart.Combination{Uses: o.Uses}.Lines(len(o.Lines))
	for i, l := range o.Lines {
		a.Lines = append(a.Lines, OrderLine{CartLine{l.ID, l.Product, l.Quantity, int64(l.Amount)}, int64(off[i]), o.Returned[i]})
	}
	for i, u := range usesJSON(o.Cart, o.Uses) {
		c := t.Coupons[o.Uses[i].Coupon]
		a.Coupons = append(a.Coupons, OrderCoupon{u, string(c.State)})
		if o.State == cart.Locked && c.Holds(o.ID) {
			a.LockedUntil = pipeline.UTC(c.LockedUntil)
		}
	}
	return a
}
