package user

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// Kinds of the jobs that read uploaded tables of users: the first says what
// the second would do.
const (
	CheckJob  = "users.check"
	ImportJob = "users.import"
)

// ImportParams are the params of both jobs.
type ImportParams struct {
	Columns Mapping `json:"columns"`
	// Clear makes empty cells remove what is stored instead of leaving it.
	Clear bool `json:"clear,omitempty"`
}

// ImportResult is what came of a table so far, in rows.
type ImportResult struct {
	New       int64 `json:"new"`
	Changed   int64 `json:"changed"`
	Unchanged int64 `json:"unchanged"`
	Invalid   int64 `json:"invalid"`
}

// ImportStore is what importing needs beside [Store.Upsert].
type ImportStore interface {
	Upsert(ctx context.Context, changes []Change, e staff.Entry) error
	// Compare tells, about changes of different users, how many are of users
	// who are not known, and how many would change something.
	Compare(ctx context.Context, changes []Change) (fresh, changed int64, err error)
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
	// reportErrors bounds what one step tells about.
	reportErrors = 5000
)

type importCursor struct {
	At     json.RawMessage `json:"at,omitempty"`
	Header bool            `json:"header"` // is read
	Result ImportResult    `json:"result"`
}

// Step reads some rows and, in an import, stores them; see [job.Runner]. It
// acts in the name of whoever started the job. A row that breaks a rule is
// reported and keeps no other from being stored; a step that is repeated
// stores the same again, which changes nothing.
func (im *Importer) Step(ctx context.Context, j job.Job) (job.Progress, error) {
	if err := j.Actor.May(staff.ManageUsers, 0); err != nil {
		return job.Progress{}, err
	}
	s := &importing{Importer: im, job: j, rules: rules{zones: map[string]bool{}}}
	if err := s.open(ctx); err != nil {
		return job.Progress{}, err
	}
	defer func() { _ = s.rows.Close() }()
	finished := false
	for end := im.Now().Add(importFor); !finished && im.Now().Before(end) && len(s.errors) < reportErrors; {
		var err error
		if finished, err = s.batch(ctx); err != nil {
			return job.Progress{}, err
		}
	}
	s.at.At = s.rows.Position()
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

func (s *importing) open(ctx context.Context) (err error) {
	if err := json.Unmarshal(s.job.Params, &s.params); err != nil {
		return fault.ErrInvalid.Because("params: %v", err)
	}
	if err := s.params.Columns.Check(); err != nil {
		return err
	}
	if len(s.job.Cursor) > 0 {
		if err := json.Unmarshal(s.job.Cursor, &s.at); err != nil {
			return err
		}
	}
	s.rows, err = s.Tables.OpenTable(ctx, s.job.UploadID, s.at.At)
	return err
}

// batch takes the next rows; true means that there are no more.
func (s *importing) batch(ctx context.Context) (finished bool, err error) {
	place, changes := map[ID]int{}, make([]Change, 0, importBatch)
	rows := int64(0)
	for len(changes) < importBatch && len(s.errors) < reportErrors {
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
		rows++
		if at, twice := place[c.ID]; twice {
			changes[at] = changes[at].then(c)
			continue
		}
		place[c.ID] = len(changes)
		changes = append(changes, c)
	}
	if len(changes) == 0 {
		return finished, nil
	}
	fresh, changed, err := s.Store.Compare(ctx, changes)
	if err == nil && s.job.Kind == ImportJob && fresh+changed > 0 {
		err = s.Store.Upsert(ctx, changes, imported(s.job.Actor, changes))
	}
	r := &s.at.Result
	r.New, r.Changed, r.Unchanged = r.New+fresh, r.Changed+changed, r.Unchanged+rows-fresh-changed
	return finished, err
}

func (s *importing) read(cells []string) (Change, error) {
	c, err := s.params.Columns.change(cells, s.params.Clear)
	if err != nil {
		return c, err
	}
	return c, s.rules.check(c)
}

// fail reports every rule that the row breaks. The row itself is kept for the
// person who has to correct it; it is removed with the job.
func (s *importing) fail(line int64, cells []string, err error) {
	s.at.Result.Invalid++
	text := err.Error()
	if fields, ok := errors.AsType[*fault.Fields](err); ok {
		all := make([]string, len(fields.List))
		for i, f := range fields.List {
			all[i] = f.Name + ": " + f.Message
		}
		text = strings.Join(all, "; ")
	}
	row := strings.Join(cells, " | ")
	if r := []rune(row); len(r) > 300 {
		row = string(r[:299]) + "…"
	}
	s.errors = append(s.errors, job.RowError{Line: line, Row: row, Error: text})
}
