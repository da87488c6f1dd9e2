package coupon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// GrantKind is the kind of the jobs that give coupons to a list of users.
const GrantKind = "coupons.grant"

// MaxGrants is how many rows one list has at most.
const MaxGrants = 100_000

// Results of a row. All others are codes of the gate's refusals.
const (
	GrantOK        = "ok"     // a dry run found nothing in the way
	GrantIssued    = "issued" // the user has the coupon
	GrantAccepted  = "accepted"
	GrantBadRow    = "bad_user_id"
	GrantUnknown   = "unknown_user"
	GrantDuplicate = "duplicate"
)

// ErrNoUserColumn is the refusal of a list whose heading names no users.
var ErrNoUserColumn = fault.New(fault.Invalid, "no_user_column", "the list needs a column user_id or id; add it and upload the list again")

// ErrTooManyGrants is the refusal of a list with more than [MaxGrants] rows.
var ErrTooManyGrants = fault.New(fault.Invalid, "too_many_rows", fmt.Sprintf("a list has at most %d rows; divide the file", MaxGrants))

// ErrNoGrants is the refusal of a list without users.
var ErrNoGrants = fault.New(fault.Invalid, "no_rows", "the list has no rows; it needs one for each user, below the heading")

// A GrantRow is one line of a list.
type GrantRow struct {
	Line   int64
	Input  string
	UserID user.ID // 0 = unreadable
	// Known, First and Owned are found by judging the row: whether the user exists,
	// whether this is the user's first line, and how many coupons of the template
	// the user was given so far.
	Known, First bool
	Owned        int
	Result       string
	CouponID     int64
	// Key makes the row's claim repeatable, where that is not the list and the user.
	Key string
}

// Rows yields the rows of an uploaded list.
type Rows interface {
	// Next returns the next row's line and cells, no cells for a row that
	// cannot be read, and [io.EOF] after the last.
	Next() (line int64, cells []string, err error)
	Close() error
}

// Lists opens uploaded lists.
type Lists interface {
	// OpenList returns a fault that says why the file cannot be read.
	OpenList(ctx context.Context, uploadID int64) (Rows, error)
}

// GrantStore keeps the rows of lists, each list under the job that read it.
type GrantStore interface {
	// Template returns [template.ErrNotFound] if there is none.
	Template(ctx context.Context, id int64) (template.Template, error)
	// StageGrants replaces the rows of the sheet.
	StageGrants(ctx context.Context, sheet int64, rows []GrantRow) error
	// GrantRows returns up to limit rows after the line, judged against the
	// template.
	GrantRows(ctx context.Context, sheet, templateID, after int64, limit int) ([]GrantRow, error)
	// SaveGrants stores the rows' results.
	SaveGrants(ctx context.Context, sheet int64, rows []GrantRow) error
	// GrantResults yields every row in order until yield returns an error. A row
	// that a gate has accepted is yielded with its final result, if that is known.
	// A granted coupon is yielded even if the row itself was not updated.
	GrantResults(ctx context.Context, sheet int64, yield func(GrantRow) error) error
	// GrantLines returns up to limit rows after the line, as GrantResults does.
	// result selects the rows of one result; "" = all rows.
	GrantLines(ctx context.Context, sheet int64, result string, after int64, limit int) ([]GrantRow, error)
	// GrantTally counts the sheet's rows up to the line by the result that
	// GrantLines returns. Of the rows after the line it counts only granted and
	// accepted rows.
	GrantTally(ctx context.Context, sheet, line int64) (map[string]int64, error)
	// TakenBack counts the sheet's coupons that the job has revoked.
	TakenBack(ctx context.Context, sheet, jobID int64) (int64, error)
	// ApplyGrant starts j, as [job.Store.StartJob] does, to give the coupons of the
	// sheet's dry run. If a job has begun that before, it returns the earlier job
	// with first false. Of several calls at the same moment one is first. It
	// returns [job.ErrNotFound] if the dry run is gone.
	ApplyGrant(ctx context.Context, sheet, templateID int64, j job.Job, requestKey string, e staff.Entry) (applied job.Job, first bool, err error)
	// GrantJobs lists jobs of [GrantKind], newest first.
	GrantJobs(ctx context.Context, q GrantQuery) ([]job.Job, error)
	// GrantApplied returns the last job that gave the sheet's coupons, 0 if
	// there is none.
	GrantApplied(ctx context.Context, templateID, sheet int64) (int64, error)
}

