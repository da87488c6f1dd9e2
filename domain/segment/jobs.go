package segment

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/user"
)

// jobParams are the parameters of both jobs. Version prevents that a count is
// stored after the rule has changed.
type jobParams struct {
	SegmentID int64 `json:"segment_id,string"`
	Version   int64 `json:"version,string"`
}

func params(g Segment) json.RawMessage {
	raw, _ := json.Marshal(jobParams{g.ID, g.Version}) // two numbers
	return raw
}

func readParams(j job.Job) (p jobParams, err error) {
	if err := json.Unmarshal(j.Params, &p); err != nil {
		return p, fault.ErrInvalid.Because("params: %v", err)
	}
	return p, nil
}

// CountStore is the store of counts.
type CountStore interface {
	Segment(ctx context.Context, id int64) (Segment, error)
	// CountRange counts the members among the next limit users after after. looked
	// is the number of these users, last the last of them; 0 = there are none.
	CountRange(ctx context.Context, r Rule, after user.ID, limit int) (members, looked int64, last user.ID, err error)
	// StoreCount records the number if the segment still has the version.
	StoreCount(ctx context.Context, id, version, members int64) error
}

// Counter counts a segment's members, range by range.
type Counter struct {
	Store CountStore
	Now   func() time.Time
}

// stepFor is about how long one step of a job takes.
const stepFor = 1500 * time.Millisecond

// CountRange is how many users one statement of a count looks at.
const CountRange = 20_000

type countCursor struct {
	After   user.ID `json:"after,string"`
	Looked  int64   `json:"looked"`
	Members int64   `json:"members"`
}

// Step counts for a while; see [job.Runner].
func (c *Counter) Step(ctx context.Context, j job.Job) (job.Progress, error) {
	p, err := readParams(j)
	if err != nil {
		return job.Progress{}, err
	}
	g, err := c.Store.Segment(ctx, p.SegmentID)
	if err != nil {
		return job.Progress{}, err
	}
	if g.Version != p.Version {
		return job.Progress{}, fault.ErrStale.Because("the segment has changed since counting began; count again")
	}
	var at countCursor
	if len(j.Cursor) > 0 {
		if err := json.Unmarshal(j.Cursor, &at); err != nil {
			return job.Progress{}, err
		}
	}
	finished := false
	for end := c.Now().Add(stepFor); !finished && c.Now().Before(end); {
		members, looked, last, err := c.Store.CountRange(ctx, g.Rule, at.After, CountRange)
		if err != nil {
			return job.Progress{}, err
		}
		at.Members, at.Looked, finished = at.Members+members, at.Looked+looked, last == 0
		at.After = max(at.After, last)
	}
	if finished {
		if err := c.Store.StoreCount(ctx, g.ID, p.Version, at.Members); err != nil {
			return job.Progress{}, err
		}
	}
	cursor, _ := json.Marshal(at) // three numbers
	result, _ := json.Marshal(map[string]int64{"members": at.Members})
	return job.Progress{Cursor: cursor, Result: result, Total: j.Total, Done: at.Looked, Finished: finished}, nil
}

// ListStore is the store of lists.
type ListStore interface {
	Segment(ctx context.Context, id int64) (Segment, error)
	// Erased returns the ids among the given ones whose users were erased.
	Erased(ctx context.Context, ids []user.ID) (map[user.ID]bool, error)
	// AddMembers adds the ids, which are ascending and distinct, and returns how
	// many were new. Adding them again changes nothing. It returns [ErrListInUse]
	// while a campaign keeps the list.
	AddMembers(ctx context.Context, id int64, ids []user.ID) (added int64, err error)
}

// Filler fills a list from a file.
type Filler struct {
	Store  ListStore
	Tables job.Tables
	Now    func() time.Time
}

// listBatch is how many ids are stored at once. reportErrors is the largest number
// of broken rows that one step reports.
const (
	listBatch    = 20_000
	reportErrors = 5_000
)

type listCursor struct {
	At json.RawMessage `json:"at,omitempty"`
	// Column holds the ids; -1 until the first row is read.
	Column int `json:"column"`
	// Guessed says that the first row was taken for column names although it holds
	// no known name.
	Guessed bool  `json:"guessed,omitempty"`
	Done    int64 `json:"done"`
	Failed  int64 `json:"failed"`
}

