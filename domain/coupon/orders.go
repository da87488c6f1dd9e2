package coupon

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// A ReportedOrder is an order that a shop reports, with or without a coupon. Orders
// without coupons are what orders with coupons are compared with.
type ReportedOrder struct {
	Shop int64
	ID   string
	// UserID is the customer; 0 = unknown.
	UserID   user.ID
	Currency string
	// Amount is before discounts, in minor units; Refunded is the part of it that was
	// paid back since.
	Amount, Refunded money.Amount
	OrderedAt        time.Time
}

// Errors of reported orders.
var (
	ErrNoShop     = fault.New(fault.NotFound, "shop_not_found", "there is no such shop; create it first")
	ErrOtherOrder = fault.New(fault.Conflict, "order_differs", "the order was reported with another amount, currency or customer; only refunded can grow, so use a new order id for a new order")
)

// maxOrderAge is how old a reported order may be, and maxAhead how far a clock may be
// ahead.
const (
	maxOrderAge = 400 * 24 * time.Hour
	maxAhead    = 5 * time.Minute
)

// Check returns a [fault.Fields] that names every rule the order breaks at now, or nil.
func (o ReportedOrder) Check(now time.Time) error {
	e := &fault.Fields{}
	checkOrderID(e, o.ID)
	if o.Amount < 1 || o.Amount > MaxOrderAmount {
		e.Add("amount", "rule.amount", "must be between %d and %d minor units", 1, MaxOrderAmount)
	}
	if o.Refunded < 0 || o.Refunded > o.Amount {
		e.Add("refunded", "rule.amount", "must be between %d and %d minor units", 0, o.Amount)
	}
	if !money.ValidCurrency(o.Currency) {
		e.Add("currency", "rule.currency", "must be a three-letter ISO 4217 code such as CNY")
	}
	if o.OrderedAt.Before(now.Add(-maxOrderAge)) || o.OrderedAt.After(now.Add(maxAhead)) {
		e.Add("ordered_at", "rule.ordered_at", "must be within the last %d days and not in the future", int(maxOrderAge/(24*time.Hour)))
	}
	return e.Err()
}

// OrderStore keeps reported orders.
type OrderStore interface {
	// SaveOrder stores the order, or raises the refunded amount of the order that was
	// stored before, and returns the stored order. It returns [ErrNoShop], or
	// [ErrOtherOrder] if the order was reported in another way. The customer of an
	// order is not stored if the user was erased.
	SaveOrder(ctx context.Context, o ReportedOrder) (ReportedOrder, error)
}

// Orders receives the orders that shops report.
type Orders struct {
	Store OrderStore
	Now   func() time.Time
}

// Report stores the order; repeating it changes nothing. A later report may have a
// higher refunded amount; a lower one is ignored, since it was overtaken. It returns a
// [fault.Fields], [staff.ErrForbidden] if the caller is limited to other shops, and the
// errors of [OrderStore].
func (s *Orders) Report(ctx context.Context, by staff.Actor, o ReportedOrder) (ReportedOrder, error) {
	if o.OrderedAt.IsZero() {
		o.OrderedAt = s.Now()
	}
	o.OrderedAt = o.OrderedAt.Truncate(time.Microsecond)
	if err := o.Check(s.Now()); err != nil {
		return o, err
	}
	if len(by.Shops) > 0 && !slices.Contains(by.Shops, o.Shop) {
		return o, staff.ErrForbidden.Because("the key is limited to other shops")
	}
	writing, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.SaveOrder(writing, o)
}