// A GrantQuery selects lists, newest first.
type GrantQuery struct {
	TemplateID int64 // 0 = of all
	// Shops limits the answer to lists of these shops' templates; empty = all.
	Shops  []int64
	Before int64 // keyset: only jobs with a smaller id
	Limit  int
}

// Grants holds the use cases of staff around giving coupons away.
type Grants struct {
	Store GrantStore
	Jobs  *job.Service
	Now   func() time.Time
}

// GrantParams say what a job of [GrantKind] does.
type GrantParams struct {
	TemplateID int64 `json:"template_id,string"`
	DryRun     bool  `json:"dry_run"`
	// Sheet is the job that has read the list already; 0 = this one reads the upload.
	Sheet int64 `json:"sheet,string,omitempty"`
	// Reason is why, as staff said.
	Reason string `json:"reason,omitempty"`
	// OverLimit gives the coupons also to users who have as many as they may have.
	OverLimit bool `json:"over_limit,omitempty"`
	// Replaces is the coupon that the given coupon takes the place of; 0 = none.
	Replaces int64 `json:"replaces,string,omitempty"`
	Source
}

// SheetOf returns the job under which the rows of j are kept.
func SheetOf(j job.Job) int64 {
	var p GrantParams
	if json.Unmarshal(j.Params, &p) == nil && p.Sheet != 0 {
		return p.Sheet
	}
	return j.ID
}

// Start begins to give a coupon of the template to each user of the uploaded list,
// or only to find out the results. A list gives each user at most one coupon.
// Window and way of obtaining are not checked; stock, limit per user and pause are.
// It returns [template.ErrNotFound], [staff.ErrForbidden], [template.ErrTransition]
// if the template is a draft, cancelled or closed by staff, a [fault.Fields] for a
// reason that is too long, or [job.ErrUploadNotFound].
func (g *Grants) Start(ctx context.Context, by staff.Actor, p GrantParams, uploadID int64, requestKey string) (job.Job, error) {
	p.Sheet = 0
	n, err := g.prepare(ctx, by, p)
	if err != nil {
		return job.Job{}, err
	}
	n.UploadID, n.RequestKey = uploadID, requestKey
	return g.Jobs.Start(ctx, by, n, staff.ManageUsers)
}

// Apply grants the coupons of the dry run of job id, once. first reports whether
// this request began the job; the job names the member who began it. In addition to
// the errors of Start it returns [job.ErrNotFound].
func (g *Grants) Apply(ctx context.Context, by staff.Actor, id int64, reason string) (applied job.Job, first bool, err error) {
	j, p, err := g.load(ctx, by, id, GrantKind)
	if err != nil {
		return j, false, err
	}
	if err := by.May(staff.ManageUsers, j.ShopNumber); err != nil {
		return j, false, err
	}
	if err := p.applicable(j); err != nil {
		return j, false, err
	}
	given, err := g.Store.GrantApplied(ctx, p.TemplateID, SheetOf(j)) // by whomever
	if err != nil {
		return job.Job{}, false, err
	}
	if given != 0 {
		applied, err = g.Jobs.Job(ctx, by, given)
		return applied, false, err
	}
	n, err := g.prepare(ctx, by, GrantParams{TemplateID: p.TemplateID, Sheet: SheetOf(j), Reason: reason, Source: p.Source})
	if err != nil {
		return job.Job{}, false, err
	}
	n.RequestKey = "apply:" + itoa(id)
	start, e, err := n.Prepare(by, staff.ManageUsers)
	if err != nil {
		return job.Job{}, false, err
	}
	return g.Store.ApplyGrant(context.WithoutCancel(ctx), SheetOf(j), p.TemplateID, start, n.RequestKey, e)
}

