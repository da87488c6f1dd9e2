package report

import (
	"context"
	"slices"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/figure"
	"dropbell/domain/increment"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Sums are the orders of one currency that used coupons, over some time. Amounts are
// minor units of Currency. Paid orders count at the payment, refunded orders at the
// refund. An order that used several coupons is one order.
type Sums struct {
	Currency string
	// Paid is the number of orders that were paid, PaidAmount their amount before
	// discounts, and PaidDiscount what coupons took off.
	Paid                     int64
	PaidAmount, PaidDiscount money.Amount
	// Refunds is the number of orders that were refunded, RefundedAmount their amount
	// before discounts, and RefundedDiscount what coupons had taken off.
	Refunds                          int64
	RefundedAmount, RefundedDiscount money.Amount
}

// Orders returns the number of paid orders less refunded orders.
func (s Sums) Orders() int64 { return s.Paid - s.Refunds }

// Ordered returns the amount of the orders before discounts, refunds netted.
func (s Sums) Ordered() money.Amount { return s.PaidAmount - s.RefundedAmount }

// Discount returns what coupons took off, refunds netted.
func (s Sums) Discount() money.Amount { return s.PaidDiscount - s.RefundedDiscount }

// Revenue returns what customers paid: the orders less their discounts, refunds netted.
func (s Sums) Revenue() money.Amount { return s.Ordered() - s.Discount() }

// Refunded returns what customers got back.
func (s Sums) Refunded() money.Amount { return s.RefundedAmount - s.RefundedDiscount }

// Basket returns the average amount of an order before discounts; 0 without orders.
func (s Sums) Basket() money.Amount { return s.Ordered().Per(s.Orders()) }

// Average returns the revenue of an average order; 0 without orders.
func (s Sums) Average() money.Amount { return s.Revenue().Per(s.Orders()) }

// DiscountShare returns the part of the orders' amount that coupons took off, in
// thousandths; 0 without orders.
func (s Sums) DiscountShare() int64 {
	if s.Ordered() <= 0 {
		return 0
	}
	return figure.Shares([]int64{int64(s.Discount()), int64(s.Ordered() - s.Discount())})[0]
}

// Return returns the revenue for each unit of discount, in thousandths; false if no
// discount was given.
func (s Sums) Return() (int64, bool) { return figure.Ratio(s.Revenue(), s.Discount()) }

// Plus returns the sum of both, which are in the same currency.
func (s Sums) Plus(o Sums) Sums {
	return Sums{s.Currency, s.Paid + o.Paid, s.PaidAmount + o.PaidAmount, s.PaidDiscount + o.PaidDiscount,
		s.Refunds + o.Refunds, s.RefundedAmount + o.RefundedAmount, s.RefundedDiscount + o.RefundedDiscount}
}

// An Hour is the sums of one hour.
type Hour struct {
	From time.Time
	Sums
}

// Plain are the orders without coupons that the shop reported, in one currency and
// over some time, refunds netted.
type Plain struct {
	// Reported says whether the shop reported any order of that time, also with
	// coupons. Without it nothing is known about orders without coupons.
	Reported bool
	Orders   int64
	Amount   money.Amount
}

// Plus returns the orders of both.
func (p Plain) Plus(o Plain) Plain {
	return Plain{p.Reported || o.Reported, p.Orders + o.Orders, p.Amount + o.Amount}
}

// Basket returns the average amount of an order; 0 without orders.
func (p Plain) Basket() money.Amount { return p.Amount.Per(p.Orders) }

// Money is what one drop earned.
type Money struct {
	Sums
	// Without are the shop's orders without coupons in the drop's currency, from the
	// opening to the end of the drop's last coupon, or until now.
	Without Plain
	// Reminders is the number of reminders sent; Messages also counts corrections and notices.
	Reminders, Messages int64
	SMS                 delivery.SMSCosts
	// Increment compares the orders of users who were reminded with the orders of held-out users;
	// nil = the drop holds nobody out, or the comparison was not asked for.
	Increment *increment.Increment
}

// PerReminder returns the revenue for each reminder sent; 0 without reminders.
func (m Money) PerReminder() money.Amount { return m.Revenue().Per(m.Reminders) }

// PerMessage returns the revenue for each message sent; 0 without messages.
func (m Money) PerMessage() money.Amount { return m.Revenue().Per(m.Messages) }

// MoneyStore reads the sums of orders.
type MoneyStore interface {
	// Sums returns the drop's orders.
	Sums(ctx context.Context, templateID int64) (Sums, error)
	// Hours returns the drop's orders by hour (UTC), the earliest first. Hours without
	// payments and refunds are left out.
	Hours(ctx context.Context, templateID int64) ([]Hour, error)
	// Increment divides the drop's users with a reservation by the rule of
	// [delivery.HeldOutOfDrop], and sums up the orders that they have paid with coupons of the drop.
	// Refunded orders do not count.
	Increment(ctx context.Context, t template.Template) (increment.Increment, error)
	// Without returns the shop's orders without coupons in the currency, ordered
	// from from to before to.
	Without(ctx context.Context, shop int64, currency string, from, to time.Time) (Plain, error)
	// Shops returns the orders of the shops (none = all) from from to before to, by
	// currency, and by hour. An order with coupons of several drops counts once.
	Shops(ctx context.Context, shops []int64, from, to time.Time) ([]Hour, error)
	// Sent returns how many messages besides reminders were sent about the drop, and
	// what its text messages cost.
	Sent(ctx context.Context, templateID int64) (messages int64, sms delivery.SMSCosts, err error)
	// ShopsSMS returns what the text messages about drops and of campaigns of the shops (none =
	// all) cost in the hours from from to before to.
	ShopsSMS(ctx context.Context, shops []int64, from, to time.Time) (delivery.SMSCosts, error)
}

// money returns what the drop earned. f are the drop's figures.
func (s *Service) money(ctx context.Context, f Figures) (m Money, err error) {
	t := f.Template
	if m.Sums, err = s.Money.Sums(ctx, t.ID); err != nil {
		return m, err
	}
	if m.Without, err = s.Money.Without(ctx, t.ShopNumber, t.Currency, t.OpensAt, s.ordersUntil(t)); err != nil {
		return m, err
	}
	m.Messages, m.SMS, err = s.Money.Sent(ctx, t.ID)
	m.Reminders = f.Progress.Sent
	m.Messages += m.Reminders
	return m, err
}

// Earning returns what the drop earned, and its orders by hour. The actor must be allowed to
// see the drop. For a draft it returns [ErrDraft].
func (s *Service) Earning(ctx context.Context, by staff.Actor, templateID int64) (m Money, hours []Hour, err error) {
	t, err := s.Templates.Template(ctx, by, templateID)
	if err != nil {
		return m, nil, err
	}
	if t.Stored == template.Draft {
		return m, nil, ErrDraft
	}
	if m, err = s.MoneyOf(ctx, t); err != nil {
		return m, nil, err
	}
	hours, err = s.Money.Hours(ctx, t.ID)
	return m, hours, err
}

// MoneyOf returns what the drop earned, compared with held-out users.
func (s *Service) MoneyOf(ctx context.Context, t template.Template) (Money, error) {
	c, err := s.Reminders.Cockpit(ctx, t.ID, nil)
	if err != nil {
		return Money{}, err
	}
	m, err := s.money(ctx, figuresOf(t, c))
	if err == nil {
		m.Increment, err = s.IncrementOf(ctx, t)
	}
	return m, err
}

// IncrementOf compares the orders of the users whom the drop's messages were meant for with the orders
// of the held-out users; nil = the drop holds nobody out, or is a draft. The time that it takes grows
// with the drop's reservations.
func (s *Service) IncrementOf(ctx context.Context, t template.Template) (*increment.Increment, error) {
	if t.HoldOutPercent == 0 || t.Stored == template.Draft {
		return nil, nil
	}
	i, err := s.Money.Increment(ctx, t)
	return &i, err
}

// ordersUntil returns the end of the time in which orders are compared with orders that used
// a coupon of the drop: when the drop's last coupon expires at the latest, at most now.
func (s *Service) ordersUntil(t template.Template) time.Time {
	until := UsableUntil(t)
	if now := s.Now(); now.Before(until) {
		return now
	}
	return until
}

// UsableUntil returns when the drop's last coupon expires at the latest.
func UsableUntil(t template.Template) time.Time {
	if t.ValidUntil != nil {
		return *t.ValidUntil
	}
	return t.EndsAt().Add(time.Duration(t.ValidHours) * time.Hour)
}

// Overview sums up the orders of the shops (none = all that the actor may see), and what the text
// messages about their drops and of their campaigns cost, over the days before now, and over as many
// days before that time, by currency. From is the beginning of the last days. Hours are of the last days, HoursBefore of the days
// before them.
type Overview struct {
	Days               int
	From               time.Time
	Now, Before        []Sums // in the order of the currencies' codes
	SMS, SMSBefore     delivery.SMSCosts
	Hours, HoursBefore []Hour
}

// Daily returns the revenue of the currency in each day from From on, and in each day of the days before. The days are of the zone
// of From.
func (o Overview) Daily(currency string) (now, before []money.Amount) {
	sum := func(hours []Hour, from time.Time) []money.Amount {
		list := make([]money.Amount, o.Days)
		for _, h := range hours {
			i := 0
			for i < o.Days-1 && !h.From.Before(from.AddDate(0, 0, i+1)) {
				i++
			}
			if h.Currency == currency && o.Days > 0 {
				list[i] += h.Revenue()
			}
		}
		return list
	}
	return sum(o.Hours, o.From), sum(o.HoursBefore, o.From.AddDate(0, 0, -o.Days))
}

const day = 24 * time.Hour

// Earned returns the orders and the cost of text messages of the last days and of the days before
// them. shop 0 = all shops that the actor may see. The last day is today in the zone, and the first one
// begins at its midnight; without a zone the days are of 24 hours, and the last one ends with the
// present hour.
func (s *Service) Earned(ctx context.Context, by staff.Actor, shop int64, days int, zone *time.Location) (o Overview, err error) {
	shops := by.Shops
	if shop != 0 {
		if err := by.May(staff.View, shop); err != nil {
			return o, err
		}
		shops = []int64{shop}
	}
	o.Days = days
	// Sums are kept by hour: the present hour counts whole.
	end := s.Now().Truncate(time.Hour).Add(time.Hour)
	middle := end.Add(-time.Duration(days) * day)
	first := middle.Add(-time.Duration(days) * day)
	if zone != nil {
		y, m, d := s.Now().In(zone).Date()
		middle = time.Date(y, m, d+1-days, 0, 0, 0, 0, zone)
		first = middle.AddDate(0, 0, -days)
	}
	o.From = middle
	if o.SMS, err = s.Money.ShopsSMS(ctx, shops, middle, end); err != nil {
		return o, err
	}
	if o.SMSBefore, err = s.Money.ShopsSMS(ctx, shops, first, middle); err != nil {
		return o, err
	}
	all, err := s.Money.Shops(ctx, shops, first, end)
	for _, h := range all {
		if h.From.Before(middle) {
			o.Before, o.HoursBefore = added(o.Before, h.Sums), append(o.HoursBefore, h)
			continue
		}
		o.Now, o.Hours = added(o.Now, h.Sums), append(o.Hours, h)
	}
	return o, err
}

// Plus returns the overview of the shops of both, which are of different databases.
func (o Overview) Plus(other Overview) Overview {
	o.Now, o.Before = slices.Clone(o.Now), slices.Clone(o.Before)
	for _, s := range other.Now {
		o.Now = added(o.Now, s)
	}
	for _, s := range other.Before {
		o.Before = added(o.Before, s)
	}
	o.SMS, o.SMSBefore = o.SMS.Plus(other.SMS), o.SMSBefore.Plus(other.SMSBefore)
	o.Hours, o.HoursBefore = slices.Concat(o.Hours, other.Hours), slices.Concat(o.HoursBefore, other.HoursBefore)
	return o
}

// added adds the sums to the sums of the same currency in list, which is sorted by currency.
func added(list []Sums, s Sums) []Sums {
	i, found := slices.BinarySearchFunc(list, s, func(a, b Sums) int { return strings.Compare(a.Currency, b.Currency) })
	if !found {
		return slices.Insert(list, i, s)
	}
	list[i] = list[i].Plus(s)
	return list
}
