package coupon

import (
	"context"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// Store keeps coupons and takes the steps of payment.
type Store interface {
	// Case loads the coupon with the history of one order, or returns
	// [ErrNotFound].
	Case(ctx context.Context, id int64, order string) (Case, error)
	// Take decides the request on the coupon as it is stored, with [Request.Decide], and
	// stores the decision in one transaction: the coupon, its log, and an event for each
	// change of state. A concurrent change of the coupon makes Take decide again. Take
	// returns [ErrNotFound], or [ErrBusy] if the coupon was changed too often meanwhile,
	// or is kept locked by another session.
	Take(ctx context.Context, r Request) (Taken, error)
}

// A Request is one step of payment: what an order wants to do with a coupon.
type Request struct {
	CouponID int64
	OrderID  string
	Step     Step
	By       string // the member, for the log
	// owner is whose coupon it must be; 0 = of any user.
	owner user.ID
	rule  func(Case) (Move, *refusal)
}

// A Decision is what a request does to a coupon.
type Decision struct {
	// Move is the change to store. Without operations nothing changes.
	Move Move
	// Refused is the line to store in the log if the request is refused. It is nil if the
	// request is not refused, or if the log has the line already.
	Refused *Operation
	// Err is the refusal as the caller sees it.
	Err error
}

// Taken is the answer to a request.
type Taken struct {
	// Case has the coupon as it is after the step.
	Case Case
	// Stored says what was stored: "" for nothing, [Done], or the outcome of a refusal.
	Stored string
	// Err is the refusal as the caller sees it.
	Err error
}

// DefaultLock is how long a lock lasts unless configured otherwise.
const DefaultLock = 15 * time.Minute

// Turns is how often a step is decided again after a concurrent step changed the
// same coupon. Each lost attempt means that another step was done, and a coupon has
// few steps.
const Turns = 64

// Service holds the steps of payment: try, confirm, cancel, and refund. Each step
// is safe to repeat. The decisions in steps.go say how steps in an unexpected order
// are handled.
type Service struct {
	Store Store
	// LockFor is how long a lock lasts.
	LockFor time.Duration
	// Stored, if set, is called with each step that was stored and its outcome; see
	// [Taken.Stored].
	Stored func(s Step, outcome string)
	// owner, if set, is whose coupons the steps are for.
	owner user.ID
}

// For returns the steps for coupons of one owner: coupons of other users are
// refused with [ErrNotUsable]. 0 = of any owner.
func (s *Service) For(owner user.ID) *Service {
	only := *s
	only.owner = owner
	return &only
}

// Coupon returns the coupon with its rule and the database's clock. Unless owner is
// 0, it returns [ErrNotFound] for a coupon of another user.
func (s *Service) Coupon(ctx context.Context, owner user.ID, id int64) (Case, error) {
	c, err := s.Store.Case(ctx, id, "")
	if err == nil && owner != 0 && c.Coupon.UserID != owner {
		err = ErrNotFound
	}
	return c, err
}

// Lock holds the coupon for the order and returns the discount. It returns a
// [fault.Fields], [ErrNotFound], [ErrNotUsable] with the reason, or
// [ErrOtherRequest].
func (s *Service) Lock(ctx context.Context, by string, id int64, o Order) (Case, error) {
	if err := o.Check(); err != nil {
		return Case{}, err
	}
	return s.step(ctx, by, id, o.ID, StepLock, func(c Case) (Move, *refusal) { return c.lock(o, s.LockFor) })
}

// Confirm uses the coupon that the order holds. It returns [ErrNotUsable] if the
// order does not hold the coupon, also when the lock has timed out.
func (s *Service) Confirm(ctx context.Context, by string, id int64, order string) (Case, error) {
	return s.step(ctx, by, id, order, StepConfirm, func(c Case) (Move, *refusal) { return c.confirm(order) })
}

// Release gives back the coupon that the order holds. For an order without a lock
// it records that the order can never lock the coupon. It returns [ErrNotUsable] if
// the order was confirmed.
func (s *Service) Release(ctx context.Context, by string, id int64, order string) (Case, error) {
	return s.step(ctx, by, id, order, StepRelease, func(c Case) (Move, *refusal) { return c.release(order) })
}

// Refund returns the coupon that the order has used. It returns [ErrNotUsable] if
// the order has not used the coupon.
func (s *Service) Refund(ctx context.Context, by string, id int64, order string) (Case, error) {
	return s.step(ctx, by, id, order, StepRefund, func(c Case) (Move, *refusal) { return c.refund(order) })
}

var systemLabel = staff.System().Label

// Decide applies the rule of the request to the coupon as it is stored.
func (r Request) Decide(c Case) Decision {
	m, no := r.decide(c)
	switch {
	case no == nil:
		return Decision{Move: m.by(r.By)}
	case slices.Contains(c.Refusals, Refusal{r.Step, no.outcome}):
		return Decision{Err: no.err}
	}
	op := c.op(r.Step, r.OrderID, c.Coupon)
	op.Outcome, op.By = no.outcome, r.By
	return Decision{Refused: &op, Err: no.err}
}

func (r Request) decide(c Case) (Move, *refusal) {
	if r.owner != 0 && r.owner != c.Coupon.UserID {
		return Move{}, refuse(RefusedOwner, "the coupon belongs to another user; use one of the user's own")
	}
	return r.rule(c)
}

// step takes one step. The returned case has the coupon as it is after the step. The step
// goes on if the caller hangs up.
func (s *Service) step(ctx context.Context, by string, id int64, order string, step Step, rule func(Case) (Move, *refusal)) (Case, error) {
	if err := CheckOrderID(order); err != nil {
		return Case{}, err
	}
	writing, cancel := detach.Context(ctx)
	defer cancel()
	t, err := s.Store.Take(writing, Request{CouponID: id, OrderID: order, Step: step, By: by, owner: s.owner, rule: rule})
	if err != nil {
		return t.Case, err
	}
	if t.Stored != "" && s.Stored != nil {
		s.Stored(step, t.Stored)
	}
	return t.Case, t.Err
}

// by sets the actor of the operations; a time-out is the system's.
func (m Move) by(who string) Move {
	for i := range m.Ops {
		if m.Ops[i].By = who; m.Ops[i].Step == StepTimeout {
			m.Ops[i].By = systemLabel
		}
	}
	return m
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
