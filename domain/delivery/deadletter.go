package delivery

import (
	"context"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// ErrNoDeadLetterJob is returned when there is no such replay or discard.
var ErrNoDeadLetterJob = fault.New(fault.NotFound, "dead_letter_job_not_found", "there is no such replay or discard; load the list again")

// A DeadLetter is a delivery that used up its attempts or was refused for good.
type DeadLetter struct {
	BatchID        int64
	Kind           Kind
	OwnerID        int64  // the campaign of [KindCampaign]
	OwnerName      string // its name
	UserID         user.ID
	Channel        Channel
	TemplateID     int64
	TemplateName   string
	Reason         string
	Detail         string
	Fingerprint    string
	Attempts       int
	FirstAt        time.Time
	LastAt         time.Time
	WorthlessAfter time.Time
	Provider       string // that answered last, by name; empty = the environment's
}

// A DeadLetterGroup counts the dead letters with one kind of error on one channel.
type DeadLetterGroup struct {
	Channel     Channel
	Fingerprint string
	Dead        int64
	FirstAt     time.Time
	LastAt      time.Time
	Sample      string
}

// A DeadLetterFilter selects dead letters; zero fields select everything.
type DeadLetterFilter struct {
	Channel     *Channel `json:"channel,omitempty"`
	Fingerprint *string  `json:"fingerprint,omitempty"`
	TemplateID  int64    `json:"template_id,omitempty"`
	CampaignID  int64    `json:"campaign_id,omitempty"`
	BatchID     int64    `json:"batch_id,omitempty"`
	UserID      user.ID  `json:"user_id,omitempty"`
	// Shops limits the filter to shops that the actor may see; empty = all.
	Shops []int64 `json:"shops,omitempty"`
}

// Triage counts the dead letters of a filter by the effect that a replay would have, or had, on
// them.
type Triage struct {
	Total       int64 // dead letters the filter selects
	InTime      int64 // would be tried again
	TooLate     int64 // their deadline has passed, or their message is no longer true; they stay dead
	AlreadySent int64 // another attempt got through; never sent again
	// ByRate counts the dead letters among TooLate that would be in time without a rate: at the
	// rate, their turn comes after their deadline.
	ByRate int64
}

// Plus returns what a replay would do with the dead letters of both, which are of different databases.
func (t Triage) Plus(o Triage) Triage {
	return Triage{t.Total + o.Total, t.InTime + o.InTime, t.TooLate + o.TooLate, t.AlreadySent + o.AlreadySent, t.ByRate + o.ByRate}
}

// Takes returns how long it takes to release all InTime dead letters at rate per second; 0 if
// there is no rate.
func (t Triage) Takes(rate int) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(t.InTime) / float64(rate) * float64(time.Second))
}

// DeadLetterAction is an action on dead letters.
type DeadLetterAction string

// The actions.
const (
	Replay  DeadLetterAction = "replay"
	Discard DeadLetterAction = "discard"
)

// A DeadLetterJob is a replay or discard working through its filter.
type DeadLetterJob struct {
	ID         int64
	Action     DeadLetterAction
	Filter     DeadLetterFilter
	Rate       int // recipients per second, 0 = as fast as the channel allows
	State      string
	Total      int64 // when it began
	Done       int64 // tried again, or discarded
	Late       int64
	Sent       int64 // had been sent by another attempt
	CreatedBy  string
	CreatedAt  time.Time
	FinishedAt *time.Time
}

// DeadLetterStore keeps dead letters and the jobs on them.
type DeadLetterStore interface {
	DeadLetterGroups(ctx context.Context, f DeadLetterFilter) ([]DeadLetterGroup, error)
	// DeadLetters lists dead letters by batch and user, beginning after the cursor.
	DeadLetters(ctx context.Context, f DeadLetterFilter, afterBatch int64, afterUser user.ID, limit int) ([]DeadLetter, error)
	// Triage counts the effects of a replay at rate recipients per second; 0 = at once.
	Triage(ctx context.Context, f DeadLetterFilter, rate int) (Triage, error)
	// StartDeadLetterJob stores a job. If a job with the same request key exists, that job is
	// returned instead; an empty key is never the same.
	StartDeadLetterJob(ctx context.Context, j DeadLetterJob, requestKey string, e staff.Entry) (DeadLetterJob, error)
	// DeadLetterJobs lists jobs whose filter is limited to the shops (empty = all jobs), newest
	// first.
	DeadLetterJobs(ctx context.Context, shops []int64, limit int) ([]DeadLetterJob, error)
	// CancelDeadLetterJob returns [ErrNoDeadLetterJob] for a job that does not run, or whose
	// filter is not limited to the shops.
	CancelDeadLetterJob(ctx context.Context, id int64, shops []int64, e staff.Entry) error
	// StepDeadLetterJob processes one batch of the oldest unleased job, or the part of it that
	// the job's rate allows. It reports whether there was anything to do.
	StepDeadLetterJob(ctx context.Context) (bool, error)
}

