package cart

import (
	"cmp"
	"context"
	"slices"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Faults of orders with several coupons.
var (
	ErrRefused = fault.New(fault.Conflict, "combination_refused", "the order cannot use these coupons together; ask POST /coupons/qualify which ones it can")
	ErrChanged = fault.New(fault.Conflict, "cart_changed", "the order has another cart or discount; show the customer the new price and lock the order with a higher revision")
	ErrNoOrder = fault.New(fault.NotFound, "order_not_found", "the order has locked no coupons; lock it first")
)

// State is where an order is.
type State string

// The states. A lock that timed out leaves the order locked: its coupons are what is free again.
const (
	Locked    State = "locked"
	Confirmed State = "confirmed"
	// Released orders have let their coupons go, or were released before they locked any.
	Released State = "released"
	// Refunded orders have returned all lines.
	Refunded State = "refunded"
)

// An Order is an order with its coupons as it is stored.
type Order struct {
	ID     string
	UserID user.ID // 0 = erased
	Cart
	State State
	// Revision is the revision of the cart; a changed cart has a higher one.
	Revision int64
	Discount money.Amount
	// Uses are the coupons by their ids.
	Uses []Use
	// Returned are the quantities of the lines that came back.
	Returned []int64
	// PaidBack is the sum of what refunds paid back.
	PaidBack money.Amount
	// Version grows with every change; 0 = not stored.
	Version int64
}

// Use adds what a coupon takes off a line.
func (o *Order) Use(id int64, line string, off money.Amount) {
	at, found := slices.BinarySearchFunc(o.Uses, id, func(u Use, id int64) int { return cmp.Compare(u.Coupon, id) })
	if !found {
		o.Uses = slices.Insert(o.Uses, at, Use{Coupon: id, Shares: make([]money.Amount, len(o.Lines))})
	}
	o.Uses[at].Off += off
	if i := slices.IndexFunc(o.Lines, func(l Line) bool { return l.ID == line }); i >= 0 {
		o.Uses[at].Shares[i] += off
	}
}

// A Placed is an order with the instant of its first lock.
type Placed struct {
	Order
	At time.Time
}

// A Held is a coupon of an order with its template's terms.
type Held struct {
	coupon.Case
	Stacking
	Recompute bool // the refund rule
}

func (h Held) terms() Terms {
	return Terms{ID: h.Coupon.ID, TemplateID: h.Coupon.TemplateID, Shop: h.ShopNumber, Rule: h.Rule, Stacking: h.Stacking, ExpiresAt: h.Coupon.ExpiresAt.UnixMicro()}
}

// Stored is all that a step of an order is decided on.
type Stored struct {
	// Order is the order; nil = not stored.
	Order *Order
	// Coupons are those of the order, and those that the request names, by id.
	Coupons map[int64]Held
	// Refund is the stored refund with the id of the request; nil = none.
	Refund *Refund
}

// A Request is one step of an order, which [Orders] makes.
type Request struct {
	OrderID string
	Step    coupon.Step
	// Coupons are the coupons that a lock names.
	Coupons []int64
	// RefundID is the id of a refund.
	RefundID string
	// ToStock says that the request may return coupons to the stock.
	ToStock bool
	by      string
	owner   user.ID
	rule    func(Stored) Decision
}

// A Decision is what a request changes: all of it or nothing.
type Decision struct {
	// Order is the order afterwards. Save says that it changes; its Version is still that of before.
	Order Order
	Save  bool
	// NewUses says that Order.Uses are to be stored under Order.Revision.
	NewUses bool
	// Moves are changes of coupons, in ascending order of their ids.
	Moves []coupon.Move
	// Refund is the refund to be stored, or that was stored before; nil = none.
	Refund *Refund
	// Refused is the line for the log of the coupon because of which the request is refused; nil = none.
	Refused *coupon.Operation
	// Err is the refusal as the caller sees it.
	Err error
}

// Decide applies the request to the order as it is stored.
func (r Request) Decide(s Stored) Decision {
	if s.Order != nil && r.owner != 0 && s.Order.UserID != 0 && s.Order.UserID != r.owner {
		return Decision{Err: coupon.ErrNotUsable.Because("the order belongs to another user or another shop uses its id; check the user, or begin order ids with the shop's number")}
	}
	return r.rule(s)
}

// Taken is the answer to a request.
type Taken struct {
	Order   Order
	Coupons map[int64]coupon.Coupon
	Refund  *Refund
	// Stored says that something was stored; Steps are the steps of its coupons that were.
	Stored bool
	Steps  []coupon.Step
	Err    error
}

// OrderStore takes the steps of orders.
type OrderStore interface {
	// TakeOrder decides the request on the order and its coupons as they are stored, and stores the
	// decision in one transaction; see [coupon.Store].
	TakeOrder(ctx context.Context, r Request) (Taken, error)
}

// Orders takes the steps of orders with several coupons. Each step is safe to repeat.
type Orders struct {
	Store OrderStore
	// LockFor is how long a lock lasts.
	LockFor time.Duration
	// Stored, if set, is called with each step of a coupon that was stored and its outcome, as
	// [coupon.Service.Stored] is.
	Stored func(s coupon.Step, outcome string)
}

// A Wish is a lock of an order.
type Wish struct {
	OrderID  string
	UserID   user.ID
	Cart     Cart
	Coupons  []int64
	Revision int64
	// Expect is the discount that the customer saw; nil = any.
	Expect *money.Amount
}

func (w Wish) check() error {
	e := &fault.Fields{}
	add := func(err error) {
		if broken, ok := err.(*fault.Fields); ok {
			e.List = append(e.List, broken.List...)
		}
	}
	add(coupon.CheckOrderID(w.OrderID))
	add(w.Cart.Check())
	if len(w.Coupons) < 1 || len(w.Coupons) > MaxCoupons {
		e.Add("coupons", "rule.lines", "must have 1 to %d entries", MaxCoupons)
	}
	if w.Revision < 0 {
		e.Add("revision", "rule.revision", "must not be negative")
	}
	return e.Err()
}

// Lock holds the coupons for the order, all of them or none, and returns the discount. It returns a
// [fault.Fields], [ErrRefused], [ErrChanged], or [coupon.ErrNotUsable] or [coupon.ErrNotFound] with the coupon.
func (s *Orders) Lock(ctx context.Context, by string, w Wish) (Taken, error) {
	if err := w.check(); err != nil {
		return Taken{}, err
	}
	w.Coupons = slices.Sorted(slices.Values(w.Coupons))
	return s.take(ctx, Request{OrderID: w.OrderID, Step: coupon.StepLock, Coupons: w.Coupons, by: by, owner: w.UserID,
		rule: func(st Stored) Decision { return w.lock(by, st, s.LockFor) }})
}

// Confirm uses the coupons of the order. revision, if not 0, must be the order's. owner, if not 0, must be its user.
func (s *Orders) Confirm(ctx context.Context, by string, owner user.ID, order string, revision int64) (Taken, error) {
	return s.step(ctx, Request{OrderID: order, Step: coupon.StepConfirm, by: by, owner: owner,
		rule: func(st Stored) Decision { return confirm(by, st, revision) }})
}

// Release gives all coupons of the order back. For an order without a lock it records that the
// order can never lock coupons.
func (s *Orders) Release(ctx context.Context, by string, owner user.ID, order string) (Taken, error) {
	return s.step(ctx, Request{OrderID: order, Step: coupon.StepRelease, by: by, owner: owner,
		rule: func(st Stored) Decision { return release(by, order, owner, st) }})
}

// Refund takes lines of a confirmed order back; see [Return].
func (s *Orders) Refund(ctx context.Context, by string, owner user.ID, order string, r Return) (Taken, error) {
	if err := r.check(); err != nil {
		return Taken{}, err
	}
	return s.step(ctx, Request{OrderID: order, Step: coupon.StepRefund, RefundID: r.id(), ToStock: r.To == template.RefundToStock, by: by, owner: owner,
		rule: func(st Stored) Decision { return r.refund(by, st) }})
}

func (s *Orders) step(ctx context.Context, r Request) (Taken, error) {
	if err := coupon.CheckOrderID(r.OrderID); err != nil {
		return Taken{}, err
	}
	return s.take(ctx, r)
}

// take takes the step. It goes on if the caller hangs up.
func (s *Orders) take(ctx context.Context, r Request) (Taken, error) {
	writing, cancel := detach.Context(ctx)
	defer cancel()
	t, err := s.Store.TakeOrder(writing, r)
	if err != nil {
		return t, err
	}
	for _, step := range t.Steps {
		if s.Stored != nil {
			s.Stored(step, coupon.Done)
		}
	}
	return t, t.Err
}
