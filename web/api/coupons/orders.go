package coupons

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/money"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// OrderReport is an order that a shop reports.
type OrderReport struct {
	ShopNumber string     `json:"shop_number" pattern:"^[1-9][0-9]{0,18}$" example:"10"`
	OrderID    string     `json:"order_id" minLength:"1" maxLength:"64" doc:"1 to 64 bytes without spaces, as in the lock of a coupon for the same order." example:"A-1002"`
	UserID     string     `json:"user_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"The customer, if known." example:"1001"`
	Currency   string     `json:"currency" doc:"ISO 4217." example:"CNY"`
	Amount     int64      `json:"amount" minimum:"1" maximum:"1000000000000000" doc:"The amount of the order before discounts, in minor units." example:"6000"`
	Refunded   int64      `json:"refunded,omitempty" minimum:"0" maximum:"1000000000000000" doc:"The part of amount that was paid back so far. Report the order again when it grows." example:"0"`
	OrderedAt  *time.Time `json:"ordered_at,omitempty" doc:"When the order was paid; absent = now. At most 400 days ago."`
}

func (h *handlers) orderRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Access: pipeline.ForPayment}, Method: http.MethodPost, Path: "/orders", ID: "report-order",
		Summary: "Report an order",
		Description: "Optional. Orders with coupons are known from the coupons' locks; report all orders, so that reports can compare orders with and without coupons, and users who were " +
			"reminded with users who were held out. Repeating it changes nothing but raises refunded.",
		Codes:   []string{"shop_not_found", "order_differs"},
		Example: `{"shop_number":"10","order_id":"A-1002","user_id":"1001","currency":"CNY","amount":6000}`}, h.reportOrder)
}

func (h *handlers) reportOrder(ctx context.Context, in *struct{ Body OrderReport }) (*struct{ Body OrderReport }, error) {
	b := in.Body
	shop, err := pipeline.ParseID("body.shop_number", b.ShopNumber)
	o := coupon.ReportedOrder{Shop: shop, ID: b.OrderID, Currency: b.Currency, Amount: money.Amount(b.Amount), Refunded: money.Amount(b.Refunded)}
	if b.UserID != "" {
		id, bad := pipeline.ParseID("body.user_id", b.UserID)
		o.UserID, err = user.ID(id), pipeline.Merge(err, bad)
	}
	if named := pipeline.UserOf(ctx); named != 0 {
		if o.UserID != 0 && o.UserID != named {
			err = pipeline.Merge(err, pipeline.Refused("body.user_id", "is another user than X-User-ID names"))
		}
		o.UserID = named
	}
	if b.OrderedAt != nil {
		o.OrderedAt = *b.OrderedAt
	}
	if err != nil {
		return nil, err
	}
	if o, err = h.Orders.Report(ctx, pipeline.ActorOf(ctx), o); err != nil {
		return nil, err
	}
	at := o.OrderedAt.UTC()
	a := OrderReport{ShopNumber: pipeline.Decimal(o.Shop), OrderID: o.ID, Currency: o.Currency, Amount: int64(o.Amount), Refunded: int64(o.Refunded), OrderedAt: &at}
	if o.UserID != 0 {
		a.UserID = o.UserID.String()
	}
	return &struct{ Body OrderReport }{a}, nil
}
