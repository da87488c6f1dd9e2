// Package template holds the coupon template: the value of a coupon, the opening and
// closing of its drop, and the transitions that its life allows.
package template

import (
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/field"
	"dropbell/domain/message"
	"dropbell/domain/money"
)

// State is where a template is in its life.
type State string

// The states as staff and users see them. Only draft, published, paused, closed and cancelled are
// stored. Open, SoldOut and, after closes_at, Ended follow from the clock and the stock.
const (
	Draft     State = "draft"
	Scheduled State = "scheduled"
	Open      State = "open"
	SoldOut   State = "sold_out"
	Paused    State = "paused"
	Closed    State = "closed"
	Cancelled State = "cancelled"

	// Published is stored for all states between publication and the end.
	Published State = "published"
)

// The stages of a drop with a draw, which pages show instead of Scheduled, Open and SoldOut; see
// [Template.Stage].
const (
	EntriesOpen State = "entries_open"
	Sealed      State = "sealed"
	Drawn       State = "drawn"
)

// States returns every visible state in the order of a template's life.
func States() []State { return []State{Draft, Scheduled, Open, SoldOut, Paused, Closed, Cancelled} }

// Kind is how the discount is computed.
type Kind string

// The kinds of discounts.
const (
	AmountOff    Kind = "amount_off"
	ThresholdOff Kind = "threshold_off"
	PercentOff   Kind = "percent_off"
)

// Target is the scope in which the coupon can be used.
type Target string

// The targets.
const (
	WholeShop Target = "shop"
	Product   Target = "product"
)

// Obtain is how users get the coupon.
type Obtain string

// The ways.
const (
	ByClaim Obtain = "claim"
	ByCode  Obtain = "code"
)

// ClaimMode is the gate that decides claims.
type ClaimMode string

// The gates.
const (
	Durable ClaimMode = "durable"
	Gate    ClaimMode = "gate"
)

// Protection is what a drop demands of claims and entries against scripts.
type Protection string

// The protections. A strict drop accepts no pass that was earned by a puzzle alone.
const (
	Unprotected Protection = "off"
	Standard    Protection = "standard"
	Strict      Protection = "strict"
)

// Faults of this room.
var (
	ErrNotFound   = fault.New(fault.NotFound, "template_not_found", "there is no such template; check its id")
	ErrTransition = fault.New(fault.Conflict, "invalid_transition", "the template's state does not allow this; load it and choose a step that its state allows")
	ErrNotOpen    = fault.New(fault.Conflict, "template_not_open", "this drop does not take reservations; choose one that is published and not over")
	ErrOpened     = fault.New(fault.Conflict, "drop_opened", "this drop has opened already; reminders come before the opening")
	ErrStockBelow = fault.New(fault.Conflict, "stock_below_issued", "stock cannot be lower than what is issued; choose a higher number")
	// ErrNotMovable is an [ErrTransition].
	ErrNotMovable = ErrTransition.Because("the drop has opened; its opening can no longer be moved").Told("fault.drop_not_movable")
)

// Spec is the part of a template that staff decide. Amounts are in minor units of Currency;
// instants are whole seconds. The tags are read by [field.Of]; a field's place is its place in the
// form.
type Spec struct {
	Name        string       `field:"name,found"`
	ShopNumber  int64        `field:"shop_number,fixed"`
	Description string       `field:"description,max=4000,lines"`
	Note        string       `field:"note,max=500,lines,found"` // for staff only
	ClaimURL    string       `field:"claim_url"`
	Kind        Kind         `field:"kind,fixed"`
	AmountOff   money.Amount `field:"amount_off,fixed"`
	PercentOff  int          `field:"percent_off,fixed"`
	MaxOff      money.Amount `field:"max_off,fixed"`
	Threshold   money.Amount `field:"threshold,fixed"`
	Currency    string       `field:"currency,fixed"`
	Target      Target       `field:"target,fixed"`
	Product     string       `field:"product,fixed"`
	OpensAt     time.Time    `field:"opens_at"`
	ClosesAt    time.Time    `field:"closes_at"`
	ValidHours  int          `field:"valid_hours,fixed"`
	ValidUntil  *time.Time   `field:"valid_until,fixed"`
	// NotifyDays are the days before the expiry on which owners get a notice; NotifyOver are the
	// channels. A change applies to coupons that are issued later.
	NotifyDays   NoticeDays          `field:"notify_days"`
	NotifyOver   delivery.ChannelSet `field:"notify_channels,kept=notify_over"`
	Stock        int64               `field:"stock"`
	PerUserLimit int                 `field:"per_user_limit,fixed"`
	// HouseholdLimit is how many coupons the users of one household may have together, 0 = no limit.
	HouseholdLimit int       `field:"household_limit,fixed"`
	Obtain         Obtain    `field:"obtain,fixed"`
	ClaimMode      ClaimMode `field:"claim_mode,fixed"`
	// HoldOutPercent is the percentage of the users with a reservation who get no message about the
	// drop, so that the effect of the messages can be measured; see [delivery.HeldOutOfDrop].
	HoldOutPercent int `field:"hold_out_percent,fixed"`
	// Waitlist says who gets stock that comes back after the drop sold out.
	Waitlist Waitlist `field:"waitlist,fixed"`
	// AcceptMinutes is how long an offer of the waitlist can be accepted, in minutes of the user's
	// waking hours; 0 unless Waitlist is [OfferNext].
	AcceptMinutes int `field:"accept_minutes,fixed"`
	// UseWithinHours is within how many hours of its issue a coupon must be used; an unused coupon
	// then returns to the stock while the drop runs. 0 = no such limit.
	UseWithinHours int `field:"use_within_hours,fixed"`
	// RefundTo is [RefundToHolder] if empty.
	RefundTo RefundTo `field:"refund_to,fixed"`
	// Protection is [Unprotected] if empty. It may be changed while the drop runs: a script may appear in the rush.
	Protection Protection `field:"protection"`
	Stacking
	Opening
}

