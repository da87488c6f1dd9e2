package coupons

import (
	"context"
	"net/http"
	"strings"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/money"
	"dropbell/domain/user"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
)

// Coupon is one coupon of one user.
type Coupon struct {
	CouponID   string `json:"coupon_id" example:"1"`
	TemplateID string `json:"template_id" example:"1"`
	UserID     string `json:"user_id" example:"1001"`
	State      string `json:"state" enum:"unused,locked,used,expired,refunded,revoked,suspended" doc:"expired from expires_at on, by the server's clock. A refund makes a used coupon unused again, or expired; nothing leads to refunded." example:"locked"`
	OrderID    string `json:"order_id,omitempty" doc:"The order that holds or has used the coupon." example:"A-1001"`
	Discount   int64  `json:"discount,omitempty" doc:"The amount that the coupon takes off that order, in minor units." example:"1000"`
	Currency   string `json:"currency" example:"CNY"`
	// LockedUntil is absent unless locked.
	LockedUntil *time.Time `json:"locked_until,omitempty" doc:"The lock holds at least until then, and may expire afterwards."`
	IssuedAt    time.Time  `json:"issued_at"`
	ExpiresAt   time.Time  `json:"expires_at" doc:"The first instant at which the coupon can no longer be locked."`
	// UseBy is nil for a coupon of a drop without use_within_hours, and for one that is not unused.
	UseBy    *time.Time `json:"use_by,omitempty" doc:"For a drop with use_within_hours: an unused coupon returns to the stock then, if the drop still runs."`
	UsedAt   *time.Time `json:"used_at,omitempty"`
	Returned bool       `json:"returned_to_stock,omitempty" doc:"The revoked coupon was returned to the stock."`
	Rule     CouponRule `json:"rule"`
}

// CouponRule is the discount of a coupon and the orders that it applies to.
type CouponRule struct {
	parts.Discount
	Target  string `json:"target" enum:"shop,product" example:"shop"`
	Product string `json:"product,omitempty" doc:"For target product: which one."`
}

// OrderPart is the amount of an order for one product.
type OrderPart struct {
	Product string `json:"product" maxLength:"120" doc:"As the template names it." example:"tea"`
	Amount  int64  `json:"amount" minimum:"0" maximum:"1000000000000000" doc:"Minor units." example:"3000"`
}

// LockWish is the request to lock a coupon for an order.
type LockWish struct {
	OrderID     string      `json:"order_id" minLength:"1" maxLength:"64" doc:"1 to 64 bytes without spaces." example:"A-1001"`
	OrderAmount int64       `json:"order_amount" minimum:"1" maximum:"1000000000000000" doc:"The amount of the order before the discount, in minor units." example:"6000"`
	Currency    string      `json:"currency,omitempty" doc:"If given, it must be the coupon's." example:"CNY"`
	UserID      string      `json:"user_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"If given, the coupon must belong to this user. X-User-ID says the same; both must agree." example:"1001"`
	Products    []OrderPart `json:"products,omitempty" maxItems:"500" nullable:"false" doc:"The parts of order_amount by product. Coupons for one product need them: threshold and discount then apply to that part only."`
}

// OrderRef names the order of a step.
type OrderRef struct {
	OrderID string `json:"order_id" minLength:"1" maxLength:"64" doc:"As in the lock." example:"A-1001"`
}

type couponAnswer struct{ Body Coupon }

func (h *handlers) couponRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForOwners}, Method: http.MethodGet, Path: "/coupons/{id}", ID: "get-coupon",
		Summary: "Show a coupon", Description: "Users see their own; a key with the scope payment and without X-User-ID sees any.",
		Codes: []string{"coupon_not_found"}}, pipeline.ByID(h.coupon))
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForPayment}, Method: http.MethodPost, Path: "/coupons/{id}/lock", ID: "lock-coupon",
		Summary: "Lock a coupon for an order and compute the discount",
		Description: "Repeating it gives the same answer; with other amounts it is refused. An order locks a coupon once: after its lock has " +
			"ended by release, time-out or refund, or if its release came first, the order is refused and needs a new id. Amounts are minor units; " +
			"a percentage is rounded down; never more than the order costs is taken off.",
		Codes:   []string{"coupon_not_found", "coupon_not_usable", "coupon_suspended"},
		Example: `{"order_id":"A-1001","order_amount":6000,"currency":"CNY","user_id":"1001"}`}, h.lockCoupon)
	for _, s := range []struct {
		name, summary, description string
		do                         paymentDo
	}{
		{"confirm", "Use the coupon that the order holds", "A lock whose locked_until has passed can still be confirmed until it is " +
			"ended; then the answer is coupon_not_usable.", (*coupon.Service).Confirm},
		{"release", "Give the coupon back", "Works before its lock too, which then fails. A confirmed order is refused: refund it.", (*coupon.Service).Release},
		{"refund", "Return a used coupon", "It is unused again, or expired if its time has passed.", (*coupon.Service).Refund},
	} {
		pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForPayment}, Method: http.MethodPost, Path: "/coupons/{id}/" + s.name,
			ID: s.name + "-coupon", Summary: s.summary, Description: s.description + " Repeating it changes nothing.",
			Codes: []string{"coupon_not_found", "coupon_not_usable"}, Example: `{"order_id":"A-1001"}`}, h.paymentStep(s.do))
	}
}

