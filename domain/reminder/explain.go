package reminder

import (
	"context"
	"errors"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// StepKind says what happened, or will.
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
	// Changes of a coupon.
	StepCouponLocked   StepKind = "coupon_locked"
	StepCouponUsed     StepKind = "coupon_used"
	StepCouponReleased StepKind = "coupon_released"
	StepCouponTimedOut StepKind = "coupon_timed_out" // its lock expired
	StepCouponRefunded StepKind = "coupon_refunded"
	StepCouponExpired  StepKind = "coupon_expired"
	StepCouponRevoked  StepKind = "coupon_revoked"
)

// A Step is one line of a timeline.
type Step struct {
	At   time.Time
	Kind StepKind
	// Planned is when it should have happened, if that was planned.
	Planned *time.Time
	// Reminder is which reminder the step is about, if it is about one. About
	// an announcement or notice it has the channel and slot 0; a notice that was
	// not sent off has no channel yet, so it is nil.
	Reminder *Reminder
	// Message is what kind of message the step is about, if it is about one.
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
	// Reported is what the provider reported of a sent message later, with its cause
	// in Detail; empty = nothing.
	Reported feedback.Status
	// From and To are the openings before and after a move.
	From, To *time.Time
	By       string // the actor, if there is one
}

// Timeline is everything known about one user and one template.
type Timeline struct {
	View
	Steps []Step
}

// Change of a template as the audit log has it.
type TemplateStep struct {
	At       time.Time
	Kind     StepKind
	By       string
	From, To *time.Time
}

// ExplainStore reads what explains an outcome.
type ExplainStore interface {
	Reservation(ctx context.Context, templateID int64, by user.ID) (Reservation, error)
	Delivered(ctx context.Context, by user.ID, templateIDs []int64) ([]Delivered, error)
	// Announced returns what became of corrections, cancellations and notices
	// for the user.
	Announced(ctx context.Context, by user.ID, templateIDs []int64) ([]Delivered, error)
	TemplateSteps(ctx context.Context, templateID int64) ([]TemplateStep, error)
	// Planned returns when slots, by their ids, were planned for that came into
	// being after they were due, because the opening was moved so near.
	Planned(ctx context.Context, templateID int64) (map[int64]time.Time, error)
	// Withdrawn returns when the user last cancelled all that was left of a
	// reservation; zero if never.
	Withdrawn(ctx context.Context, templateID int64, by user.ID) (time.Time, error)
}

// CouponHistory reads what happened to coupons.
type CouponHistory interface {
	// Timeline returns what became of the user's coupons of the template, and
	// the notices before they expire that were not sent off.
	Timeline(ctx context.Context, by user.ID, templateID int64) ([]Step, error)
}

// Explainer answers "why was this user reminded, or not".
type Explainer struct {
	Store     ExplainStore
	Coupons   CouponHistory
	Reminders *Service
}

// Explain returns the timeline of a user and a template, or [ErrNotReserved], or
// [template.ErrNotFound]. A user who has cancelled all reminders, or has a
// coupon, has a timeline too. Steps name the staff who changed the template, so
// the timeline is for staff only.
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
	withdrawn, err := x.Store.Withdrawn(ctx, templateID, by)
	if err != nil {
		return Timeline{}, err
	}
	if !withdrawn.IsZero() {
		own = append(own, Step{At: withdrawn, Kind: StepWithdrawn})
	}
	r, err := x.Store.Reservation(ctx, templateID, by)
	if errors.Is(err, ErrNotReserved) && len(done)+len(own) > 0 {
		r, err = Reservation{TemplateID: templateID, UserID: by}, nil
	}
	if err != nil {
		return Timeline{}, err
	}
	changes, err := x.Store.TemplateSteps(ctx, templateID)
	if err != nil {
		return Timeline{}, err
	}
	view := compose(x.Reminders.Now(), t, r, done)
	return Timeline{view, explain(view, t, done, planned, changes, own)}, nil
}

func (x *Explainer) delivered(ctx context.Context, by user.ID, templateID int64) ([]Delivered, error) {
	reminded, err := x.Store.Delivered(ctx, by, []int64{templateID})
	if err != nil {
		return nil, err
	}
	announced, err := x.Store.Announced(ctx, by, []int64{templateID})
	return append(reminded, announced...), err
}

// explain puts the steps in order of time; future steps stand last.
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
