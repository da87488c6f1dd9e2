// Package rehearsal tries a drop with the real code before its evening: a copy of the drop with a share of
// its users, in a world of its own, opens within minutes. Nothing is sent, and nothing of it counts.
package rehearsal

import (
	"context"
	"strconv"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// State is where a rehearsal is in its life.
type State string

// The states. A rehearsal that is asked for waits for a worker.
const (
	Asked   State = "asked"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed"
)

// Step is what a running rehearsal is doing.
type Step string

// The steps, in their order.
const (
	Preparing Step = "preparing" // the world is made and the share of the users copied
	Waiting   Step = "waiting"   // until the first reminders are due
	Reminding Step = "reminding"
	Rushing   Step = "rushing"
	Counting  Step = "counting"
)

// Steps returns every step in its order.
func Steps() []Step { return []Step{Preparing, Waiting, Reminding, Rushing, Counting} }

// The times of a rehearsal.
const (
	// OpensIn is the time from its preparation to its opening, unless an operator says otherwise. Its slots are a part of it apart: ten seconds instead of
	// [template.SlotStep].
	OpensIn        = 3 * time.Minute
	StepsToOpening = 18
	// Kept is how long its world is kept after its end.
	Kept = 24 * time.Hour
	// RushTakes is how long customers come after the opening.
	RushTakes = 10 * time.Second
	// Quiet is how long before the opening of another drop no rehearsal begins, unless an operator
	// says otherwise, and CalmAfter how long after it.
	Quiet     = time.Hour
	CalmAfter = 10 * time.Minute
)

// Limits of a share.
const (
	// MostUsers is about how many users are copied at most.
	MostUsers = 20_000
	// longestWave is how long the reminders of one slot should take at most, so that they end before those of the next.
	longestWave = 8 * time.Second
)

// Refusals.
var (
	ErrBusy  = fault.New(fault.Conflict, "rehearsal_running", "another rehearsal runs; wait until it has ended")
	ErrState = fault.New(fault.Conflict, "rehearsal_state", "only a drop that is published and has not opened can be rehearsed; publish it first")
	ErrNear  = fault.New(fault.Conflict, "rehearsal_near_opening", "a drop opens soon or has just opened; rehearse afterwards, so that its customers do not wait for the rehearsal")
)

// Progress is how far a running rehearsal has come.
type Progress struct {
	Step Step `json:"step"`
	// Fired of the Slots slots are out. Sent and Due are reminders. Of Comers customers who come, Came have come; Claims are the claims that were answered.
	Fired  int   `json:"fired"`
	Slots  int   `json:"slots"`
	Sent   int64 `json:"sent"`
	Due    int64 `json:"due"`
	Claims int64 `json:"claims"`
	Came   int64 `json:"came"`
	Comers int64 `json:"comers"`
}

// A Report is the result of a rehearsal. Durations are milliseconds.
type Report struct {
	// Users were copied, which are SharePermille thousandths of the Reserved users who reserved reminders.
	Users         int64 `json:"users"`
	Reserved      int64 `json:"reserved,omitempty"`
	SharePermille int64 `json:"share_permille"`
	// Reminders were due; each was sent, skipped, refused by the simulated provider or too late.
	Reminders int64 `json:"reminders"`
	Sent      int64 `json:"sent"`
	Skipped   int64 `json:"skipped"`
	Dead      int64 `json:"dead"`
	Expired   int64 `json:"expired"`
	LateP50   int64 `json:"late_p50"`
	LateP99   int64 `json:"late_p99"`
	// Wave is how long the longest wave of the drop would take with all users, computed from the share;
	// Forecast is the forecast of it, 0 = none.
	Wave     int64 `json:"wave"`
	Forecast int64 `json:"forecast"`
	// Claims customers came, of whom Issued got one of Stock coupons. Failed claims got no answer. Twice customers tapped twice.
	Claims   int64 `json:"claims"`
	Issued   int64 `json:"issued"`
	Failed   int64 `json:"failed"`
	Twice    int64 `json:"twice,omitempty"`
	Stock    int64 `json:"stock"`
	ClaimP50 int64 `json:"claim_p50"`
	ClaimP99 int64 `json:"claim_p99"`
	// Rate is how many customers came in the busiest second. Expected is how many come then with all users, by the forecast: those who reserved,
	// and at least two for each coupon; Rehearsed is Rate with all users.
	Rate      int64 `json:"rate"`
	Expected  int64 `json:"expected,omitempty"`
	Rehearsed int64 `json:"rehearsed,omitempty"`
	// SoldOut is how long after the opening the last coupon was given, 0 = some are left. ExpectedSoldOut is the forecast of it.
	SoldOut         int64 `json:"sold_out,omitempty"`
	ExpectedSoldOut int64 `json:"expected_sold_out,omitempty"`
	// Parts are the gate, doors, protection, draw and waitlist of the drop, and the messages that belong to them.
	Parts []Part `json:"parts,omitempty"`
	// Oversold are coupons beyond the stock, Off the sum of all differences of the balance sheet; both must be 0.
	Oversold int64 `json:"oversold"`
	Off      int64 `json:"off"`
	// Bottleneck is what would give way first.
	Bottleneck Bottleneck `json:"bottleneck"`
}

// Bottleneck is the part that would give way first.
type Bottleneck string

// The bottlenecks.
const (
	NoBottleneck Bottleneck = "none"
	OfProviders  Bottleneck = "providers" // reminders were late although they were cut in time
	OfReminders  Bottleneck = "reminders" // reminders were cut late
	OfClaims     Bottleneck = "claims"    // claims were slow or failed
	OfRefusals   Bottleneck = "refusals"  // providers refused many reminders, which are not tried again
)

// Limits of what a rehearsal may show before a part is its bottleneck, in milliseconds.
const (
	slowClaim = 1000
	lateCut   = 5000
	slowWave  = 60_000
)

// mostRefused is the largest share of the reminders given to providers that they may refuse, in thousandths. A list of customers
// that is kept well stays below it.
const mostRefused = 20

// Judge sets the bottleneck of the report. cutLate is the longest time between the due instant of a slot and the end of its cut.
func (r *Report) Judge(cutLate time.Duration) {
	switch {
	case r.Failed > 0 || r.ClaimP99 > slowClaim:
		r.Bottleneck = OfClaims
	case cutLate.Milliseconds() > lateCut:
		r.Bottleneck = OfReminders
	case r.Expired > 0 || r.Wave > slowWave:
		r.Bottleneck = OfProviders
	case 1000*r.Dead > mostRefused*(r.Sent+r.Dead):
		r.Bottleneck = OfRefusals
	default:
		r.Bottleneck = NoBottleneck
	}
}

// Interrupted is the detail of a rehearsal whose worker died or was stopped.
const Interrupted = "the worker was stopped"

// Sound reports whether every coupon and every reminder is accounted for.
func (r Report) Sound() bool { return r.Oversold == 0 && r.Off == 0 }

// A Rehearsal is one rehearsal of a drop.
type Rehearsal struct {
	// ID is the id of the copy of the drop, which no other drop has.
	ID         int64
	TemplateID int64
	Shop       int64
	State      State
	// SharePermille is how many thousandths of the users are copied.
	SharePermille int64
	By            string
	AskedAt       time.Time
	OpensAt       *time.Time
	EndedAt       *time.Time
	Progress      Progress
	Report        *Report // nil unless Done
	// Detail says why it failed.
	Detail string
	// Removed says that its world is gone.
	Removed bool
}

// Evening is what the drop's own evening showed, for comparison; zero before it.
type Evening struct {
	// Wave is how long the longest wave took, and SoldOut how long after the opening the last coupon was given, in milliseconds.
	Wave, SoldOut int64
}

// Share returns how many thousandths of the users are copied: as many as [MostUsers] allows, and so few that
// the longest wave, which takes wave with all users, ends before the next one.
func Share(reserved int64, wave time.Duration) int64 {
	share := int64(1000)
	if reserved > MostUsers {
		share = max(1, 1000*MostUsers/reserved)
	}
	if wave > longestWave {
		share = min(share, max(1, int64(1000*longestWave/wave)))
	}
	return share
}

// Store keeps rehearsals.
type Store interface {
	// Ask stores a rehearsal with its audit entry and gives it an id. It returns [ErrBusy] while another one is asked for or runs.
	Ask(ctx context.Context, r Rehearsal, e staff.Entry) (Rehearsal, error)
	// Of returns the rehearsals of the drop, the newest first.
	Of(ctx context.Context, templateID int64, limit int) ([]Rehearsal, error)
	// Reserved returns how many users have reserved reminders of the drop.
	Reserved(ctx context.Context, templateID int64) (int64, error)
	// Near reports whether a published drop opens before until or has opened after since.
	Near(ctx context.Context, since, until time.Duration) (bool, error)
	// Evening returns what the drop's evening showed.
	Evening(ctx context.Context, templateID int64) (Evening, error)
}

// Service holds the use cases of staff.
type Service struct {
	Store     Store
	Templates interface {
		Template(ctx context.Context, by staff.Actor, id int64) (template.Template, error)
	}
	// Quiet replaces the constant of this name.
	Quiet time.Duration
	Now   func() time.Time
}

// Ask asks for a rehearsal of the drop, which a worker begins within seconds. It returns [ErrState], [ErrBusy], [ErrNear],
// [template.ErrNotFound] or [staff.ErrForbidden].
func (s *Service) Ask(ctx context.Context, by staff.Actor, id int64) (Rehearsal, error) {
	t, err := s.Templates.Template(ctx, by, id)
	if err != nil {
		return Rehearsal{}, err
	}
	if err := by.May(staff.ManageTemplates, t.ShopNumber); err != nil {
		return Rehearsal{}, err
	}
	if st := t.State(s.Now()); st != template.Scheduled && st != template.Paused || !s.Now().Before(t.FirstOpening()) {
		return Rehearsal{}, ErrState
	}
	if s.Quiet > 0 {
		if near, err := s.Store.Near(ctx, min(s.Quiet, CalmAfter), s.Quiet); err != nil || near {
			return Rehearsal{}, firstError(err, ErrNear)
		}
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return s.Store.Ask(ctx, Rehearsal{TemplateID: t.ID, Shop: t.ShopNumber, By: by.Label + " " + by.Name}, staff.Entry{Actor: by, Action: "template.rehearse", ObjectKind: "template",
		ObjectID: strconv.FormatInt(t.ID, 10), ShopNumber: t.ShopNumber})
}

func firstError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// shown is how many rehearsals of a drop are shown.
const shown = 20

// Of returns the rehearsals of the drop, the newest first, with what its evening showed.
func (s *Service) Of(ctx context.Context, by staff.Actor, id int64) ([]Rehearsal, Evening, error) {
	if _, err := s.Templates.Template(ctx, by, id); err != nil {
		return nil, Evening{}, err
	}
	list, err := s.Store.Of(ctx, id, shown)
	if err != nil {
		return nil, Evening{}, err
	}
	e, err := s.Store.Evening(ctx, id)
	return list, e, err
}
