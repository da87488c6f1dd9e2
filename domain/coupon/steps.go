package coupon

import (
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A Step is something done to a coupon, as the operation log names it.
type Step string

// The steps. Those from lock to timeout are about one order.
const (
	StepLock    Step = "lock"
	StepConfirm Step = "confirm"
	StepRelease Step = "release"
	StepRefund  Step = "refund"
	StepTimeout Step = "timeout" // a lock that was neither confirmed nor released ended
	StepExpire  Step = "expire"
	StepRevoke  Step = "revoke"
	// StepRestore undoes a refund by staff: the order uses the coupon again.
	StepRestore Step = "restore"
	// StepSuspend puts a coupon under review, StepReinstate ends that in its owner's favour.
	StepSuspend   Step = "suspend"
	StepReinstate Step = "reinstate"
)

// Outcomes of operations: done, or the reason of the refusal.
const (
	Done             = "done"
	Undone           = "undone" // a refund that was done and then undone
	RefusedLocked    = "locked_elsewhere"
	RefusedUsed      = "used"
	RefusedExpired   = "expired"
	RefusedRevoked   = "revoked"
	RefusedSuspended = "suspended"
	RefusedEnded     = "lock_ended"     // released, timed out or refunded before
	RefusedNoLock    = "not_locked"     // this order never locked it
	RefusedOwner     = "not_owner"      // the order is another user's
	RefusedRule      = "not_applicable" // the order does not meet the rule
	RefusedChanged   = "other_amounts"  // repeated with other amounts
	RefusedCurrency  = "other_currency" // repeated in another currency
	RefusedUnpaid    = "not_confirmed"  // nothing to refund
	RefusedConfirms  = "confirmed"      // used by the order; refund it instead
)

// An Operation is one line of the operation log. Per coupon, order and step
// there is at most one line with each outcome, so the log of an order cannot
// grow however often its requests are repeated.
type Operation struct {
	ID       int64
	CouponID int64
	OrderID  string // empty for steps about no order
	Step     Step
	Outcome  string
	// From and To are the states before and after.
	From, To State
	// OrderAmount is set for a lock, its confirmation and its refund, Eligible for a
	// lock, and Discount for a lock and the steps that follow it.
	OrderAmount money.Amount
	Eligible    money.Amount
	Discount    money.Amount
	By          string // the member, as in the audit log
	Reason      string
	At          time.Time
}

// A Case is everything that a step of one order is decided on.
type Case struct {
	Coupon     Coupon
	Rule       Rule
	ShopNumber int64
	// History are the order's operations on the coupon that were done.
	History []Operation
	// Refusals are the order's refused steps on the coupon that the log has.
	Refusals []Refusal
	Now      time.Time // the database's clock
}

// A Refusal is a refused step of an order as the log knows it.
type Refusal struct {
	Step    Step
	Outcome string
}

// A Move is the change that a decided step stores, all of it or nothing, provided
// that the coupon's version is still From's. No operations means that there is
// nothing to do.
type Move struct {
	From, To Coupon
	Ops      []Operation
	// LockFor is how long a new lock lasts, from the database's present time on.
	// The coupon must still be valid then. Zero for other steps.
	LockFor time.Duration
	// ToStock returns the coupon to the stock in the same transaction.
	ToStock bool
	// Returns has the coupon, whose order was refunded, returned to the stock by a [Returner]: the step itself
	// does not wait for the locks of its template.
	Returns bool
	// Job is the job that takes the step, for the log; 0 = none.
	Job int64
	// UndoesRefund turns the order's refund from done into undone.
	UndoesRefund bool
	// Revises replaces the amounts of the order's lock in the log by these.
	Revises *Operation
	// Entry is the audit record of a step that staff took.
	Entry *staff.Entry
}

// A refusal is why a step cannot be done: as the log and as the caller see it.
type refusal struct {
	outcome string
	err     error
}

func refuse(outcome, format string, args ...any) *refusal {
	return &refusal{outcome, ErrNotUsable.Because(format, args...)}
}

func (c Case) did(s Step) (Operation, bool) {
	for _, op := range c.History {
		if op.Step == s {
			return op, true
		}
	}
	return Operation{}, false
}

// ordered returns the amount with which the order locked the coupon.
func (c Case) ordered() money.Amount {
	lock, _ := c.did(StepLock)
	return lock.OrderAmount
}

// nothing is the move of a step that was done before.
func (c Case) nothing() Move { return Move{From: c.Coupon, To: c.Coupon} }

func (c Case) op(s Step, order string, to Coupon) Operation {
	return Operation{CouponID: c.Coupon.ID, OrderID: order, Step: s, Outcome: Done, From: c.Coupon.State, To: to.State}
}

// lock holds the coupon for the order. An order locks a coupon once. After the lock
// has ended in any way, or after a release, the order gets no second lock: a lock
// that arrives then is a request that was overtaken.
func (c Case) lock(o Order, lasting time.Duration) (Move, *refusal) {
	if o.UserID != 0 && o.UserID != c.Coupon.UserID {
		return Move{}, refuse(RefusedOwner, "the coupon belongs to another user; use one of the user's own")
	}
	if before, ok := c.did(StepLock); ok {
		return c.lockAgain(o, before)
	}
	m, r := c.available(lasting)
	if r != nil {
		return Move{}, r
	}
	eligible, err := c.Rule.Eligible(o)
	if err != nil {
		return Move{}, &refusal{RefusedRule, err}
	}
	off, err := c.Rule.Discount(o)
	if err != nil {
		return Move{}, &refusal{RefusedRule, err}
	}
	return c.held(m, o, eligible, off), nil
}

// available begins the move of a lock: its To is the coupon that no order holds.
func (c Case) available(lasting time.Duration) (Move, *refusal) {
	if _, ok := c.did(StepRelease); ok {
		return Move{}, refuse(RefusedEnded, "the order was released before this lock arrived")
	}
	m := Move{From: c.Coupon, To: c.Coupon, LockFor: lasting}
	if m.To.State == Locked && !c.Now.Before(*m.To.LockedUntil) { // the sweep is late
		m.To = m.To.freed(c.Now)
		m.Ops = append(m.Ops, c.op(StepTimeout, c.Coupon.OrderID, m.To))
	}
	return m, unavailable(m.To, c.Now)
}

// held completes the move of a lock that [Case.available] began.
func (c Case) held(m Move, o Order, eligible, off money.Amount) Move {
	free := m.To.State
	m.To.State, m.To.OrderID, m.To.Discount = Locked, o.ID, off
	op := c.op(StepLock, o.ID, m.To)
	op.From, op.OrderAmount, op.Eligible, op.Discount = free, o.Amount, eligible, off
	m.Ops = append(m.Ops, op)
	return m
}

// lockAgain answers a repeated lock as the first one was answered.
func (c Case) lockAgain(o Order, before Operation) (Move, *refusal) {
	eligible, err := c.Rule.Eligible(o)
	if err != nil {
		outcome := RefusedChanged
		if c.Rule.otherCurrency(o) {
			outcome = RefusedCurrency
		}
		return Move{}, &refusal{outcome, ErrOtherRequest.Because("this order locked the coupon before, in another way: %s; repeat the lock as it was sent first", err)}
	}
	if before.OrderAmount != o.Amount || before.Eligible != eligible {
		return Move{}, &refusal{RefusedChanged, ErrOtherRequest}
	}
	if !c.Coupon.heldBy(o.ID) {
		return Move{}, refuse(RefusedEnded, "this order's lock has ended; use a new order id to lock the coupon again")
	}
	return c.nothing(), nil
}

// unavailable says why the coupon cannot be locked at now, nil if it can.
func unavailable(c Coupon, now time.Time) *refusal {
	switch c.At(now) {
	case Unused:
		return nil
	case Locked:
		return refuse(RefusedLocked, "the coupon is locked for another order")
	case Used:
		return refuse(RefusedUsed, "the coupon has been used")
	case Revoked:
		return refuse(RefusedRevoked, "the coupon was revoked")
	case Suspended:
		return &refusal{RefusedSuspended, ErrSuspended}
	}
	return refuse(RefusedExpired, "the coupon has expired")
}

// confirm uses the coupon. A lock that has expired but was not released yet is
// still valid: no other order held the coupon since.
func (c Case) confirm(order string) (Move, *refusal) {
	if !c.Coupon.heldBy(order) {
		if _, ok := c.did(StepLock); ok {
			return Move{}, refuse(RefusedEnded, "this order's lock has ended")
		}
		return Move{}, refuse(RefusedNoLock, "the coupon is not locked for this order")
	}
	if c.Coupon.State == Used {
		return c.nothing(), nil
	}
	to := c.Coupon
	to.State = Used
	op := c.op(StepConfirm, order, to)
	op.OrderAmount, op.Discount = c.ordered(), to.Discount
	return Move{From: c.Coupon, To: to, Ops: []Operation{op}}, nil
}

// release gives the coupon back. If the order has no lock, the release is recorded,
// so that a lock that arrives later fails.
func (c Case) release(order string) (Move, *refusal) {
	held := c.Coupon.heldBy(order)
	if held && c.Coupon.State == Used {
		return Move{}, refuse(RefusedConfirms, "the order was confirmed; refund it instead")
	}
	_, locked := c.did(StepLock)
	_, released := c.did(StepRelease)
	if !held && (locked || released) {
		return c.nothing(), nil
	}
	to := c.Coupon
	if held {
		to = to.freed(c.Now)
	}
	op := c.op(StepRelease, order, to)
	op.Discount = c.Coupon.Discount
	if !held {
		op.Discount = 0
	}
	return Move{From: c.Coupon, To: to, Ops: []Operation{op}}, nil
}

// refund returns a used coupon, as expired if its time has passed. A coupon that refunds return to the stock
// is revoked.
func (c Case) refund(order string) (Move, *refusal) {
	if c.Coupon.heldBy(order) && c.Coupon.State == Used {
		to, returns := c.Coupon.freed(c.Now), c.Rule.RefundTo == template.RefundToStock
		if returns {
			to.State = Revoked
		}
		op := c.op(StepRefund, order, to)
		op.OrderAmount, op.Discount = c.ordered(), c.Coupon.Discount
		return Move{From: c.Coupon, To: to, Ops: []Operation{op}, Returns: returns}, nil
	}
	if _, ok := c.did(StepRefund); ok {
		return c.nothing(), nil
	}
	return Move{}, refuse(RefusedUnpaid, "the order has not used the coupon")
}

// revoke revokes an unused or suspended coupon, and with toStock returns it to the stock. It
// returns [ErrNotUsable] while an order holds the coupon, and after the coupon was
// used or has expired. A repetition does not change toStock.
func (c Case) revoke(toStock bool) (Move, error) {
	switch c.Coupon.At(c.Now) {
	case Revoked:
		return c.nothing(), nil
	case Unused, Suspended:
		to := c.Coupon
		to.State, to.Returned = Revoked, toStock
		return Move{From: c.Coupon, To: to, Ops: []Operation{c.op(StepRevoke, "", to)}, ToStock: toStock}, nil
	case Locked:
		return Move{}, ErrNotUsable.Because("an order holds the coupon; release its lock first")
	}
	return Move{}, ErrNotUsable.Because("only an unused coupon can be revoked; this one is %s", c.Coupon.At(c.Now))
}

// Suspend puts an unused coupon under review. It reports false for a coupon in another state: an
// order may hold or have used it.
func (c Case) Suspend() (Move, bool) {
	if c.Coupon.At(c.Now) != Unused {
		return Move{}, false
	}
	to := c.Coupon
	to.State = Suspended
	return Move{From: c.Coupon, To: to, Ops: []Operation{c.op(StepSuspend, "", to)}}, true
}

// Reinstate ends the review of a suspended coupon: it is unused again, or expired if its time has
// passed. It reports false for a coupon in another state.
func (c Case) Reinstate() (Move, bool) {
	if c.Coupon.State != Suspended {
		return Move{}, false
	}
	to := c.Coupon.freed(c.Now)
	return Move{From: c.Coupon, To: to, Ops: []Operation{c.op(StepReinstate, "", to)}}, true
}

// TakeBack revokes a suspended coupon and returns it to the stock. It reports false for a coupon in
// another state.
func (c Case) TakeBack() (Move, bool) {
	if c.Coupon.State != Suspended {
		return Move{}, false
	}
	m, err := c.revoke(true)
	return m, err == nil
}

// Because returns m with the actor and the reason in each line of the log.
func (m Move) Because(actor, reason string) Move {
	m = m.by(actor)
	for i := range m.Ops {
		m.Ops[i].Reason = reason
	}
	return m
}

// CheckReason returns a [fault.Fields] unless staff said why.
func CheckReason(reason string) error {
	e := &fault.Fields{}
	if n := len([]rune(reason)); n < 1 || n > 500 {
		e.Add("reason", "rule.reason", "say why, in at most 500 characters")
	}
	return e.Err()
}
