package claim

import (
	"time"

	"dropbell/domain/template"
	"dropbell/domain/user"
)

// The reasons for which a gate answers [template.ErrNotOpen]. Each text says what
// the user can do.
var (
	ErrCancelled   = template.ErrNotOpen.Because("this drop was cancelled; its coupons can no longer be claimed")
	ErrPaused      = template.ErrNotOpen.Because("this drop is paused; try again later")
	ErrNeedsCode   = template.ErrNotOpen.Because("this coupon is obtained with a redeem code; send it to POST /redemptions")
	ErrIsDrawn     = template.ErrNotOpen.Because("a draw decides who gets these coupons; enter with PUT /draws/{template}/entry")
	ErrTakesNoCode = template.ErrNotOpen.Because("this coupon is not obtained with a redeem code; claim it with POST /claims")
)

// Admit returns nil if a coupon of t can be issued by this origin now, otherwise
// the refusal; see [Gate] for the order of refusals. Stock and limit are not
// checked.
func Admit(t template.Template, by Origin, now time.Time) error { return admit(&t, by, 0, now) }

// admit is [Admit] for a user of the door with this place; see [Request].
func admit(t *template.Template, by Origin, door int, now time.Time) error {
	if t.Stored == template.Draft {
		return template.ErrNotFound
	}
	if err := obtainable(t, by); err != nil {
		return err
	}
	switch {
	case closedBy(t, by, now):
		return ErrEnded
	case t.Stored == template.Paused:
		return ErrPaused
	case by.Windowed() && now.Before(t.OpensFor(door)):
		return ErrNotStarted
	}
	return nil
}

// Offer returns nil if the next user who claims by this origin now would get a
// coupon of t. Otherwise it returns the refusal of [Admit], or [ErrSoldOut]. The
// limit per user is not checked.
func Offer(t template.Template, by Origin, now time.Time) error { return offer(&t, by, 0, now) }

func offer(t *template.Template, by Origin, door int, now time.Time) error {
	if err := admit(t, by, door, now); err != nil {
		return err
	}
	if t.StockLeft() <= 0 || t.Issued >= stockFor(t, by, now) {
		return ErrSoldOut
	}
	return nil
}

// stockFor returns how many coupons there may be once claims of this origin are issued at an instant.
// Only waiting users get stock that is kept for them, and nothing else. Doors limit taps alone.
func stockFor(t *template.Template, by Origin, now time.Time) int64 {
	switch by {
	case ByWaitlist:
		return t.Issued + t.Held
	case ByTap:
		return min(t.Stock-t.Held, t.SellableAt(now))
	}
	return t.Stock - t.Held
}

func obtainable(t *template.Template, by Origin) error {
	switch {
	case t.Stored == template.Cancelled:
		return ErrCancelled
	case t.OpeningMode.Drawn() && by != ByDraw && by != ByWaitlist:
		return ErrIsDrawn
	case by == ByTap && t.Obtain != template.ByClaim:
		return ErrNeedsCode
	case by == ByCode && t.Obtain != template.ByCode:
		return ErrTakesNoCode
	}
	return nil
}

// closedBy reports whether a claim of this origin comes too late. Staff can grant
// coupons after the window has passed, but not after they have closed the drop
// themselves, and never a coupon that has expired already.
func closedBy(t *template.Template, by Origin, now time.Time) bool {
	if t.ValidUntil != nil && !now.Before(*t.ValidUntil) {
		return true
	}
	if by == ByDraw { // the draw was published: its winners get their coupons
		return false
	}
	if by.Windowed() {
		return t.Stored == template.Closed || !now.Before(t.EndsAt())
	}
	return t.ClosedEarly()
}

// ExpiresAt returns the first instant at which a coupon issued then is no
// longer valid.
func ExpiresAt(t template.Template, issued time.Time) time.Time {
	if t.ValidUntil != nil {
		return *t.ValidUntil
	}
	return issued.Add(time.Duration(t.ValidHours) * time.Hour)
}

// A Holder is one user with respect to one template.
type Holder struct {
	TemplateID int64
	UserID     user.ID
}

// A Household is one household with respect to one template.
type Household struct{ TemplateID, Number int64 }

// A RepeatKey identifies a request, so that its repetition is recognised.
type RepeatKey struct {
	Origin Origin
	Key    string
}

// A Decider decides one group of requests in memory. Its caller loads what is
// stored, holds the locks that keep other groups from the same templates (or checks
// afterwards that nothing has changed), and passes the requests in order of arrival.
type Decider struct {
	At        time.Time // by the database's clock, after the templates were locked
	Templates map[int64]template.Template
	// Counts has each user's coupons. For claims that a gate accepted it leaves out the coupons that
	// staff gave beyond the limit: the gate counted them in the order in which it accepted claims, but
	// writers may write them before an earlier tap.
	Counts map[Holder]int
	// Households has the number of the household of each holder who has one, for templates with a household
	// limit. HouseholdCounts has the coupons of these households.
	Households      map[Holder]int64
	HouseholdCounts map[Household]int
	// Known holds the claims issued before to requests of this group, by origin and
	// key. KnownID holds the same by claim id, for requests that a gate accepted.
	Known   map[RepeatKey]*Claim
	KnownID map[ID]*Claim
	// Void holds keys that are refused for a reason outside the template, with the
	// refusal: the redeem code was revoked. A repetition is still answered with its
	// claim.
	Void map[RepeatKey]error
	// Affordable is how many more coupons each campaign with a budget can give.
	Affordable map[int64]int64
	// Size is how many requests there are, if that is known.
	Size int

	fresh  []Issue
	issued map[int64]int64
}

