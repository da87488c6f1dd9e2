package user

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// Kinds of the jobs that read uploaded tables of users: the first kind reports what
// the second kind would do.
const (
	CheckJob  = "users.check"
	ImportJob = "users.import"
)

// ImportParams are the params of both jobs.
type ImportParams struct {
	Columns Mapping `json:"columns"`
	// Clear makes empty cells remove what is stored instead of leaving it.
	Clear bool `json:"clear,omitempty"`
	// Reading is how staff want the table to be read.
	Reading job.Reading `json:"reading,omitzero"`
}

// ImportResult counts the rows of a table by result so far. Each row is compared
// with the stored user and with the rows before it: the last row of a user counts.
type ImportResult struct {
	New       int64 `json:"new"`
	Changed   int64 `json:"changed"`
	Unchanged int64 `json:"unchanged"`
	Invalid   int64 `json:"invalid"`
	// Repeated is how many of the other rows are of a user whom an earlier row of
	// the table named. Only a check counts repeated rows over the whole table and
	// names them.
	Repeated int64 `json:"repeated,omitempty"`
}

// A CheckedRow is a row that a check has read.
type CheckedRow struct {
	ID   ID
	Line int64
	// Digest is equal for rows with the same contents.
	Digest int64
}

// ImportStore is the store of imports.
type ImportStore interface {
	Upsert(ctx context.Context, changes []Change, e staff.Entry) error
	// Erased returns the ids among the given ones whose users were erased.
	Erased(ctx context.Context, ids []ID) (map[ID]bool, error)
	// Compare returns how many of the changes, of different users, create a user
	// and how many would change one.
	Compare(ctx context.Context, changes []Change) (fresh, changed int64, err error)
	// RememberRows stores rows of different users for the job. It returns the last
	// remembered row of each of these users before the line before. Rows of that
	// line and later lines, which a failed attempt may have remembered, do not
	// count.
	RememberRows(ctx context.Context, jobID int64, rows []CheckedRow, before int64) ([]CheckedRow, error)
	// ForgetRows removes at most limit remembered rows of the job and returns how many.
	ForgetRows(ctx context.Context, jobID int64, limit int) (int, error)
}

// Importer reads tables of users.
type Importer struct {
	Store  ImportStore
	Tables job.Tables
	Now    func() time.Time
}

const (
	importFor   = 1500 * time.Millisecond
	importBatch = 2000
	forgetBatch = 20_000
	// reportErrors is the largest number of rows that one step reports.
	reportErrors = 5000
)

type importCursor struct {
	At     json.RawMessage `json:"at,omitempty"`
	Header bool            `json:"header"` // is read
	Read   bool            `json:"read,omitempty"`
	Result ImportResult    `json:"result"`
}

// Step reads some rows and, in an import, stores them; see [job.Runner]. It acts in
// the name of the member who started the job. A row that breaks a rule is reported,
// and the other rows are stored. Repeating a step stores the same data again, which
// changes nothing.
func (im *Importer) Step(ctx context.Context, j job.Job) (job.Progress, error) {
	if err := j.Actor.MayEverywhere(staff.ManageUsers); err != nil {
		return job.Progress{}, err
	}
	s := &importing{Importer: im, job: j, rules: rules{zones: map[string]bool{}}}
	if err := s.prepare(); err != nil {
		return job.Progress{}, err
	}
	work := s.readOn
	if s.at.Read {
		work = s.tidy
	}
	finished, err := work(ctx)
	if err != nil {
		return job.Progress{}, err
	}
	cursor, err := json.Marshal(s.at)
	result, _ := json.Marshal(s.at.Result) // numbers
	r := s.at.Result
	return job.Progress{Cursor: cursor, Result: result, Done: r.New + r.Changed + r.Unchanged, Failed: r.Invalid, Errors: s.errors, Finished: finished}, err
}

// importing is one step.
type importing struct {
	*Importer
	job    job.Job
	params ImportParams
	rules  rules
	rows   job.Rows
	at     importCursor
	errors []job.RowError
}

func (s *importing) prepare() error {
	if err := json.Unmarshal(s.job.Params, &s.params); err != nil {
		return fault.ErrInvalid.Because("params: %v", err)
	}
	if err := s.params.Columns.Check(); err != nil {
		return err
	}
	if len(s.job.Cursor) == 0 {
		return nil
	}
	return json.Unmarshal(s.job.Cursor, &s.at)
}

