package coupon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"dropbell/domain/claim"
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

// What became of a row. Others are codes of the gate's refusals.
const (
	GrantOK        = "ok"     // a dry run found nothing in the way
	GrantIssued    = "issued" // the user has the coupon
	GrantAccepted  = "accepted"
	GrantBadRow    = "bad_user_id"
	GrantUnknown   = "unknown_user"
	GrantDuplicate = "duplicate"
)

// ErrNoUserColumn is the refusal of a list whose heading names no user_id.
var ErrNoUserColumn = fault.New(fault.Invalid, "no_user_column", "the list needs a column user_id")

// ErrTooManyGrants is the refusal of a list with more than [MaxGrants] rows.
var ErrTooManyGrants = fault.New(fault.Invalid, "too_many_rows", fmt.Sprintf("a list has at most %d rows", MaxGrants))

// A GrantRow is one line of a list.
type GrantRow struct {
	Line   int64
	Input  string
	UserID user.ID // 0 = unreadable
	// Known, First and Owned are what judging found: whether there is such a
	// user, whether this is the user's first line, and how many coupons of the
	// template the user was given so far.
	Known, First bool
	Owned        int
	Result       string
	CouponID     int64
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
	// StageGrants stores the rows in place of what the sheet had.
	StageGrants(ctx context.Context, sheet int64, rows []GrantRow) error
	// GrantRows returns up to limit rows after the line, judged against the
	// template.
	GrantRows(ctx context.Context, sheet, templateID, after int64, limit int) ([]GrantRow, error)
	// SaveGrants stores the rows' results.
	SaveGrants(ctx context.Context, sheet int64, rows []GrantRow) error
	// GrantResults yields every row in order until yield returns an error.
	GrantResults(ctx context.Context, sheet int64, yield func(GrantRow) error) error
}

// Grants holds the use cases of staff around giving coupons away.
type Grants struct {
	Store GrantStore
	Jobs  *job.Service
}

// GrantParams say what a job of [GrantKind] does.
type GrantParams struct {
	TemplateID int64 `json:"template_id,string"`
	DryRun     bool  `json:"dry_run"`
	// Sheet is the job that has read the list already; 0 = this one reads the upload.
	Sheet int64 `json:"sheet,string,omitempty"`
}

// SheetOf returns the job under which the rows of j are kept.
func SheetOf(j job.Job) int64 {
	var p GrantParams
	if json.Unmarshal(j.Params, &p) == nil && p.Sheet != 0 {
		return p.Sheet
	}
	return j.ID
}

// Start begins to give a coupon of the template to each user of the uploaded
// list, or only to find out what would happen. Each list gives a user one
// coupon at most. Neither window nor way of obtaining is asked; stock, limit
// per user and pause are. It returns [template.ErrNotFound],
// [staff.ErrForbidden], [template.ErrTransition] of a draft or a cancelled
// template, or [job.ErrUploadNotFound].
func (g *Grants) Start(ctx context.Context, by staff.Actor, templateID, uploadID int64, dryRun bool, requestKey string) (job.Job, error) {
	return g.start(ctx, by, GrantParams{TemplateID: templateID, DryRun: dryRun}, uploadID, requestKey)
}

// Apply gives the coupons that the dry run of job id was about. Asking twice
// starts one job. Beside the errors of Start it returns [job.ErrNotFound].
func (g *Grants) Apply(ctx context.Context, by staff.Actor, id int64) (job.Job, error) {
	j, p, err := g.load(ctx, by, id)
	if err != nil {
		return j, err
	}
	if !p.DryRun || j.State != job.Done {
		return j, template.ErrTransition.Because("only a dry run that is done can be applied")
	}
	return g.start(ctx, by, GrantParams{TemplateID: p.TemplateID, Sheet: SheetOf(j)}, 0, "apply:"+itoa(id))
}

func (g *Grants) start(ctx context.Context, by staff.Actor, p GrantParams, uploadID int64, key string) (job.Job, error) {
	t, err := g.Store.Template(ctx, p.TemplateID)
	if err != nil {
		return job.Job{}, err
	}
	if err := by.May(staff.ManageUsers, t.ShopNumber); err != nil {
		return job.Job{}, err
	}
	if t.Stored == template.Draft || t.Stored == template.Cancelled {
		return job.Job{}, template.ErrTransition.Because("coupons of a %s template cannot be given away", t.Stored)
	}
	params, err := json.Marshal(p)
	if err != nil {
		return job.Job{}, err
	}
	return g.Jobs.Start(ctx, by, job.New{Kind: GrantKind, Title: t.Name, ShopNumber: t.ShopNumber, Params: params, UploadID: uploadID,
		RequestKey: key}, staff.ManageUsers)
}

// Job returns a grant with what it does, or [job.ErrNotFound].
func (g *Grants) Job(ctx context.Context, by staff.Actor, id int64) (job.Job, GrantParams, error) {
	return g.load(ctx, by, id)
}

func (g *Grants) load(ctx context.Context, by staff.Actor, id int64) (j job.Job, p GrantParams, err error) {
	if j, err = g.Jobs.Job(ctx, by, id); err != nil {
		return j, p, err
	}
	if j.Kind != GrantKind || json.Unmarshal(j.Params, &p) != nil {
		return j, p, job.ErrNotFound
	}
	return j, p, nil
}