func (g *Grants) prepare(ctx context.Context, by staff.Actor, p GrantParams) (job.New, error) {
	if p.Reason != "" {
		if err := CheckReason(p.Reason); err != nil {
			return job.New{}, err
		}
	}
	t, err := g.Store.Template(ctx, p.TemplateID)
	if err != nil {
		return job.New{}, err
	}
	if err := by.May(staff.ManageUsers, t.ShopNumber); err != nil {
		return job.New{}, err
	}
	if err := CheckGiving(t, p.DryRun, g.Now()); err != nil {
		return job.New{}, err
	}
	params, err := json.Marshal(p)
	return job.New{Kind: GrantKind, Title: t.Name, ShopNumber: t.ShopNumber, Params: params, Reason: p.Reason}, err
}

// List returns the lists that the query selects and the actor may know about.
func (g *Grants) List(ctx context.Context, by staff.Actor, q GrantQuery) ([]job.Job, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	q.Shops = by.Shops
	return g.Store.GrantJobs(ctx, q)
}

// Lines returns rows of the job's list; see [GrantStore.GrantLines]. Only staff who may
// give coupons away may see them.
func (g *Grants) Lines(ctx context.Context, by staff.Actor, j job.Job, result string, after int64, limit int) ([]GrantRow, error) {
	if err := by.May(staff.ManageUsers, j.ShopNumber); err != nil {
		return nil, err
	}
	return g.Store.GrantLines(ctx, SheetOf(j), result, after, limit)
}

// Outcome returns the job with the number of rows per result so far. In a finished
// job, a row that the gate had only accepted counts by its final result. In a
// stopped or failed job, rows of the last chunk, which the job did not count any
// more, are counted too.
func (g *Grants) Outcome(ctx context.Context, j job.Job) (job.Job, map[string]int64, error) {
	var c grantCursor
	if len(j.Result) > 0 {
		_ = json.Unmarshal(j.Result, &c) // was written by this program
	}
	stopped := j.State == job.Cancelled || j.State == job.Failed
	switch {
	case stopped && j.Kind == TakeBackKind:
		return g.stoppedTakeBack(ctx, j, c.Results)
	case !stopped && (j.State != job.Done || c.Results[GrantAccepted] == 0):
		return j, c.Results, nil
	}
	tally, err := g.Store.GrantTally(ctx, SheetOf(j), c.Line)
	if err != nil || len(tally) == 0 {
		return j, c.Results, err
	}
	j.Done, j.Failed = 0, 0
	for result, n := range tally {
		if (GrantRow{Result: result}).good() {
			j.Done += n
		} else {
			j.Failed += n
		}
	}
	j.Total = max(j.Total, j.Worked())
	return j, tally, nil
}

// Applied returns the job that applied the dry run j, 0 if j was not applied.
func (g *Grants) Applied(ctx context.Context, j job.Job, p GrantParams) (int64, error) {
	if !p.DryRun {
		return 0, nil
	}
	return g.Store.GrantApplied(ctx, p.TemplateID, SheetOf(j))
}

// Job returns a job that gives coupons or takes them back, with its parameters, or
// [job.ErrNotFound].
func (g *Grants) Job(ctx context.Context, by staff.Actor, id int64) (job.Job, GrantParams, error) {
	return g.load(ctx, by, id, GrantKind, TakeBackKind)
}

func (g *Grants) load(ctx context.Context, by staff.Actor, id int64, kinds ...string) (j job.Job, p GrantParams, err error) {
	if j, err = g.Jobs.Job(ctx, by, id); err != nil {
		return j, p, err
	}
	if !slices.Contains(kinds, j.Kind) || json.Unmarshal(j.Params, &p) != nil {
		return j, p, job.ErrNotFound
	}
	return j, p, nil
}

// Results yields every row of the job's list with its result; only staff who may give
// coupons away may see it.
func (g *Grants) Results(ctx context.Context, by staff.Actor, id int64, yield func(GrantRow) error) error {
	j, _, err := g.load(ctx, by, id, GrantKind)
	if err != nil {
		return err
	}
	if err := by.May(staff.ManageUsers, j.ShopNumber); err != nil {
		return err
	}
	return g.Store.GrantResults(ctx, SheetOf(j), yield)
}