// An Issue is a coupon to be written. The writer fills in Claim.CouponID. All
// repetitions within the group share this Claim.
type Issue struct {
	Request   Request
	Claim     *Claim
	ExpiresAt time.Time
}

// A Verdict is the result of one request of a group.
type Verdict struct {
	Claim *Claim // nil if refused
	Err   error
}

// Decide answers r; see [Gate] for the possible refusals.
func (d *Decider) Decide(r Request) Verdict {
	if known, ok := d.repeated(r); ok {
		if known.TemplateID != r.TemplateID || known.UserID != r.UserID {
			return Verdict{Err: ErrIdempotency}
		}
		return Verdict{Claim: known}
	}
	if err := d.Void[RepeatKey{r.Origin, r.Key}]; err != nil {
		return Verdict{Err: err}
	}
	if err := d.refusal(r); err != nil {
		return Verdict{Err: err}
	}
	return Verdict{Claim: d.issue(r)}
}

func (d *Decider) repeated(r Request) (*Claim, bool) {
	if r.Key != "" {
		if known, ok := d.Known[RepeatKey{r.Origin, r.Key}]; ok {
			return known, true
		}
	}
	if r.AcceptedAt.IsZero() {
		return nil, false
	}
	known, ok := d.KnownID[r.ID]
	return known, ok
}

func (d *Decider) refusal(r Request) error {
	t, ok := d.Templates[r.TemplateID]
	if !ok {
		return template.ErrNotFound
	}
	if r.AcceptedAt.IsZero() { // otherwise a gate accepted the request while the drop was open
		if len(t.Doors) > 0 && r.Door == 0 && r.Origin == ByTap {
			return errNoDoor
		}
		if err := admit(&t, r.Origin, r.Door, d.At); err != nil {
			return err
		}
	}
	switch {
	case r.Origin.Windowed() && d.At.Before(t.FirstOpening()): // a gate accepted the request too early, by a wrong clock
		return ErrNotStarted
	case t.Issued+d.issued[r.TemplateID] >= d.stock(&t, r):
		return ErrSoldOut
	case d.Counts[Holder{r.TemplateID, r.UserID}] >= t.LimitFor(r.Door) && !r.passesLimit():
		return ErrLimit
	case t.HouseholdLimit > 0 && d.household(r) != 0 && d.HouseholdCounts[Household{t.ID, d.household(r)}] >= t.HouseholdLimit && !r.passesLimit():
		return ErrHousehold
	}
	if left, limited := d.Affordable[r.Campaign()]; limited && left <= 0 {
		return ErrBudget
	}
	return nil
}

// household returns the number of the household for which a coupon of r counts; 0 = none.
func (d *Decider) household(r Request) int64 { return d.Households[Holder{r.TemplateID, r.UserID}] }

// stock is [stockFor] r. A gate that accepted r has judged the shares of doors.
func (d *Decider) stock(t *template.Template, r Request) int64 {
	if r.Origin == ByTap && !r.AcceptedAt.IsZero() {
		return t.Stock - t.Held
	}
	return stockFor(t, r.Origin, d.At)
}

func (d *Decider) issue(r Request) *Claim {
	if d.issued == nil {
		d.issued = map[int64]int64{}
	}
	if _, limited := d.Affordable[r.Campaign()]; limited {
		d.Affordable[r.Campaign()]--
	}
	d.issued[r.TemplateID]++
	if r.AcceptedAt.IsZero() || !r.passesLimit() {
		d.Counts[Holder{r.TemplateID, r.UserID}]++
		if h := d.household(r); h != 0 {
			d.HouseholdCounts[Household{r.TemplateID, h}]++
		}
	}
	at := d.At
	if !r.AcceptedAt.IsZero() {
		at = r.AcceptedAt
	}
	c := &Claim{ID: r.ID, TemplateID: r.TemplateID, UserID: r.UserID, State: Issued, At: at}
	if r.Key != "" {
		d.Known[RepeatKey{r.Origin, r.Key}] = c
	}
	if !r.AcceptedAt.IsZero() {
		d.KnownID[r.ID] = c
	}
	if d.fresh == nil {
		d.fresh = make([]Issue, 0, d.Size)
	}
	d.fresh = append(d.fresh, Issue{r, c, ExpiresAt(d.Templates[r.TemplateID], at)})
	return c
}

// Fresh returns the coupons to be written, in the order of their requests.
func (d *Decider) Fresh() []Issue { return d.fresh }

// Issued returns how many coupons of each template are to be written.
func (d *Decider) Issued() map[int64]int64 { return d.issued }