// DeadLetters holds the use cases of operators around dead letters.
type DeadLetters struct{ Store DeadLetterStore }

// Groups returns the dead letters by channel and kind of error, most first.
func (s *DeadLetters) Groups(ctx context.Context, by staff.Actor, f DeadLetterFilter) ([]DeadLetterGroup, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	f.Shops = by.Shops
	return s.Store.DeadLetterGroups(ctx, f)
}

// List returns single dead letters, beginning after the cursor.
func (s *DeadLetters) List(ctx context.Context, by staff.Actor, f DeadLetterFilter, afterBatch int64, afterUser user.ID, limit int) ([]DeadLetter, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	f.Shops = by.Shops
	return s.Store.DeadLetters(ctx, f, afterBatch, afterUser, limit)
}

// DryRun counts what a replay at rate recipients per second (0 = as fast as the channel allows)
// would do. It changes nothing.
func (s *DeadLetters) DryRun(ctx context.Context, by staff.Actor, f DeadLetterFilter, rate int) (Triage, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Triage{}, err
	}
	f.Shops = by.Shops
	return s.Store.Triage(ctx, f, min(max(0, rate), MaxRate))
}

// A DeadLetterOrder is the request for a replay or discard.
type DeadLetterOrder struct {
	Action DeadLetterAction
	Filter DeadLetterFilter
	// Rate is how many recipients per second are released; 0 = as fast as the channel allows.
	// Recipients whose turn would come after the deadline stay dead.
	Rate int
	// Reason says why, for the audit log; it may be empty.
	Reason string
	// RequestKey identifies the request: a second order with the same key is the same request.
	// Empty = always a new request.
	RequestKey string
}

// Start begins a replay or discard in the background. A replay does not send to users whom
// another attempt has reached. It sends nothing after the deadline, and no message about an
// opening that was moved or cancelled since.
func (s *DeadLetters) Start(ctx context.Context, by staff.Actor, o DeadLetterOrder) (DeadLetterJob, error) {
	if err := by.May(staff.Operate, 0); err != nil {
		return DeadLetterJob{}, err
	}
	if err := o.check(); err != nil {
		return DeadLetterJob{}, err
	}
	o.Filter.Shops = by.Shops
	t, err := s.Store.Triage(ctx, o.Filter, o.Rate)
	if err != nil {
		return DeadLetterJob{}, err
	}
	j := DeadLetterJob{Action: o.Action, Filter: o.Filter, Rate: o.Rate, Total: t.Total, CreatedBy: by.Label + " " + by.Name}
	return s.Store.StartDeadLetterJob(ctx, j, o.RequestKey, staff.Entry{Actor: by, Action: "dead_letters." + string(o.Action),
		ObjectKind: "dead_letters", Reason: o.Reason, After: j})
}

func (o DeadLetterOrder) check() error {
	e := &fault.Fields{}
	if o.Action != Replay && o.Action != Discard {
		e.Add("action", "rule.dead_letter_action", "must be replay or discard")
	}
	checkRate(e, o.Rate)
	return e.Err()
}

// MaxRate bounds what a rate can be set to, in messages per second.
const MaxRate = 1_000_000

// CheckRate returns a [fault.Fields] if rate is invalid; 0 = as fast as the channel allows.
func CheckRate(rate int) error {
	e := &fault.Fields{}
	checkRate(e, rate)
	return e.Err()
}

func checkRate(e *fault.Fields, rate int) {
	if rate < 0 || rate > MaxRate {
		e.Add("rate_per_second", "rule.rate", "must be between 0 and %d", MaxRate)
	}
}

// Jobs lists recent replays and discards, newest first. Staff who are limited to shops see only
// the jobs that concern no other shops.
func (s *DeadLetters) Jobs(ctx context.Context, by staff.Actor, limit int) ([]DeadLetterJob, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Store.DeadLetterJobs(ctx, by.Shops, limit)
}

// Cancel stops a running job; its completed work is kept. It returns [ErrNoDeadLetterJob] if no
// such job is running in the actor's shops.
func (s *DeadLetters) Cancel(ctx context.Context, by staff.Actor, id int64) error {
	if err := by.May(staff.Operate, 0); err != nil {
		return err
	}
	return s.Store.CancelDeadLetterJob(ctx, id, by.Shops, staff.Entry{Actor: by, Action: "dead_letters.cancel",
		ObjectKind: "dead_letters", ObjectID: strconv.FormatInt(id, 10)})
}

// Step processes running jobs, batch by batch, until there is nothing to do or ctx ends. Any
// number of workers may call it at the same time.
func (s *DeadLetters) Step(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := s.Store.StepDeadLetterJob(ctx)
		if err != nil || !more {
			return err
		}
	}
	return ctx.Err()
}
