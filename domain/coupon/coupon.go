// Package coupon holds what a user owns: one coupon, the steps of its life
// from issue to use, what it takes off an order, how it expires, and the
// notices that say so beforehand.
package coupon

import (
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/user"
)

// State is where a coupon is in its life.
type State string

// The states. A refunded or released coupon becomes unused, or expired if its time
// has passed meanwhile.
const (
	Unused   State = "unused"
	Locked   State = "locked" // held for an order that is being paid
	Used     State = "used"
	Expired  State = "expired"
	Refunded State = "refunded" // kept for coupons that came from elsewhere; no step leads here
	Revoked  State = "revoked"
	// Suspended coupons are under review: no order can lock them until a member of the staff has
	// decided, or until they expire.
	Suspended State = "suspended"
)

// States returns every state that a coupon can be shown in.
func States() []State { return []State{Unused, Locked, Used, Expired, Revoked, Suspended} }

// Faults of this room.
var (
	ErrNotFound = fault.New(fault.NotFound, "coupon_not_found", "there is no such coupon; check its id and the user")
	// ErrNotUsable is the refusal of a step that the coupon's state, its
	// order's history or its rule forbids.
	ErrNotUsable = fault.New(fault.Conflict, "coupon_not_usable", "the coupon cannot be used for this; use another one")
	// ErrSuspended is the refusal to lock a coupon that is under review.
	ErrSuspended = fault.New(fault.Conflict, "coupon_suspended", "the coupon is being checked and cannot be used now; its owner can appeal by POST /coupons/{id}/appeal")
	// ErrOtherRequest is the refusal of a lock that names an order which
	// locked the coupon before with other amounts.
	ErrOtherRequest = fault.New(fault.Invalid, "idempotency_conflict", "this order locked the coupon before with other amounts; repeat the lock as it was sent first")
	// ErrRaced is returned by stores when the coupon changed between load and
	// save; the step is decided again.
	ErrRaced = fault.New(fault.Conflict, "coupon_raced", "the coupon changed in the meantime")
	// ErrBusy is returned when a coupon is changed so often at the same time
	// that this step found no turn, or is kept locked by another session.
	ErrBusy = fault.New(fault.Unavailable, "overloaded", "too many requests for this coupon at once; try again")
)

// A Coupon is one coupon of one user. Times are the database's.
type Coupon struct {
	ID         int64
	TemplateID int64
	UserID     user.ID
	Origin     string // how it was obtained: "claim", "code", "grant" or "campaign"
	State      State
	IssuedAt   time.Time
	ExpiresAt  time.Time // the first instant at which it is no longer valid
	// OrderID is the order that holds or used the coupon; empty else.
	OrderID     string
	LockedAt    *time.Time
	LockedUntil *time.Time // from then on the lock may expire
	// Discount is what the coupon takes off OrderID, in minor units.
	Discount  money.Amount
	UsedAt    *time.Time
	UpdatedAt time.Time
	// Returned is set if the coupon was revoked and its place is for sale again.
	Returned bool
	// Version grows with every step; saves are guarded by it.
	Version int64
}

// At returns the state as users see it at now: a coupon is expired from its
// instant on, even before a sweep has written that down.
func (c Coupon) At(now time.Time) State {
	if c.State == Unused && !now.Before(c.ExpiresAt) {
		return Expired
	}
	return c.State
}

// heldBy reports whether the order holds or has used the coupon.
func (c Coupon) heldBy(order string) bool {
	return c.OrderID == order && (c.State == Locked || c.State == Used)
}

// freed returns c as no order's any more at now: unused, or expired.
func (c Coupon) freed(now time.Time) Coupon {
	c.State, c.OrderID, c.Discount = Unused, "", 0
	c.LockedAt, c.LockedUntil, c.UsedAt = nil, nil, nil
	c.State = c.At(now)
	return c
}

// A Tally counts a template's coupons by state.
type Tally struct {
	// Issued counts every coupon that was ever issued. Locked, Used, Expired and
	// Revoked and Suspended count coupons in these states; all other issued coupons are unused.
	Issued, Locked, Used, Expired, Revoked, Suspended int64
	Returned                                          int64 // of the revoked, back in stock
	// Released counts locks that ended without a use, by the order or by time-out.
	// Refunded counts uses that were refunded. Both count steps, not states: one
	// coupon may go through several steps.
	Released, Refunded int64
	Discounted         money.Amount // taken off by used coupons
	// Removed counts coupons that were deleted after their retention. Only these
	// totals are left of them.
	Removed int64
}

// Unused returns how many coupons can still be used. It is never below 0, although
// the counters may differ in age and add up to less for a moment.
func (y Tally) Unused() int64 {
	return max(0, y.Issued-y.Locked-y.Used-y.Expired-y.Revoked-y.Suspended)
}

// Sum adds up the states. It is Issued, except while events about coupons have
// arrived that Issued does not count yet.
func (y Tally) Sum() int64 {
	return y.Unused() + y.Locked + y.Used + y.Expired + y.Revoked + y.Suspended
}

// A NoticeDay is one day of the calendar of notices.
type NoticeDay struct {
	Day                            time.Time // midnight UTC
	Planned, Sent, Failed, Dropped int64
}

// Plus returns the day with the notices of other, which are of another database.
func (d NoticeDay) Plus(other NoticeDay) NoticeDay {
	return NoticeDay{d.Day, d.Planned + other.Planned, d.Sent + other.Sent, d.Failed + other.Failed, d.Dropped + other.Dropped}
}

// Waiting returns how many of the day's notices have no outcome yet.
func (d NoticeDay) Waiting() int64 { return max(0, d.Planned-d.Sent-d.Failed-d.Dropped) }
