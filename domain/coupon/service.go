package coupon

import (
	"context"
	"errors"
	"strconv"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// Store keeps coupons and their operation log.
type Store interface {
	// Case loads the coupon with the history of one order, or returns
	// [ErrNotFound].
	Case(ctx context.Context, id int64, order string) (Case, error)
	// Save stores the move in one transaction, with one event for each change
	// of state, and returns the coupon as it is then. It returns [ErrRaced]
	// if the coupon has changed since it was loaded.
	Save(ctx context.Context, m Move) (Coupon, error)
	// Refused keeps a refused step in the operation log; a step that is there already
	// is success.
	Refused(ctx context.Context, op Operation) error
}

// DefaultLock is how long a lock lasts unless configured otherwise.
const DefaultLock = 15 * time.Minute

// turns is how often a step is decided again after a concurrent step changed the
// same coupon. Each lost attempt means that another step was done, and a coupon has
// few steps.
const turns = 64

// Service holds the steps of payment: try, confirm, cancel, and refund. Each step
// is safe to repeat. The decisions in steps.go say how steps in an unexpected order
// are handled.
type Service struct {
	Store Store
	// LockFor is how long a lock lasts.
	LockFor time.Duration
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

// TimeOut ends the order's lock if its time has come. Otherwise it returns how much
// time the lock still has, zero if there is no such lock any more.
func (s *Service) TimeOut(ctx context.Context, id int64, order string) (time.Duration, error) {
	var left time.Duration
	_, err := s.step(ctx, systemLabel, id, order, StepTimeout, func(c Case) (Move, *refusal) {
		left = 0
		if c.Coupon.State == Locked && c.Coupon.OrderID == order {
			left = max(0, c.Coupon.LockedUntil.Sub(c.Now))
		}
		return c.timeOut(order), nil
	})
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return left, err
}

var systemLabel = staff.System().Label

// decide applies the rule of one step, unless the coupon belongs to another
// user.
func (s *Service) decide(c Case, rule func(Case) (Move, *refusal)) (Move, *refusal) {
	if s.owner != 0 && s.owner != c.Coupon.UserID {
		return Move{}, refuse(RefusedOwner, "the coupon belongs to another user; use one of the user's own")
	}
	return rule(c)
}

// step loads the coupon, decides and saves, and repeats that while concurrent steps
// change the coupon. The returned case has the coupon as it is after the step.
func (s *Service) step(ctx context.Context, by string, id int64, order string, step Step, decide func(Case) (Move, *refusal)) (Case, error) {
	if err := CheckOrderID(order); err != nil {
		return Case{}, err
	}
	writing, cancel := detach.Context(ctx)
	defer cancel()
	for range turns {
		c, err := s.Store.Case(ctx, id, order)
		if err != nil {
			return c, err
		}
		m, no := s.decide(c, decide)
		if no != nil {
			op := c.op(step, order, c.Coupon)
			op.Outcome, op.By = no.outcome, by
			if err := s.Store.Refused(writing, op); err != nil {
				return c, err
			}
			return c, no.err
		}
		if len(m.Ops) == 0 {
			return c, nil
		}
		c.Coupon, err = s.Store.Save(writing, m.by(by))
		if !errors.Is(err, ErrRaced) {
			return c, err
		}
	}
	return Case{}, ErrBusy
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
