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
	Offered State = "offered" // a coupon is kept for the user, who must accept it in time
	Filled  State = "filled"  // the user got a coupon
	Lapsed  State = "lapsed"  // the user did not accept [MaxLapses] offers in time
	Left    State = "left"    // the user left, and may join again at the end
	Skipped State = "skipped" // it was the user's turn, and a rule refused the coupon
)

// A Waiter is one user's place on the waitlist of one drop.
type Waiter struct {
	TemplateID int64
	UserID     user.ID
	State      State
	Rank       int64 // before the order of joining; lower ranks are first
	Door       int   // the place of the user's door, whose limit holds for the user; 0 = the drop has none
	JoinedAt   time.Time
	ChangedAt  time.Time
	// Channels are those over which the user is told of the coupon.
	Channels delivery.ChannelSet
	CouponID int64  // of a user who was filled, otherwise 0
	Reason   string // why the user was skipped: the code of the refusal
	// OfferUntil is until when the user can accept a coupon; zero for a user who cannot.
	OfferUntil time.Time
	// Shared is set if all users who wait can accept the coupons: the first of them get one.
	Shared bool
	Lapses int // offers that the user did not accept in time
}

// A Wish is a request to join.
type Wish struct {
	TemplateID int64
	UserID     user.ID
	Channels   delivery.ChannelSet
	// Rank, Door and Limit are set by [Service.Join]: the rank of a user who joins by a request, the
	// place of the user's door, and how many coupons the user may have.
	Rank  int64
	Door  int
	Limit int
}

// The ranks. Before users who joined by a request come entries of a draw that did not win, whose
// ranks are their places in the order of the draw, or users of an earlier door. LastRank and above are
// the ranks of users who did not accept an offer in time: these stay behind all other users.
const (
	rankAfterDraw = 1 << 32
	LastRank      = 1 << 60
)

// RankOf returns the rank of a user who joins the waitlist of t by a request. door is the place of
// the user's door, 0 if t has none.
func RankOf(t template.Template, door int) int64 {
	if t.OpeningMode.Drawn() {
		return rankAfterDraw
	}
	return int64(door)
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
	ErrNoOffer    = fault.New(fault.Conflict, "no_offer", "no coupon is offered to you now; stay on the waitlist, and you are told when one is")
	ErrLapsed     = fault.New(fault.Conflict, "offer_lapsed", "the offer was not accepted in time; wait for another one")
	ErrTaken      = fault.New(fault.Conflict, "offer_taken", "other users were faster; stay on the waitlist, in case another coupon comes back")
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
	by := claim.ByTap
	if t.OpeningMode.Drawn() {
		by = claim.ByWaitlist
	}
	if err := claim.Admit(t, by, now); err != nil && t.Stored != template.Paused {
		return err
	}
	switch {
	case now.Before(t.OpensAt):
		return claim.ErrNotStarted
	case t.OpeningMode.Drawn() && t.StockLeft() > 0: // the draw is not over
		return claim.ErrNotStarted.Because("the draw has not given its coupons yet; join once it has")
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
// of users. Waiting has the users to whom a coupon is offered now.
type Sheet struct {
	TemplateID                                     int64
	Joined, Waiting, Filled, Lapsed, Left, Skipped int64
	// Offered are the users to whom a coupon is offered now.
	Offered int64
	// Held is the stock that is kept for those who wait.
	Held int64
}

// Difference returns how many users are unaccounted for; 0 is as it must be.
func (s Sheet) Difference() int64 {
	return max(s.Joined-s.Waiting-s.Filled-s.Lapsed-s.Left-s.Skipped, -(s.Joined - s.Waiting - s.Filled - s.Lapsed - s.Left - s.Skipped))
}
