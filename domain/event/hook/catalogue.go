package hook

import "slices"

// A Type is one kind of event that endpoints are sent. The form of a type and the
// meaning of its fields never change; docs/webhooks.md describes them, and testdata
// has an example of each type.
type Type string

// The types. TestEvent is sent to one endpoint when staff ask for it.
const (
	DropPublished        Type = "drop.published"
	DropMoved            Type = "drop.moved"
	DropOpened           Type = "drop.opened"
	DropSoldOut          Type = "drop.sold_out"
	DropClosed           Type = "drop.closed"
	DropCancelled        Type = "drop.cancelled"
	DropEarned           Type = "drop.earned"
	ReservationMade      Type = "reservation.made"
	ReservationCancelled Type = "reservation.cancelled"
	CouponIssued         Type = "coupon.issued"
	CouponLocked         Type = "coupon.locked"
	CouponUsed           Type = "coupon.used"
	CouponReleased       Type = "coupon.released"
	CouponRefunded       Type = "coupon.refunded"
	CouponRevoked        Type = "coupon.revoked"
	CouponExpired        Type = "coupon.expired"
	CouponSuspended      Type = "coupon.suspended"
	CouponRestored       Type = "coupon.restored"
	CampaignFinished     Type = "campaign.finished"
	DeliveryDead         Type = "delivery.dead"
	BudgetReached        Type = "budget.reached"
	DrawSealed           Type = "draw.sealed"
	DrawDrawn            Type = "draw.drawn"
	EntryWon             Type = "entry.won"
	EntryLost            Type = "entry.lost"
	WaitlistFilled       Type = "waitlist.filled"
	WaitlistLapsed       Type = "waitlist.lapsed"
	TestEvent            Type = "endpoint.test"
)

// Types returns the types that an endpoint can choose, in the order of pages and
// documents.
func Types() []Type {
	return []Type{DropPublished, DropMoved, DropOpened, DropSoldOut, DropClosed, DropCancelled, DropEarned, ReservationMade, ReservationCancelled,
		CouponIssued, CouponLocked, CouponUsed, CouponReleased, CouponRefunded, CouponRevoked, CouponExpired, CouponSuspended, CouponRestored, CampaignFinished, DeliveryDead, BudgetReached, DrawSealed, DrawDrawn, EntryWon, EntryLost, WaitlistFilled, WaitlistLapsed}
}

// Batched reports whether one event of the type is about up to [MaxItems] users.
func (t Type) Batched() bool {
	switch t {
	case ReservationMade, ReservationCancelled, CouponIssued, CouponExpired, DeliveryDead, EntryWon, EntryLost, WaitlistFilled, WaitlistLapsed:
		return true
	}
	return false
}

// Valid reports whether an endpoint can choose the type.
func (t Type) Valid() bool { return slices.Contains(Types(), t) }

// MaxItems is how many items one event of a batched type has at most: about 50 KB.
const MaxItems = 500