// Results yields every row of the job's list with what became of it; who may
// not give coupons away may not see it.
func (g *Grants) Results(ctx context.Context, by staff.Actor, id int64, yield func(GrantRow) error) error {
	j, _, err := g.load(ctx, by, id)
	if err != nil {
		return err
	}
	if err := by.May(staff.ManageUsers, j.ShopNumber); err != nil {
		return err
	}
	return g.Store.GrantResults(ctx, SheetOf(j), yield)
}

// Granter works off jobs of [GrantKind]; see [job.Runner].
type Granter struct {
	Store  GrantStore
	Lists  Lists
	Gate   claim.Gate
	Random func() uint64
}

const (
	judgeChunk = 2000
	issueChunk = 500
	// issueAtOnce is how many claims wait for the gate together, which decides
	// them in one group.
	issueAtOnce = 64
)

// grantCursor is how far a job is. Line 0 and not read: the list is read next.
type grantCursor struct {
	Read  bool  `json:"read"`
	Line  int64 `json:"line"`
	Total int64 `json:"total"`
	Good  int64 `json:"good"`
	Bad   int64 `json:"bad"`
}

// Step reads the list, or judges or gives the next chunk. Repeating it gives
// nobody a second coupon: the gate knows each user of the list by a key.
func (g *Granter) Step(ctx context.Context, j job.Job) (job.Progress, error) {
	var p GrantParams
	if err := json.Unmarshal(j.Params, &p); err != nil {
		return job.Progress{}, fault.ErrInvalid.Because("params: %v", err)
	}
	var c grantCursor
	if len(j.Cursor) > 0 {
		if err := json.Unmarshal(j.Cursor, &c); err != nil {
			return job.Progress{}, fault.ErrInvalid.Because("cursor: %v", err)
		}
	}
	if !c.Read && p.Sheet == 0 {
		n, err := g.read(ctx, j)
		return progressOf(grantCursor{Read: true, Total: n}, nil, n == 0), err
	}
	chunk := issueChunk
	if p.DryRun {
		chunk = judgeChunk
	}
	rows, err := g.Store.GrantRows(ctx, SheetOf(j), p.TemplateID, c.Line, chunk)
	if err != nil || len(rows) == 0 {
		return progressOf(c, nil, true), err
	}
	t, err := g.Store.Template(ctx, p.TemplateID)
	if err != nil {
		return job.Progress{}, err
	}
	if p.DryRun {
		judge(rows, t, c.Good)
	} else if err := g.issue(ctx, SheetOf(j), t.ID, rows); err != nil {
		return job.Progress{}, err
	}
	if err := g.Store.SaveGrants(ctx, SheetOf(j), rows); err != nil {
		return job.Progress{}, err
	}
	var failed []job.RowError
	for _, r := range rows {
		if r.good() {
			c.Good++
			continue
		}
		c.Bad++
		failed = append(failed, job.RowError{Line: r.Line, Row: r.Input, Error: r.Result})
	}
	c.Read, c.Line, c.Total = true, rows[len(rows)-1].Line, max(c.Total, c.Good+c.Bad)
	return progressOf(c, failed, len(rows) < chunk), nil
}

func (r GrantRow) good() bool {
	return r.Result == GrantOK || r.Result == GrantIssued || r.Result == GrantAccepted
}

func progressOf(c grantCursor, failed []job.RowError, finished bool) job.Progress {
	cursor, _ := json.Marshal(c) // numbers only
	return job.Progress{Cursor: cursor, Result: cursor, Total: c.Total, Done: c.Good, Failed: c.Bad, Errors: failed, Finished: finished}
}

// read stages the uploaded list.
func (g *Granter) read(ctx context.Context, j job.Job) (int64, error) {
	rows, err := g.Lists.OpenList(ctx, j.UploadID)
	if err != nil {
		return 0, err
	}
	list, err := readGrants(rows)
	if err = errors.Join(err, rows.Close()); err != nil {
		return 0, err
	}
	return int64(len(list)), g.Store.StageGrants(ctx, j.ID, list)
}

// issue asks the gate for every row that is not settled. Only what a
// repetition could change is an error.
func (g *Granter) issue(ctx context.Context, sheet, templateID int64, rows []GrantRow) error {
	errs := make([]error, len(rows))
	slots := make(chan struct{}, issueAtOnce)
	var all sync.WaitGroup
	for i := range rows {
		r := &rows[i]
		if r.Result == GrantIssued {
			continue
		}
		if r.Result = refusedRow(*r); r.Result != "" {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = g.give(ctx, sheet, templateID, r)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (g *Granter) give(ctx context.Context, sheet, templateID int64, r *GrantRow) error {
	c, err := g.Gate.Claim(ctx, claim.Request{ID: claim.NewID(g.Random()), TemplateID: templateID, UserID: r.UserID, Origin: claim.ByGrant,
		Key: itoa(sheet) + ":" + r.UserID.String()})
	switch kind := fault.KindOf(err); {
	case err == nil && c.State == claim.Issued:
		r.Result, r.CouponID = GrantIssued, c.CouponID
	case err == nil && c.State == claim.Accepted:
		r.Result = GrantAccepted
	case err == nil:
		r.Result = c.Reason
	case kind == fault.Conflict || kind == fault.NotFound || kind == fault.Invalid:
		r.Result = fault.CodeOf(err)
	default:
		return err
	}
	return nil
}
