package reminder

import (
	"context"
	"errors"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// StepKind is the kind of a past or future event.
type StepKind string

// The kinds of steps in the order in which they usually come.
const (
	StepReserved  StepKind = "reserved"
	StepChanged   StepKind = "changed"
	StepWithdrawn StepKind = "withdrawn" // the user cancelled all that was left, the last time
	StepPublished StepKind = "published"
	StepMoved     StepKind = "opening_moved"
	StepPaused    StepKind = "paused"
	StepResumed   StepKind = "resumed"
	StepClosed    StepKind = "closed"
	StepCancelled StepKind = "cancelled"
	StepFired     StepKind = "fired"
	StepTried     StepKind = "tried"     // failed attempts, the last of them
	StepOutcome   StepKind = "outcome"   // sent, skipped, expired, dead, …
	StepAnnounced StepKind = "announced" // anything but a reminder was sent off
	StepClaimed   StepKind = "claimed"   // got a coupon; Reason says how
	StepExpected  StepKind = "expected"
	// The opening of the door through which the user comes, with its name as Reason; of a user who comes through none
	// the first opening.
	StepDoor   StepKind = "door"
	StepNoDoor StepKind = "no_door"
	// StepHousehold is the last coupon of other users of the household, in a drop with a limit for households. Reason
	// has their number and the limit, such as 2/2.
	StepHousehold StepKind = "household"
	// Steps of a waitlist. A user who got its coupon has a [StepClaimed]. Reason of StepWaiting is roughly how
	// many users are before one who still waits, such as under_100.
	StepWaiting      StepKind = "waiting"
	StepOffered      StepKind = "offered"
	StepLapsed       StepKind = "lapsed" // the offer was not accepted in time
	StepLeftWaitlist StepKind = "left_waitlist"
	StepSkipped      StepKind = "waitlist_skipped" // it was the user's turn; Reason says why there was no coupon
	// Steps of the user's entry in a draw. Detail has the public reason of a struck entry, or score and
	// cutoff; Reason of StepDrawn is won or lost.
	// Reason of StepEntered is the door through which the user entered, if the drop has doors, and Detail the weight.
	StepEntered      StepKind = "entered"
	StepStruck       StepKind = "struck"
	StepDrawn        StepKind = "drawn"
	StepDrawOffered  StepKind = "draw_offered" // Planned is when the offer ends
	StepDrawAccepted StepKind = "draw_accepted"
	StepDrawLapsed   StepKind = "draw_lapsed"
	StepDrawRefused  StepKind = "draw_refused" // a winner; Reason says why there was no coupon
	// Changes of a coupon.
	StepCouponLocked   StepKind = "coupon_locked"
	StepCouponUsed     StepKind = "coupon_used"
	StepCouponReleased StepKind = "coupon_released"
	StepCouponTimedOut StepKind = "coupon_timed_out" // its lock expired
	StepCouponRefunded StepKind = "coupon_refunded"
	StepCouponExpired  StepKind = "coupon_expired"
	StepCouponRevoked  StepKind = "coupon_revoked"
	// The coupon was put under review, its owner appealed, and the review ended in the owner's favour.
	StepCouponSuspended StepKind = "suspended"
	StepCouponAppealed  StepKind = "appealed"
	StepCouponRestored  StepKind = "restored"
)

// A Step is one line of a timeline.
type Step struct {
	At   time.Time
	Kind StepKind
	// Planned is when it should have happened, if that was planned.
	Planned *time.Time
	// Reminder is the reminder that the step is about; nil = none. For an announcement or notice
	// it has the channel and slot 0. It is nil for a notice that was not sent off, because its
	// channel is not known yet.
	Reminder *Reminder
	// Message is the kind of message that the step is about, if it is about a message.
	Message delivery.Kind
	BatchID int64
	// CouponID is which coupon the step is about, if it is about one.
	CouponID int64
	// OrderID is for which order the coupon was locked, used or given back.
	OrderID string
	Outcome delivery.Outcome
	Reason  string
	// Detail is the provider's last answer.
	Detail   string
	Provider string // that answered, by name; empty = the environment's
	Attempts int
	// Reported is the status that the provider reported for a sent message later; empty = no
	// report. The cause in the report is in Detail.
	Reported feedback.Status
	// From and To are the openings before and after a move.
	From, To *time.Time
	By       string // the actor, if there is one
}

// Timeline is everything known about one user and one template.
type Timeline struct {
	View
	Steps []Step
	// RowsRemovedAt is when the template's reservations and outcomes were removed after their
	// retention, so that the steps that they told are missing; nil = they are there.
	RowsRemovedAt *time.Time
}

// ErrRowsRemoved is returned if nothing is known about the user because the rows of the drop were
// removed after their retention.
var ErrRowsRemoved = fault.New(fault.NotFound, "rows_removed", "the reservations and outcomes of this drop were removed after their retention; its figures are in its report")

// A TemplateStep is a change of a template, read from the audit log.
type TemplateStep struct {
	At       time.Time
	Kind     StepKind
	By       string
	From, To *time.Time
}

// ExplainStore reads the events that explain an outcome.
type ExplainStore interface {
	Reservation(ctx context.Context, templateID int64, by user.ID) (Reservation, error)
	Delivered(ctx context.Context, by user.ID, templateIDs []int64) ([]Delivered, error)
	// Announced returns the outcomes of the user's corrections, cancellations and notices.
	Announced(ctx context.Context, by user.ID, templateIDs []int64) ([]Delivered, error)
	TemplateSteps(ctx context.Context, templateID int64) ([]TemplateStep, error)
	// Planned returns the planned instants of slots that were due before they were created,
	// because the opening was moved so near. The keys are slot ids.
	Planned(ctx context.Context, templateID int64) (map[int64]time.Time, error)
	// Withdrawn returns when the user last cancelled all remaining reminders of a reservation;
	// zero if never.
	Withdrawn(ctx context.Context, templateID int64, by user.ID) (time.Time, error)
	// RowsRemoved returns when the template's reservations and outcomes were removed after their
	// retention; nil if they were not.
	RowsRemoved(ctx context.Context, templateID int64) (*time.Time, error)
}

// CouponHistory reads the history of coupons.
type CouponHistory interface {
	// Timeline returns the events of the user's coupons of the template, and the expiry notices
	// that have not been sent off yet.
	Timeline(ctx context.Context, by user.ID, templateID int64) ([]Step, error)
}

// Explainer answers "why was this user reminded, or not".
type Explainer struct {
	Store   ExplainStore
	Coupons CouponHistory
	// Draws reads the history of entries in draws in the same way; nil = there are no draws.
	Draws CouponHistory
	// Doors tells through which door users come; nil = there are no doors.
	Doors     DoorJudge
	Reminders *Service
}

// A DoorJudge finds doors of users.
type DoorJudge interface {
	// Judge returns the place of the door of the template through which the user comes, from 1; 0 = none.
	Judge(ctx context.Context, templateID int64, by user.ID) (int, error)
	// Places is Judge for many users, given in ascending order of their ids.
	Places(ctx context.Context, templateID int64, users []user.ID) ([]uint8, error)
}

// doorStep returns the place of the user's door and its step; none for a drop without doors.
func (x *Explainer) doorStep(ctx context.Context, t template.Template, by user.ID) (place int, steps []Step, err error) {
	if x.Doors == nil || len(t.Doors) == 0 {
		return 0, nil, nil
	}
	place, err = x.Doors.Judge(ctx, t.ID, by)
	if err != nil || place == 0 {
		return 0, []Step{{At: t.FirstOpening(), Kind: StepNoDoor}}, err
	}
	if t.OpeningMode.Drawn() {
		return place, nil, nil // StepEntered names the door
	}
	return place, []Step{{At: t.OpensFor(place), Kind: StepDoor, Reason: t.Doors[place-1].Name}}, nil
}

// Explain returns the timeline of a user and a template. A user who has cancelled all reminders,
// or has a coupon, has a timeline too. Explain returns [ErrNotReserved], [ErrRowsRemoved] or
// [template.ErrNotFound]. Steps name the staff who changed the template, so the timeline is for
// staff only.
func (x *Explainer) Explain(ctx context.Context, by user.ID, templateID int64) (Timeline, error) {
	t, err := x.Reminders.Templates.Template(ctx, templateID)
	if err != nil {
		return Timeline{}, err
	}
	done, err := x.delivered(ctx, by, templateID)
	if err != nil {
		return Timeline{}, err
	}
	planned, err := x.Store.Planned(ctx, templateID)
	if err != nil {
		return Timeline{}, err
	}
	coupons, err := x.Coupons.Timeline(ctx, by, templateID)
	if err != nil {
		return Timeline{}, err
	}
	own := coupons
	if x.Draws != nil {
		entry, err := x.Draws.Timeline(ctx, by, templateID)
		if err != nil {
			return Timeline{}, err
		}
		own = append(own, entry...)
	}
	place, door, err := x.doorStep(ctx, t, by)
	if err != nil {
		return Timeline{}, err
	}
	own = append(own, door...)
	withdrawn, err := x.Store.Withdrawn(ctx, templateID, by)
	if err != nil {
		return Timeline{}, err
	}
	if !withdrawn.IsZero() {
		own = append(own, Step{At: withdrawn, Kind: StepWithdrawn})
	}
	removed, err := x.Store.RowsRemoved(ctx, templateID)
	if err != nil {
		return Timeline{}, err
	}
	r, err := x.Store.Reservation(ctx, templateID, by)
	switch none := errors.Is(err, ErrNotReserved); {
	case none && len(done)+len(own) > 0:
		r, err = Reservation{TemplateID: templateID, UserID: by}, nil
	case none && removed != nil:
		err = ErrRowsRemoved
	}
	if err != nil {
		return Timeline{}, err
	}
	changes, err := x.Store.TemplateSteps(ctx, templateID)
	if err != nil {
		return Timeline{}, err
	}
	view := compose(x.Reminders.Now(), t, place, r, done)
	return Timeline{View: view, Steps: explain(view, t, done, planned, changes, own), RowsRemovedAt: removed}, nil
}

func (x *Explainer) delivered(ctx context.Context, by user.ID, templateID int64) ([]Delivered, error) {
	reminded, err := x.Store.Delivered(ctx, by, []int64{templateID})
	if err != nil {
		return nil, err
	}
	announced, err := x.Store.Announced(ctx, by, []int64{templateID})
	return append(reminded, announced...), err
}

// explain sorts the steps by time; future steps come last.
func explain(v View, t template.Template, done []Delivered, planned map[int64]time.Time, changes []TemplateStep, own []Step) []Step {
	steps := slices.Clone(own)
	if !v.CreatedAt.IsZero() {
		steps = append(steps, Step{At: v.CreatedAt, Kind: StepReserved})
	}
	if v.UpdatedAt.After(v.CreatedAt) {
		steps = append(steps, Step{At: v.UpdatedAt, Kind: StepChanged})
	}
	for _, c := range changes {
		if c.At.After(v.CreatedAt) {
			steps = append(steps, Step{At: c.At, Kind: c.Kind, By: c.By, From: c.From, To: c.To})
		}
	}
	for _, d := range done {
		steps = append(steps, outcomeSteps(d, planned)...)
	}
	for _, it := range v.Items {
		if it.State == string(Waiting) {
			rem, due := it.Reminder, it.DueAt
			steps = append(steps, Step{At: due, Kind: StepExpected, Planned: &due, Reminder: &rem, Message: delivery.KindReminder})
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return a.At.Compare(b.At) })
	return steps
}

// outcomeSteps returns the steps of one delivery: when it was fired, failed
// attempts, and its outcome. A delivery that waits for a retry has no outcome
// yet.
func outcomeSteps(d Delivered, planned map[int64]time.Time) []Step {
	about := Step{At: d.At, Reminder: &Reminder{d.Channel, d.Slot}, Message: d.Kind, BatchID: d.BatchID}
	if d.Kind == delivery.KindReminder || d.Kind == delivery.KindNotice {
		at := d.DueAt
		if later, ok := planned[d.SlotID]; ok && d.Kind == delivery.KindReminder {
			at = later
		}
		about.Planned = &at
	}
	fired := about
	fired.At, fired.Kind = d.FiredAt, StepFired
	if d.Kind != delivery.KindReminder {
		fired.Kind = StepAnnounced
	}
	steps := []Step{fired}
	if d.Attempts > 0 || d.Reason == delivery.ReasonThrottled {
		tried := about
		tried.Kind, tried.Attempts, tried.Reason, tried.Detail, tried.Provider, tried.Planned = StepTried, d.Attempts, d.Reason, d.Detail, d.Provider, nil
		steps = append(steps, tried)
	}
	if !d.Outcome.Final() {
		return steps
	}
	last := about
	last.Kind, last.Outcome, last.Provider = StepOutcome, d.Outcome, d.Provider
	if d.Outcome != delivery.Recovered && d.Outcome != delivery.Sent {
		last.Reason = d.Reason
		if d.Outcome != delivery.Skipped { // for which no provider was called
			last.Detail = d.Detail
		}
	}
	if d.Outcome == delivery.Recovered && d.Attempts == 0 && d.Reason == delivery.ReasonQuietHours { // nothing had failed
		last.Outcome, last.Reason = delivery.Sent, d.Reason
	}
	if last.Outcome == delivery.Sent || last.Outcome == delivery.Recovered {
		if last.Reported = d.Reported.Status; d.Reported.Cause != "" {
			last.Detail = d.Reported.Cause
		}
	}
	return append(steps, last)
}
