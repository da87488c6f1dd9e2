// Package claim decides claims in the rush: which users get a coupon of a template whose
// stock, window and limit per user allow only some of the claims.
package claim

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// ID names one claim: 47 random bits above the 16 lowest bits of the template's id.
// The random bits let a gate return the id before anything is stored, and hide how
// many claims there are. The template's bits tell which gate to ask about a claim.
// A claim is shown to its own user only, whichever id a caller guesses.
type ID int64

const (
	// hintBits is the number of bits of the template's id in a claim's id. Two
	// gates that are open at the same time share these bits only if 1,023
	// templates were made in between: ids of templates are 64 apart. More bits would
	// make equal ids more likely: with 47 random bits, two of a million claims that
	// wait at one gate have equal ids with a probability of 1 in 280.
	hintBits = 16
)

// NewID returns an id for a claim of the template, made of 64 random bits.
func NewID(random uint64, templateID int64) ID {
	const hint = 1<<hintBits - 1
	random &= 1<<63 - 1
	return ID(max(random&^hint, 1<<hintBits) | uint64(templateID)&hint)
}

// Names reports whether the id says that its claim is of the template.
func (id ID) Names(templateID int64) bool {
	return (uint64(id)^uint64(templateID))<<(64-hintBits) == 0
}

// ParseID reads the text that [ID.String] writes. It returns [ErrNotFound] for any
// other text, since no claim has such an id.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != s {
		return 0, ErrNotFound
	}
	return ID(n), nil
}

func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// State is how far a claim is.
type State string

// The states. A claim of a durable template is issued or refused at once;
// only a gate answers accepted.
const (
	Accepted State = "accepted" // decided and kept; the coupon is being written
	Issued   State = "issued"   // the user owns the coupon
	Failed   State = "failed"   // accepted and then refused while it was written
)

// Origin is the way in which a user got a coupon.
type Origin string

// The origins. Staff decide grants and campaigns: for these neither the window nor the
// way of obtaining is judged. Stock, limit and pause are judged for every origin. Coupons of a drop
// with a draw have the origin ByDraw, or ByWaitlist.
const (
	ByTap      Origin = "claim"
	ByCode     Origin = "code"
	ByGrant    Origin = "grant"
	ByCampaign Origin = "campaign"
	// ByWaitlist is a coupon of stock that was kept for users who wait.
	ByWaitlist Origin = "waitlist"
	// ByDraw is a coupon that its user won in a draw.
	ByDraw Origin = "draw"
)

// Windowed reports whether claims of this origin must fall between opening
// and closing.
func (o Origin) Windowed() bool { return o == ByTap || o == ByCode || o == ByWaitlist }

// A Request is a request for one coupon.
type Request struct {
	ID         ID
	TemplateID int64
	UserID     user.ID
	Origin     Origin
	// Key makes the request repeatable: at most one coupon is ever issued per
	// (Origin, Key), and a repetition is answered with that coupon. Empty = no key.
	Key string
	// Door is the place of the door that the user comes through, from 1; 0 = the drop has no doors, or
	// the origin is not judged by doors. See [Doors].
	Door int
	// AcceptedAt is when another gate accepted the request, which now only has to
	// be written. The durable gate then checks stock and limit alone and recognises
	// a repetition by ID. Zero = the request is to be judged now.
	AcceptedAt time.Time
	// Household is the number of the user's household, for a gate that was told of it; 0 = none, or not told.
	Household int64
	// Pass is the text of the user's pass for a protected drop, checked by the [Prefilter].
	Pass string
}

// CampaignKey returns the key of the coupon that a campaign gives to the user.
func CampaignKey(campaignID int64, to user.ID) string { return fmt.Sprintf("%d:%d", campaignID, to) }

// Campaign returns the campaign that gives the coupon; 0 = no campaign.
func (r Request) Campaign() int64 {
	if r.Origin != ByCampaign {
		return 0
	}
	id, _, _ := strings.Cut(r.Key, ":")
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

// OverLimit begins the keys of grants that the limit per user does not refuse: staff have
// chosen that for one user. The key carries it, so that the choice reaches every gate and
// its writer with the request. Such a coupon counts for its user like any other.
const OverLimit = "over:"

func (r Request) passesLimit() bool {
	return r.Origin == ByGrant && strings.HasPrefix(r.Key, OverLimit)
}

// MaxKey bounds the length of a request's key in bytes.
const MaxKey = 200

// TapKey returns the key of a user's tap with this idempotency key.
func TapKey(by user.ID, idempotencyKey string) string {
	h := sha256.Sum256([]byte(idempotencyKey))
	return by.String() + ":" + base64.RawURLEncoding.EncodeToString(h[:])
}

// BudgetUsed is the reason of a claim that a gate accepted and that was refused when it was written,
// because the campaign's budget paid for no further coupon.
const BudgetUsed = "campaign_budget"

// A Claim is the result of a request.
type Claim struct {
	ID         ID
	TemplateID int64
	UserID     user.ID
	State      State
	CouponID   int64     // 0 until issued
	Reason     string    // code of the fault if failed
	At         time.Time // of the decision, by the clock of the store that decided
}

// Refusal returns the fault that a failed claim came to, nil for others.
func (c Claim) Refusal() error {
	if c.State != Failed {
		return nil
	}
	if c.Reason == BudgetUsed {
		return ErrBudget
	}
	for _, f := range []*fault.Fault{ErrSoldOut, ErrLimit, ErrHousehold, ErrIdempotency, ErrEnded, template.ErrNotFound, template.ErrNotOpen} {
		if f.Code == c.Reason {
			return f
		}
	}
	return fault.New(fault.Conflict, c.Reason, "the claim was accepted and refused when it was written; use a new key to try again")
}

// Faults of this package. A gate also answers [template.ErrNotFound] and
// [template.ErrNotOpen].
var (
	ErrNotFound   = fault.New(fault.NotFound, "claim_not_found", "there is no such claim; check its id and the user")
	ErrNotStarted = fault.New(fault.Conflict, "not_started", "this drop has not opened yet; claim at opens_at")
	ErrEnded      = fault.New(fault.Conflict, "ended", "this drop has ended; its coupons can no longer be claimed")
	ErrSoldOut    = fault.New(fault.Conflict, "sold_out", "all coupons are gone; more appear only if staff raise the stock or return coupons to it")
	// ErrBudget is an [ErrSoldOut]: the budget of the campaign pays for no further coupon.
	// A gate that had accepted the claim gives BudgetUsed as the reason of the failed claim.
	ErrBudget      = fault.Distinct(ErrSoldOut.Because("the campaign's budget is used up; raise it to give further coupons"))
	ErrLimit       = fault.New(fault.Conflict, "limit_reached", "you have as many of these coupons as one person may have; GET /coupons lists them")
	ErrHousehold   = fault.New(fault.Conflict, "household_limit", "your household has as many of these coupons as one household may have; GET /templates/{id} has the limit")
	ErrOverloaded  = fault.New(fault.Unavailable, "overloaded", "claims cannot be decided right now; try again")
	ErrIdempotency = fault.New(fault.Invalid, "idempotency_conflict", "this key was used for another claim; use a new key for a new claim")
)
