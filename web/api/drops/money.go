package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	"dropbell/web/api/parts"
	"dropbell/web/api/pipeline"
)

// Earnings tells what drops earned.
type Earnings interface {
	// Earning returns what the drop earned, and its orders by hour.
	Earning(ctx context.Context, by staff.Actor, templateID int64) (report.Money, []report.Hour, error)
	// Earned returns the orders of a shop (0 = all that the actor may see) over the last days
	// and over as many days before; without a zone days are of 24 hours.
	Earned(ctx context.Context, by staff.Actor, shop int64, days int, zone *time.Location) (report.Overview, error)
}

// Sums are orders that used coupons, in one currency.
type Sums struct {
	Currency   string `json:"currency" example:"CNY"`
	Orders     int64  `json:"orders" doc:"Paid orders less refunded orders. An order with several coupons is one order." example:"612"`
	Ordered    int64  `json:"ordered" doc:"The amount of these orders before discounts, in minor units, as all amounts here." example:"6120000"`
	Discount   int64  `json:"discount" doc:"What coupons took off these orders." example:"612000"`
	Revenue    int64  `json:"revenue" doc:"ordered − discount." example:"5508000"`
	Basket     int64  `json:"basket" doc:"The average amount of an order before discounts; 0 without orders." example:"10000"`
	Paid       int64  `json:"paid" doc:"Orders that were paid, refunded or not." example:"620"`
	PaidAmount int64  `json:"paid_amount" doc:"Their amount before discounts." example:"6200000"`
	Refunds    int64  `json:"refunds" doc:"Orders that were refunded." example:"8"`
	Refunded   int64  `json:"refunded" doc:"What customers got back for them: the amount less the discount." example:"72000"`
}

// HourSums are the orders of one hour.
type HourSums struct {
	Hour time.Time `json:"hour" doc:"Its begin. A refund counts in the hour of the refund."`
	Sums
}

// WithoutCoupon are the shop's orders without coupons.
type WithoutCoupon struct {
	Reported bool  `json:"reported" doc:"Whether the shop reported any order of that time with POST /orders. If not, nothing is known about orders without coupons."`
	Orders   int64 `json:"orders" example:"1200"`
	Amount   int64 `json:"amount" doc:"Refunds netted." example:"9600000"`
	Basket   int64 `json:"basket" example:"8000"`
}

// DropMoney is what a drop earned.
type DropMoney struct {
	TemplateID string `json:"template_id" example:"1"`
	Sums
	DiscountShare float64          `json:"discount_share" doc:"discount ÷ ordered, to a thousandth." minimum:"0" maximum:"1" example:"0.1"`
	Return        *float64         `json:"return,omitempty" doc:"revenue ÷ discount, rounded down to a thousandth; absent without a discount." example:"9"`
	Reminders     int64            `json:"reminders" doc:"Reminders sent about the present opening." example:"3683"`
	Messages      int64            `json:"messages" doc:"Reminders, corrections and notices sent." example:"3900"`
	PerReminder   int64            `json:"revenue_per_reminder" example:"1495"`
	PerMessage    int64            `json:"revenue_per_message" example:"1412"`
	SMS           []parts.SMSCost  `json:"sms" nullable:"false" doc:"What text messages about the drop cost, by currency."`
	Without       WithoutCoupon    `json:"without_coupon" doc:"Orders of the shop in the same currency without coupons, from the opening until the last coupon expires, or until now."`
	Increment     *parts.Increment `json:"increment,omitempty" doc:"What the reminders brought: users with a reservation who were reminded against those who were held out. Absent for a drop that holds nobody out."`
	Hours         []HourSums       `json:"hours" nullable:"false" doc:"The drop's orders by hour, the earliest first, without hours without orders."`
}

// ShopMoney is what shops earned over some days.
type ShopMoney struct {
	Days      int             `json:"days" example:"30"`
	SMS       []parts.SMSCost `json:"sms" nullable:"false" doc:"What text messages about drops and of campaigns cost in the last days, by currency. Tests and verification codes belong to no shop."`
	SMSBefore []parts.SMSCost `json:"sms_before" nullable:"false" doc:"As many days before those."`
	Now       []Sums          `json:"now" nullable:"false" doc:"The last days, by currency. Currencies are never added. An order with coupons of several drops of a shop is one order."`
	Before    []Sums          `json:"before" nullable:"false" doc:"As many days before those."`
	Hours     []HourSums      `json:"hours" nullable:"false" doc:"The last days by hour and currency."`
}

func (h *handlers) moneyRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/money", "template-money", "Show what a drop earned",
		pipeline.Route{Description: "Orders that used coupons of the drop, refunds netted, as of a few seconds ago.", Codes: []string{"template_not_found", "report_of_draft"}}), pipeline.ByID(h.dropMoney))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/money", "shop-money", "Show what shops earned",
		pipeline.Route{Description: "Orders that used coupons over the last days, and over as many days before, and what text messages cost."}), h.shopMoney)
}

func sumsJSON(s report.Sums) Sums {
	return Sums{s.Currency, s.Orders(), int64(s.Ordered()), int64(s.Discount()), int64(s.Revenue()), int64(s.Basket()),
		s.Paid, int64(s.PaidAmount), s.Refunds, int64(s.Refunded())}
}

func listJSON(list []report.Sums) []Sums {
	out := make([]Sums, len(list))
	for i, s := range list {
		out[i] = sumsJSON(s)
	}
	return out
}

func hoursJSON(list []report.Hour) []HourSums {
	out := make([]HourSums, len(list))
	for i, one := range list {
		out[i] = HourSums{one.From.UTC(), sumsJSON(one.Sums)}
	}
	return out
}

func (h *handlers) dropMoney(ctx context.Context, id int64) (*struct{ Body DropMoney }, error) {
	m, hours, err := h.Earnings.Earning(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	n := func(a money.Amount) int64 { return int64(a) }
	d := DropMoney{TemplateID: pipeline.Decimal(id), Sums: sumsJSON(m.Sums), DiscountShare: float64(m.DiscountShare()) / 1000, Reminders: m.Reminders, Messages: m.Messages,
		PerReminder: n(m.PerReminder()), PerMessage: n(m.PerMessage()), SMS: parts.SMSCostsOf(m.SMS),
		Without: WithoutCoupon{m.Without.Reported, m.Without.Orders, n(m.Without.Amount), n(m.Without.Basket())}, Hours: hoursJSON(hours)}
	if m.Increment != nil {
		d.Increment = new(parts.IncrementOf(*m.Increment))
	}
	if r, ok := m.Return(); ok {
		part := float64(r) / 1000
		d.Return = &part
	}
	return &struct{ Body DropMoney }{d}, nil
}

func (h *handlers) shopMoney(ctx context.Context, in *struct {
	Days int    `query:"days" minimum:"1" maximum:"90" default:"30"`
	Shop string `query:"shop" doc:"A shop number; absent = all shops that the key may see."`
}) (*struct{ Body ShopMoney }, error) {
	var shop int64
	if in.Shop != "" {
		var err error
		if shop, err = pipeline.ParseID("query.shop", in.Shop); err != nil {
			return nil, err
		}
	}
	o, err := h.Earnings.Earned(ctx, pipeline.ActorOf(ctx), shop, in.Days, nil)
	if err != nil {
		return nil, err
	}
	return &struct{ Body ShopMoney }{ShopMoney{o.Days, parts.SMSCostsOf(o.SMS), parts.SMSCostsOf(o.SMSBefore), listJSON(o.Now), listJSON(o.Before), hoursJSON(o.Hours)}}, nil
}
