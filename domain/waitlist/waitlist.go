// Package waitlist decides who gets stock that comes back after a drop sold out: users join the
// waitlist of the drop, and the filler gives them the stock that is kept for them, by rank and
// then in the order of joining.
package waitlist

import (
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// State is what became of a user's wait.
type State string

// The states.
const (
	Waiting State = "waiting"
	Filled  State = "filled"  // the user got a coupon
	Left    State = "left"    // the user left, and may join again at the end
	Skipped State = "skipped" // it was the user's turn, and a rule refused the coupon
)

// A Waiter is one user's place on the waitlist of one drop.
type Waiter struct {
	TemplateID int64
	UserID     user.ID
	State      State
	Rank       int64 // before the order of joining; lower ranks are first
	JoinedAt   time.Time
	ChangedAt  time.Time
	// Channels are those over which the user is told of the coupon.
	Channels delivery.ChannelSet
	CouponID int64  // of a user who was filled, otherwise 0
	Reason   string // why the user was skipped: the code of the refusal
}

// A Wish is a request to join.
type Wish struct {
	TemplateID int64
	UserID     user.ID
	Channels   delivery.ChannelSet
}

// MaxWaits is how many waits of drops that have not ended one user may have.
const MaxWaits = 20

// MinValidity is how long a coupon must at least be valid when a waiting user gets it.
const MinValidity = time.Hour

// Faults of this package.
var (
	ErrNone       = fault.New(fault.Conflict, "no_waitlist", "this drop has no waitlist; claim its coupon while there are any")
	ErrStockLeft  = fault.New(fault.Conflict, "stock_left", "there are coupons left; claim one with POST /claims")
	ErrTooMany    = fault.New(fault.Conflict, "too_many_waits", "you wait for as many drops as one person may; leave another waitlist first")
	ErrNotWaiting = fault.New(fault.NotFound, "not_waiting", "you are not on the waitlist of this drop; join it with PUT /waitlist/{template}")
	// ErrNotOpen is returned by a store for a drop whose waitlist no user can join now. [Joinable] says why.
	ErrNotOpen = fault.Distinct(claim.ErrOverloaded.Because("the drop is changing right now; try again"))
)

// GivesUntil returns the instant from which waiting users of t get nothing any more: the end of the
// drop, or [MinValidity] before the end of its coupons' validity.
func GivesUntil(t template.Template) time.Time {
	end := t.EndsAt()
	if t.ValidUntil != nil {
		if last := t.ValidUntil.Add(-MinValidity); last.Before(end) {
			return last
		}
	}
	return end
}

// Joinable returns nil if users can join the waitlist of t at now. Otherwise it returns the reason:
// [template.ErrNotFound], [ErrNone], a refusal of [claim.Admit], [claim.ErrEnded] or [ErrStockLeft].
// The database behind a gate does not know how many coupons are left, so stock is judged only where
// it decides the claims.
func Joinable(t template.Template, now time.Time) error {
	switch {
	case t.Stored == template.Draft:
		return template.ErrNotFound
	case !t.Waits():
		return ErrNone
	}
	if err := claim.Admit(t, claim.ByTap, now); err != nil && t.Stored != template.Paused {
		return err
	}
	switch {
	case now.Before(t.OpensAt):
		return claim.ErrNotStarted
	case !now.Before(GivesUntil(t)):
		return claim.ErrEnded
	case t.ClaimMode != template.Gate && t.StockLeft() > 0:
		return ErrStockLeft
	}
	return nil
}

// Open reports whether a refusal for lack of stock is to tell the user of the waitlist. Before the
// last door of a drop opens only the shares of the open doors are used up.
func Open(t template.Template, now time.Time) bool {
	return t.Waits() && t.Stored == template.Published && !now.Before(t.OpensAt) && now.Before(GivesUntil(t))
}

// A Sheet accounts for all users who ever joined a waitlist: Joined is the sum of the other numbers
// of users.
type Sheet struct {
	TemplateID                                     int64
	Joined, Waiting, Filled, Lapsed, Left, Skipped int64
	// Held is the stock that is kept for those who wait.
	Held int64
}

// Difference returns how many users are unaccounted for; 0 is as it must be.
func (s Sheet) Difference() int64 {
	return max(s.Joined-s.Waiting-s.Filled-s.Lapsed-s.Left-s.Skipped, -(s.Joined - s.Waiting - s.Filled - s.Lapsed - s.Left - s.Skipped))
}