func (h *handlers) coupon(ctx context.Context, id int64) (*couponAnswer, error) {
	c, err := h.Coupons.Coupon(ctx, pipeline.UserOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &couponAnswer{couponJSON(c)}, nil
}

func (h *handlers) lockCoupon(ctx context.Context, in *struct {
	pipeline.Ref
	Body LockWish
}) (*couponAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	o, err2 := in.Body.order(pipeline.UserOf(ctx))
	if err := pipeline.Merge(err, err2); err != nil {
		return nil, err
	}
	c, err := h.Coupons.Lock(ctx, signature(ctx), id, o)
	if err != nil {
		return nil, err
	}
	return &couponAnswer{couponJSON(c)}, nil
}

// order returns the requested order. named is the user in X-User-ID; 0 = no header.
func (w LockWish) order(named user.ID) (coupon.Order, error) {
	o := coupon.Order{ID: w.OrderID, Amount: money.Amount(w.OrderAmount), Currency: w.Currency}
	for _, p := range w.Products {
		o.Products = append(o.Products, coupon.Part{Product: p.Product, Amount: money.Amount(p.Amount)})
	}
	if o.UserID = named; w.UserID == "" {
		return o, nil
	}
	owner, err := pipeline.ParseID("body.user_id", w.UserID)
	if err == nil && named != 0 && named != user.ID(owner) {
		err = pipeline.Refused("body.user_id", "is another user than X-User-ID names")
	}
	o.UserID = user.ID(owner)
	return o, err
}

// paymentDo is one of the steps after the lock.
type paymentDo func(s *coupon.Service, ctx context.Context, by string, id int64, order string) (coupon.Case, error)

func (h *handlers) paymentStep(do paymentDo) func(context.Context, *struct {
	pipeline.Ref
	Body OrderRef
}) (*couponAnswer, error) {
	return func(ctx context.Context, in *struct {
		pipeline.Ref
		Body OrderRef
	}) (*couponAnswer, error) {
		id, err := pipeline.ParseID("path.id", in.ID)
		if err != nil {
			return nil, err
		}
		c, err := do(h.Coupons.For(pipeline.UserOf(ctx)), ctx, signature(ctx), id, in.Body.OrderID)
		if err != nil {
			return nil, err
		}
		return &couponAnswer{couponJSON(c)}, nil
	}
}

// signature names the caller in the operation log.
func signature(ctx context.Context) string {
	by := pipeline.ActorOf(ctx)
	return strings.TrimSpace(by.Label + " " + by.Name)
}

// useBy returns until when an unused coupon must be used, or nil.
func useBy(r coupon.Rule, state string, issued time.Time) *time.Time {
	at := r.UseBy(coupon.Coupon{IssuedAt: issued.UTC()})
	if at.IsZero() || state != string(coupon.Unused) {
		return nil
	}
	return &at
}

func couponJSON(c coupon.Case) Coupon {
	k, r := c.Coupon, c.Rule
	return Coupon{CouponID: pipeline.Decimal(k.ID), TemplateID: pipeline.Decimal(k.TemplateID), UserID: k.UserID.String(), State: string(k.At(c.Now)),
		OrderID: k.OrderID, Discount: int64(k.Discount), Currency: r.Currency, LockedUntil: pipeline.UTC(k.LockedUntil), IssuedAt: k.IssuedAt.UTC(),
		ExpiresAt: k.ExpiresAt.UTC(), UseBy: useBy(r, string(k.At(c.Now)), k.IssuedAt), UsedAt: pipeline.UTC(k.UsedAt), Returned: k.Returned, Rule: CouponRule{Discount: parts.Discount{Kind: string(r.Kind), AmountOff: int64(r.AmountOff),
			Threshold: int64(r.Threshold), PercentOff: r.PercentOff, MaxOff: int64(r.MaxOff), Currency: r.Currency},
			Target: string(r.Target), Product: r.Product}}
}
