package review

import (
	"slices"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// State is how far the decision about a group is.
type State string

// The states. A worker carries out what is suspending, returning or restoring. Let be, returned and
// restored are ends.
const (
	Open       State = "open"
	Proposed   State = "proposed" // one member has decided, a second one must approve
	Suspending State = "suspending"
	Suspended  State = "suspended"
	Returning  State = "returning"
	Returned   State = "returned"
	Restoring  State = "restoring"
	Restored   State = "restored"
	LetBe      State = "let_be"
)

// States returns all states in the order of pages.
func States() []State {
	return []State{Open, Proposed, Suspending, Suspended, Returning, Returned, Restoring, Restored, LetBe}
}

// Step is a decision of staff about a group.
type Step string

// The decisions. [Approve] and [Decline] answer a proposal.
const (
	Suspend Step = "suspend"
	Return  Step = "return"
	Restore Step = "restore"
	Leave   Step = "let_be"
	Approve Step = "approve"
	Decline Step = "decline"
)

// Steps returns all decisions.
func Steps() []Step { return []Step{Suspend, Return, Restore, Leave, Approve, Decline} }

const (
	// Alone is up to how many coupons one member may decide to suspend or to return alone.
	Alone = 100
	// UndoFor is how long a suspension can be undone for the whole group. Afterwards appeals are
	// decided one by one.
	UndoFor = 24 * time.Hour
	// KeepSigns is how long signs of claims are kept. A drop that ended earlier is not reviewed.
	KeepSigns = 30 * 24 * time.Hour
	// MaxClaims is how many claims of a drop one review judges, the first ones.
	MaxClaims = 2_000_000
	// OpenedLong is for how long a page must have been open before the pass was earned, so that it
	// counts as opened: a script asks for a puzzle and solves it at once.
	OpenedLong = 10 * time.Second
	// MaxAppeal bounds an appeal, in characters.
	MaxAppeal = 1000
)

// Faults of this room.
var (
	ErrNotFound = fault.New(fault.NotFound, "review_not_found", "there is no such group of claims; a new review may have replaced it")
	ErrState    = fault.New(fault.Conflict, "review_decided", "the state of the group does not allow this; load it again")
	ErrAppeals  = fault.New(fault.Conflict, "review_has_appeals", "appeals wait for an answer; decide these first")
	ErrSecond   = fault.New(fault.Conflict, "review_needs_second", "another member must approve this; ask a colleague, or use another key")
	ErrLate     = fault.New(fault.Conflict, "review_too_late", "a suspension can be undone within 24 hours; decide the appeals one by one")
	// ErrNotSuspended is the refusal of an appeal about a coupon that is not suspended.
	ErrNotSuspended = fault.New(fault.Conflict, "coupon_not_suspended", "the coupon is not under review; load it again")
	ErrAppealed     = fault.New(fault.Conflict, "already_appealed", "the appeal was received before; a person decides")
	ErrNoAppeal     = fault.New(fault.Conflict, "appeal_answered", "no appeal about this coupon waits for an answer; load the group again")
)

// A Review is a group of claims as staff see it.
type Review struct {
	ID         int64
	TemplateID int64
	ShopNumber int64
	// DropName and Timezone are those of the drop.
	DropName string
	Timezone string
	Rules    []Rule
	Facts    Facts
	Coupons  int64
	State    State
	// Proposed is the decision that waits for a second member, and Proposer who made it.
	Proposed Step
	Proposer string
	// Coupons by what happened to them. Kept were used, locked or expired before.
	Suspended, Returned, Restored, Kept int64
	// Appeals is how many appeals wait for an answer.
	Appeals     int64
	Reason      string
	Actor       string
	SuspendedAt *time.Time
	ChangedAt   time.Time
	CreatedAt   time.Time
}

// Zone returns the shop's time zone, UTC when unknown.
func (r Review) Zone() *time.Location {
	if loc, err := time.LoadLocation(r.Timezone); err == nil {
		return loc
	}
	return time.UTC
}

// UndoUntil returns the end of the time in which the suspension can be undone; false without one.
func (r Review) UndoUntil() (time.Time, bool) {
	if r.SuspendedAt == nil || r.State != Suspended && r.State != Suspending {
		return time.Time{}, false
	}
	return r.SuspendedAt.Add(UndoFor), true
}

// Decide returns the group after the decision of the actor at now. It returns [ErrState], [ErrLate],
// [ErrAppeals] for a return while appeals wait, or [ErrSecond] if the proposer answers the own proposal. A suspension or return of more than
// [Alone] coupons becomes a proposal.
func (r Review) Decide(by string, s Step, now time.Time) (Review, error) {
	next, ok := r, false
	next.Proposed, next.Proposer = "", ""
	switch s {
	case Suspend:
		next.State, ok = Suspending, r.State == Open
	case Return:
		next.State, ok = Returning, r.State == Suspended
		if ok && r.Appeals > 0 {
			return r, ErrAppeals
		}
	case Restore:
		next.State, ok = Restoring, r.State == Suspended
		if until, _ := r.UndoUntil(); ok && !now.Before(until) {
			return r, ErrLate
		}
	case Leave:
		next.State, ok = LetBe, r.State == Open
	case Approve:
		if ok = r.State == Proposed; ok && label(r.Proposer) == label(by) {
			return r, ErrSecond
		}
		next.State = map[Step]State{Suspend: Suspending, Return: Returning}[r.Proposed]
	case Decline:
		next.State, ok = map[Step]State{Suspend: Open, Return: Suspended}[r.Proposed], r.State == Proposed
	}
	if !ok {
		return r, ErrState
	}
	if r.Coupons > Alone && (s == Suspend || s == Return) {
		next.State, next.Proposed, next.Proposer = Proposed, s, by
	}
	if next.State == Suspending {
		next.SuspendedAt = &now
	}
	next.Actor, next.ChangedAt = by, now
	return next, nil
}

// label returns the part of an actor that never changes, such as staff:1.
func label(actor string) string {
	of, _, _ := strings.Cut(actor, " ")
	return of
}

// May returns the decisions that the actor can make now.
func (r Review) May(by string, now time.Time) (list []Step) {
	for _, s := range Steps() {
		if _, err := r.Decide(by, s, now); err == nil {
			list = append(list, s)
		}
	}
	return list
}

// Done returns the state that follows once no coupon is left to do.
func (s State) Done() State {
	return map[State]State{Suspending: Suspended, Returning: Returned, Restoring: Restored}[s]
}

// Working reports whether a worker has something to do.
func (s State) Working() bool { return s.Done() != "" }

// A Run is the review of one drop.
type Run struct {
	TemplateID int64
	DropName   string
	ShopNumber int64
	Timezone   string
	// Claims were judged, Found of these are in groups, and LeftOut were beyond [MaxClaims].
	Claims, Found, LeftOut int64
	RanAt                  time.Time
	// Wanted says that staff asked for another run.
	Wanted bool
}

// Zone returns the shop's time zone, UTC when unknown.
func (r Run) Zone() *time.Location { return Review{Timezone: r.Timezone}.Zone() }

// A Member is one coupon of a group.
type Member struct {
	CouponID   int64
	UserID     int64
	State      string // found, suspended, kept, returned, restored
	Appeal     string
	AppealedAt *time.Time
	Answer     string // "", restored, upheld
	AnsweredAt *time.Time
}

// Accuracy is how right a rule has been: of the coupons that were suspended in groups of the rule,
// how many were restored.
type Accuracy struct {
	Rule      Rule
	Groups    int64
	Suspended int64 // ever
	Restored  int64
}

// Share returns the restored share, between 0 and 1.
func (a Accuracy) Share() float64 {
	if a.Suspended == 0 {
		return 0
	}
	return float64(a.Restored) / float64(a.Suspended)
}

// Counts are the public figures of a protected drop.
type Counts struct {
	// Entries are the entries of a draw; of another drop the claims that got a coupon. Refused are the claims that did
	// not, among them WithoutPass for want of a pass; they are counted for drops that are protected or have doors.
	Entries, Refused, WithoutPass int64
	// Filled are the users of the waitlist who got a coupon.
	Filled int64
	// Suspended, TakenBack and Restored are coupons: under review now, revoked after a review, and
	// given back to their owners.
	Suspended, TakenBack, Restored int64
	// ReviewedAt is when the claims were last reviewed; nil = not yet.
	ReviewedAt *time.Time
}

// A Standing is what the owner of a coupon reads about its review.
type Standing struct {
	CouponID int64
	// State is suspended, returned (it was taken back) or restored.
	State      string
	Rules      []Rule
	Facts      Facts
	Since      *time.Time
	Appeal     string
	AppealedAt *time.Time
	Answer     string
	AnsweredAt *time.Time
}

// A Query selects groups, those that changed last first.
type Query struct {
	TemplateID int64 // 0 = any
	Shops      []int64
	// Asking selects groups that wait for a decision or have appeals.
	Asking bool
	// ChangedAt and BeforeID are the last row of the page before.
	ChangedAt time.Time
	BeforeID  int64
	Limit     int
}

// CheckReason returns a [fault.Fields] unless staff said why.
func CheckReason(reason string) error {
	e := &fault.Fields{}
	if n := len([]rune(reason)); n < 1 || n > 500 {
		e.Add("reason", "rule.reason", "say why, in at most 500 characters")
	}
	return e.Err()
}

// needs are the permissions of decisions: a suspension takes something away from users.
func needs(Step) staff.Permission { return staff.ManageUsers }

// Sentence returns what the owner of a coupon of the group reads, in English and in Chinese. It
// names no network, no agent and no other user.
func Sentence(rules []Rule, f Facts) map[string]string {
	shares := slices.ContainsFunc(rules, func(r Rule) bool { return r == SharedPush || r == SharedPhone || r == SharedHousehold })
	if shares {
		return map[string]string{
			"en":    "Your coupon is being checked: many accounts that share a phone or a household with yours claimed in this drop. If that is a mistake, write to us; a person decides.",
			"zh-CN": "您的优惠券正在核查：与您的账号共用手机或家庭的多个账号领取了本次抢券的优惠券。如有误判，请提出申诉，由人工决定。"}
	}
	return map[string]string{
		"en":    "Your coupon is being checked: it was claimed together with many others, faster than people can press a button. If that is a mistake, write to us; a person decides.",
		"zh-CN": "您的优惠券正在核查：它与许多其他领取同时发生，快于人工点击。如有误判，请提出申诉，由人工决定。"}
}