// readOn reads rows for importFor. A check does not finish at the end of the table:
// after the end is saved, its remembered rows are removed.
func (s *importing) readOn(ctx context.Context) (finished bool, err error) {
	if s.rows, err = s.Tables.OpenTable(ctx, s.job.UploadID, s.params.Reading, s.at.At); err != nil {
		return false, err
	}
	defer func() { _ = s.rows.Close() }()
	for end := s.Now().Add(importFor); !s.at.Read && s.Now().Before(end) && len(s.errors) < reportErrors; {
		if s.at.Read, err = s.batch(ctx); err != nil {
			return false, err
		}
	}
	s.at.At = s.rows.Position()
	return s.at.Read && s.job.Kind != CheckJob, nil
}

// tidy removes remembered rows of the check for importFor.
func (s *importing) tidy(ctx context.Context) (finished bool, err error) {
	for end := s.Now().Add(importFor); s.Now().Before(end); {
		n, err := s.Store.ForgetRows(ctx, s.job.ID, forgetBatch)
		if err != nil || n < forgetBatch {
			return err == nil, err
		}
	}
	return false, nil
}

// batch takes the next rows; true means that there are no more.
func (s *importing) batch(ctx context.Context) (finished bool, err error) {
	var rows []tableRow
	for len(rows) < importBatch && len(s.errors) < reportErrors {
		line, cells, err := s.rows.Next()
		if err == io.EOF {
			finished = true
			break
		}
		if err != nil && s.rows.Broken(err) {
			return false, err
		}
		if err == nil && !s.at.Header {
			s.at.Header = true
			continue
		}
		var c Change
		if err == nil {
			c, err = s.read(cells)
		}
		if err != nil {
			s.fail(line, cells, err)
			continue
		}
		rows = append(rows, tableRow{c, line, slices.Clone(cells)})
	}
	p, err := s.partOf(ctx, rows)
	if err != nil || len(p.list) == 0 {
		return finished, err
	}
	return finished, s.settle(ctx, p)
}

// A tableRow is a row that breaks no rule.
type tableRow struct {
	change Change
	line   int64
	cells  []string
}

// partOf collects the rows into one part. Rows about erased users are reported and
// left out.
func (s *importing) partOf(ctx context.Context, rows []tableRow) (*part, error) {
	ids := make([]ID, len(rows))
	for i, r := range rows {
		ids[i] = r.change.ID
	}
	erased, err := s.Store.Erased(ctx, ids)
	p := newPart()
	for _, r := range rows {
		if erased[r.change.ID] {
			s.fail(r.line, r.cells[:0], RowErased())
			continue
		}
		p.add(r.change, r.line, r.cells, s.params.Columns)
	}
	slices.SortStableFunc(s.errors, func(a, b job.RowError) int { return cmp.Compare(a.Line, b.Line) })
	return p, err
}

// settle counts the rows of a part and, in an import, stores them.
func (s *importing) settle(ctx context.Context, p *part) error {
	if s.job.Kind == CheckJob {
		known, err := s.Store.RememberRows(ctx, s.job.ID, p.lastRows(), p.list[0].line)
		if err != nil {
			return err
		}
		p.follow(known)
	}
	var fresh, changed int64
	var err error
	if first := p.first(); len(first) > 0 {
		fresh, changed, err = s.Store.Compare(ctx, first)
	}
	again, overwritten := p.repeats()
	changed += overwritten
	if err == nil && s.job.Kind == ImportJob && fresh+changed > 0 {
		changes := p.merged()
		err = s.Store.Upsert(ctx, changes, imported(s.job.Actor, changes))
	}
	if s.job.Kind == CheckJob {
		s.errors = append(s.errors, p.notes()...)
		slices.SortStableFunc(s.errors, func(a, b job.RowError) int { return cmp.Compare(a.Line, b.Line) })
	}
	r := &s.at.Result
	r.New, r.Changed, r.Unchanged, r.Repeated = r.New+fresh, r.Changed+changed, r.Unchanged+p.rows-fresh-changed, r.Repeated+again
	return err
}

func (s *importing) read(cells []string) (Change, error) {
	c, err := s.params.Columns.change(cells, s.params.Clear)
	if err != nil {
		return c, err
	}
	return c, s.rules.check(c)
}

// fail reports every rule that the row breaks. The row is stored with the report,
// for the staff who correct it, and is removed with the job.
func (s *importing) fail(line int64, cells []string, err error) {
	s.at.Result.Invalid++
	s.errors = append(s.errors, job.RowFailed(line, shown(cells), err))
}

// shown is a row as the report shows it.
func shown(cells []string) string {
	row := strings.Join(cells, " | ")
	if r := []rune(row); len(r) > 300 {
		row = string(r[:299]) + "…"
	}
	return row
}