// Step reads some rows; see [job.Runner]. A row without an id is reported; all
// other rows are stored.
func (f *Filler) Step(ctx context.Context, j job.Job) (job.Progress, error) {
	p, err := readParams(j)
	if err != nil {
		return job.Progress{}, err
	}
	if _, err := f.Store.Segment(ctx, p.SegmentID); err != nil {
		return job.Progress{}, err
	}
	at := listCursor{Column: -1}
	if len(j.Cursor) > 0 {
		if err := json.Unmarshal(j.Cursor, &at); err != nil {
			return job.Progress{}, err
		}
	}
	rows, err := f.Tables.OpenTable(ctx, j.UploadID, job.Reading{}, at.At)
	if err != nil {
		return job.Progress{}, err
	}
	defer func() { _ = rows.Close() }()
	s := &filling{Filler: f, segment: p.SegmentID, rows: rows, at: at}
	finished := false
	for end := f.Now().Add(stepFor); !finished && f.Now().Before(end) && len(s.errors) < reportErrors; {
		if finished, err = s.batch(ctx); err != nil {
			return job.Progress{}, err
		}
	}
	if finished && s.at.Guessed && s.at.Done+s.at.Failed == 0 { // one line that says nothing
		return job.Progress{}, job.ErrUnreadable.Because("there is no id in it")
	}
	s.at.At = rows.Position()
	cursor, err := json.Marshal(s.at)
	result, _ := json.Marshal(map[string]int64{"ids": s.at.Done})
	return job.Progress{Cursor: cursor, Result: result, Done: s.at.Done, Failed: s.at.Failed, Errors: s.errors, Finished: finished}, err
}

// filling is one step.
type filling struct {
	*Filler
	segment int64
	rows    job.Rows
	at      listCursor
	errors  []job.RowError
}

// batch stores the next ids; true means that there are no more.
func (s *filling) batch(ctx context.Context) (finished bool, err error) {
	ids, lines := make([]user.ID, 0, listBatch), make([]int64, 0, listBatch)
	for len(ids) < listBatch && len(s.errors) < reportErrors {
		line, cells, err := s.rows.Next()
		if err == io.EOF {
			finished = true
			break
		}
		if err != nil {
			if s.rows.Broken(err) {
				return false, err
			}
			s.fail(line, "", err)
			continue
		}
		if s.at.Column < 0 {
			var header, known bool
			if s.at.Column, header, known = idColumn(cells); header {
				s.at.Guessed = !known
				continue
			}
		}
		if id, ok := s.id(line, cells); ok {
			ids, lines = append(ids, id), append(lines, line)
		}
	}
	if ids, err = s.withoutErased(ctx, ids, lines); err != nil {
		return false, err
	}
	s.at.Done += int64(len(ids))
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > 0 {
		_, err = s.Store.AddMembers(ctx, s.segment, ids)
	}
	return finished, err
}

// withoutErased reports the ids of erased users and returns all other ids.
func (s *filling) withoutErased(ctx context.Context, ids []user.ID, lines []int64) ([]user.ID, error) {
	erased, err := s.Store.Erased(ctx, ids)
	if err != nil || len(erased) == 0 {
		return ids, err
	}
	left := ids[:0]
	for i, id := range ids {
		if erased[id] {
			s.fail(lines[i], id.String(), user.RowErased())
			continue
		}
		left = append(left, id)
	}
	return left, nil
}

func (s *filling) id(line int64, cells []string) (user.ID, bool) {
	text := ""
	if s.at.Column < len(cells) {
		text = cells[s.at.Column]
	}
	id, err := user.ParseID(text)
	if err != nil {
		e := &fault.Fields{}
		e.Add("id", "rule.user_id", "must be a positive whole number")
		s.fail(line, text, e)
	}
	return id, err == nil
}

func (s *filling) fail(line int64, row string, why error) {
	s.at.Failed++
	s.errors = append(s.errors, job.RowFailed(line, row, why))
}

// idColumn finds the column of the ids by the first row. header reports whether
// that row holds column names, known whether one of them is a known name. Without
// known names the first column is used.
func idColumn(first []string) (column int, header, known bool) {
	if i := user.IDColumn(first); i >= 0 {
		return i, true, true
	}
	_, err := user.ParseID(first[0])
	return 0, err != nil && errors.Is(err, fault.ErrInvalid) && !strings.ContainsAny(first[0], "0123456789"), false
}