// Fields are the fields of a [Spec] in the order of the form.
var Fields = field.Of[Spec]()

// EndsAt returns the end of claiming: closes_at, or the end of the coupons' validity if it is
// earlier.
func (s Spec) EndsAt() time.Time {
	if s.ValidUntil != nil && s.ValidUntil.Before(s.ClosesAt) {
		return *s.ValidUntil
	}
	return s.ClosesAt
}

// A Template is a spec with a life.
type Template struct {
	ID int64
	Spec
	ShopName     string
	ShopTimezone string
	// ShopClaimURL is the claim address of the shop, used if the template has none; see
	// [Template.ClaimAddress].
	ShopClaimURL string
	// Issued is how many coupons there are, less those Returned to stock. Held is how many of the
	// others are kept for users who wait.
	Issued, Returned, Held int64
	// Stored is the stored state; see [Template.State].
	Stored      State
	Version     int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
	PublishedAt *time.Time
	EndedAt     *time.Time
	// RemindOnce says that the last move of the opening was made with reminders only for users
	// who were not reminded yet. A user who has been sent the reminder of a slot and channel for
	// an earlier opening does not get it again.
	RemindOnce bool
	// Doors are the groups of users with openings of their own, in the order in which they are tried;
	// none = all users may claim from the opening on.
	Doors []Door
	// DoorBase is how many coupons were issued when the first door was frozen.
	DoorBase int64
	// SeriesID is the series that created the drop; 0 = none did.
	SeriesID int64
}

// State returns the state of the template at now.
func (t Template) State(now time.Time) State {
	if t.Stored != Published && t.Stored != Paused {
		return t.Stored
	}
	switch {
	case !now.Before(t.EndsAt()):
		return Closed
	case t.Stored == Paused:
		return Paused
	case now.Before(t.OpensAt):
		return Scheduled
	case t.Issued+t.Held >= t.Stock:
		return SoldOut
	}
	return Open
}

// Stage returns the state that pages show. A draw has stages of its own from the first entry until the
// drop ends: Sealed lasts from the close of entries until the first winner has a coupon or an offer.
func (t Template) Stage(now time.Time) State {
	s := t.State(now)
	switch {
	case !t.OpeningMode.Drawn():
	case s == Scheduled && t.PublishedAt != nil && !now.Before(t.EntriesFrom(*t.PublishedAt)):
		return EntriesOpen
	case (s == Open || s == SoldOut) && t.Issued+t.Held > 0:
		return Drawn
	case s == Open || s == SoldOut:
		return Sealed
	}
	return s
}

// ClosedEarly reports whether staff ended the drop before its time.
func (t Template) ClosedEarly() bool {
	return t.Stored == Closed && (t.EndedAt == nil || t.EndedAt.Before(t.EndsAt()))
}

// OverAt returns when staff closed the drop, or [Spec.EndsAt] if the drop was not closed before.
// For a cancelled drop it is the planned end.
func (t Template) OverAt() time.Time {
	if t.ClosedEarly() && t.EndedAt != nil {
		return *t.EndedAt
	}
	return t.EndsAt()
}

// Protected reports whether claims and entries need a pass.
func (s Spec) Protected() bool { return s.Protection == Standard || s.Protection == Strict }

// StockLeft returns how many coupons are neither issued nor kept for users who wait.
func (t Template) StockLeft() int64 { return t.Stock - t.Issued - t.Held }

// Zone returns the shop's time zone, UTC when unknown.
func (t Template) Zone() *time.Location {
	if loc, err := time.LoadLocation(t.ShopTimezone); err == nil {
		return loc
	}
	return time.UTC
}

// AcceptsReservations returns nil while reminders can be reserved. It returns [ErrNotFound] for a
// draft, whose existence is not public, [ErrOpened] after the opening, and [ErrNotOpen] after the
// end.
func (t Template) AcceptsReservations(now time.Time) error {
	switch t.State(now) {
	case Draft:
		return ErrNotFound
	case Closed, Cancelled:
		return ErrNotOpen
	}
	if !now.Before(t.OpensAt) {
		return ErrOpened
	}
	return nil
}

// ClaimAddress returns the address where the coupon can be claimed: the template's address,
// otherwise the shop's; empty = there is none.
func (t Template) ClaimAddress() string {
	if t.ClaimURL != "" {
		return t.ClaimURL
	}
	return strings.ReplaceAll(t.ShopClaimURL, "{id}", strconv.FormatInt(t.ID, 10))
}

// Worth returns the value of the coupon, for messages.
func (s Spec) Worth() message.Worth {
	w := message.Worth{Amount: s.AmountOff, Most: s.MaxOff, Threshold: s.Threshold, Currency: s.Currency}
	if s.Kind == PercentOff {
		w.Percent = s.PercentOff
	}
	return w
}

// A Shop is where templates belong.
type Shop struct {
	Number   int64
	Name     string
	Timezone string // IANA
	// ClaimURL is the claim address of coupons whose templates have no address. {id} is replaced
	// by the template's number. Empty = there is none.
	ClaimURL string
}

// Shown is the part of a shop that the audit log keeps.
func (s Shop) Shown() map[string]string {
	return map[string]string{"name": s.Name, "timezone": s.Timezone, "claim_url": s.ClaimURL}
}
