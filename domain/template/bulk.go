package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// BulkKind is the kind of jobs that take a step of many templates.
const BulkKind = "templates.bulk"

// A Selection is a set of templates: the templates with the ids, or all templates that match the
// filter.
type Selection struct {
	IDs    []int64    `json:"ids,omitempty"`
	All    bool       `json:"all,omitempty"`
	Search string     `json:"search,omitempty"`
	States []State    `json:"states,omitempty"`
	Shops  []int64    `json:"shops,omitempty"`
	From   *time.Time `json:"from,omitempty"`
	To     *time.Time `json:"to,omitempty"`
}

// A Bulk is one step for many templates.
type Bulk struct {
	Selection
	Transition Transition `json:"transition"`
	Reason     string     `json:"reason,omitempty"`
	// UndoOf is the job that this one takes back; 0 = none.
	UndoOf int64 `json:"undo_of,omitempty,string"`
}

// Undo returns the step that takes tr back; ok is false where there is none.
func (tr Transition) Undo() (back Transition, ok bool) {
	switch tr {
	case Pausing:
		return Resuming, true
	case Resuming:
		return Pausing, true
	}
	return "", false
}

// Transitions returns every step staff can take.
func Transitions() []Transition {
	return []Transition{Publishing, Pausing, Resuming, Closing, Cancelling}
}

// Taken reports whether t is where tr leads, so that there is nothing to do.
func (t Template) Taken(tr Transition, now time.Time) bool {
	s := t.State(now)
	switch tr {
	case Publishing, Resuming:
		return s == Scheduled || s == Open || s == SoldOut
	case Pausing:
		return s == Paused
	case Closing:
		return s == Closed
	}
	return s == Cancelled
}

// A Rehearsal is the effect that a bulk step would have now.
type Rehearsal struct {
	Can   int
	Taken int // are in the step's state already
	// Cannot counts the templates whose state forbids the step, by state. Broken counts the
	// templates that break a rule, for example have an opening in the past.
	Cannot map[State]int
	Broken int
	// More is set if the selection has further templates that were not examined.
	More bool
}

// Refused returns how many templates cannot take the step.
func (r Rehearsal) Refused() int {
	sum := r.Broken
	for _, n := range r.Cannot {
		sum += n
	}
	return sum
}

// Total returns how many templates were examined.
func (r Rehearsal) Total() int { return r.Can + r.Taken + r.Refused() }

// Plus returns the effect on the templates of both, which are of different databases.
func (r Rehearsal) Plus(o Rehearsal) Rehearsal {
	r.Can, r.Taken, r.Broken, r.More = r.Can+o.Can, r.Taken+o.Taken, r.Broken+o.Broken, r.More || o.More
	cannot := map[State]int{}
	for state, n := range r.Cannot {
		cannot[state] = n
	}
	for state, n := range o.Cannot {
		cannot[state] += n
	}
	r.Cannot = cannot
	return r
}

// Bulks holds the use cases around one step for many templates, and carries them out as a
// [job.Runner].
type Bulks struct {
	Templates *Service
	Jobs      *job.Service
}

const (
	bulkStep  = 20   // templates one step of the job changes, a transaction each
	rehearsed = 2000 // templates a rehearsal looks at
	// undoable is how many changed templates a job remembers.
	undoable = 5000
)

// Rehearse returns the effect that b would have. It changes nothing.
func (s *Bulks) Rehearse(ctx context.Context, by staff.Actor, b Bulk) (r Rehearsal, err error) {
	if err := s.check(by, b); err != nil {
		return r, err
	}
	r.Cannot = map[State]int{}
	// In one query: the obstacles of a page would be read for each.
	list, _, err := s.page(ctx, by, b, bulkCursor{}, rehearsed+1)
	if err != nil {
		return r, err
	}
	r.More = len(list) > rehearsed
	now := s.Templates.Now()
	for _, t := range list[:min(len(list), rehearsed)] {
		r.count(t, b.Transition, now)
	}
	return r, nil
}

func (r *Rehearsal) count(t Template, tr Transition, now time.Time) {
	_, err := t.step(tr, now)
	switch {
	case err == nil:
		r.Can++
	case t.Taken(tr, now):
		r.Taken++
	case errors.Is(err, ErrTransition):
		r.Cannot[t.State(now)]++
	default:
		r.Broken++
	}
}

func (s *Bulks) check(by staff.Actor, b Bulk) error {
	if err := by.May(staff.ManageTemplates, 0); err != nil {
		return err
	}
	e := &fault.Fields{}
	if !slices.Contains(Transitions(), b.Transition) {
		e.Add("step", "rule.bulk_step", "is not a step that templates can take")
	}
	if !b.All && len(b.IDs) == 0 {
		e.Add("id", "rule.bulk_empty", "choose at least one template")
	}
	return e.Err()
}

// Start begins the step for all selected templates in the background. Another call with the same
// key returns the first job.
func (s *Bulks) Start(ctx context.Context, by staff.Actor, b Bulk, title, requestKey string) (job.Job, error) {
	if err := s.check(by, b); err != nil {
		return job.Job{}, err
	}
	params, err := json.Marshal(b)
	if err != nil {
		return job.Job{}, err
	}
	return s.Jobs.Start(ctx, by, job.New{Kind: BulkKind, Title: title, Params: params, Total: int64(len(b.IDs)), RequestKey: requestKey}, staff.ManageTemplates)
}

// A bulkCursor is the position of the last examined template: its index among the ids, or its
// position in the order of the list.
type bulkCursor struct {
	Place   int       `json:"place,omitempty"`
	OpensAt time.Time `json:"opens_at,omitzero"`
	ID      int64     `json:"id,omitempty,string"`
	// Pending are the templates to be changed next. Last is set if no templates follow after
	// them.
	Pending []int64 `json:"pending,omitempty"`
	Last    bool    `json:"last,omitempty"`
}

// BulkResult is the result of a bulk job so far.
type BulkResult struct {
	Changed int64 `json:"changed"`
	// IDs are the changed templates; empty if they are too many for an undo.
	IDs []int64 `json:"ids,omitempty"`
}

// page returns the next templates after the cursor. The step does not change the order, so a
// template that stops matching the filter makes page miss no other template.
func (s *Bulks) page(ctx context.Context, by staff.Actor, b Bulk, at bulkCursor, limit int) ([]Template, bulkCursor, error) {
	if b.All {
		list, err := s.Templates.Templates(ctx, by, Query{Search: b.Search, States: b.States, Shops: b.Shops, From: b.From, To: b.To,
			After: Cursor{OpensAt: at.OpensAt, ID: at.ID}, Limit: limit})
		if n := len(list); n > 0 {
			at.OpensAt, at.ID = list[n-1].OpensAt, list[n-1].ID
		}
		return list, at, err
	}
	ids := b.IDs[at.Place:min(len(b.IDs), at.Place+limit)]
	at.Place += len(ids)
	list, err := s.named(ctx, by, ids)
	return list, at, err
}

// named returns the templates with the ids, in the order of ids. For a template that does not
// exist, or that the actor may not see, it returns a template with the id alone: its step will
// return the reason.
func (s *Bulks) named(ctx context.Context, by staff.Actor, ids []int64) ([]Template, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := s.Templates.Templates(ctx, by, Query{IDs: ids, Limit: len(ids)})
	if err != nil {
		return nil, err
	}
	at := make(map[int64]int, len(found))
	for i, t := range found {
		at[t.ID] = i
	}
	list := make([]Template, len(ids))
	for i, id := range ids {
		list[i] = Template{ID: id}
		if k, ok := at[id]; ok {
			list[i] = found[k]
		}
	}
	return list, nil
}

// Step alternates between two kinds of work: it selects the next templates to change and saves
// their ids, and then it changes these templates. So if a change was not saved and is repeated,
// the changed templates are known to be the job's own work. See [job.Runner].
func (s *Bulks) Step(ctx context.Context, j job.Job) (p job.Progress, err error) {
	var b Bulk
	var at bulkCursor
	var result BulkResult
	if err := errors.Join(json.Unmarshal(j.Params, &b), unmarshal(j.Cursor, &at), unmarshal(j.Result, &result)); err != nil {
		return p, fault.ErrInvalid.Because("the job's parameters cannot be read")
	}
	p = job.Progress{Total: j.Total, Done: j.Done, Failed: j.Failed}
	if len(at.Pending) > 0 {
		err = s.work(ctx, j, b, &at, &result, &p)
	} else {
		err = s.plan(ctx, j, b, &at, &p)
	}
	if err != nil {
		return p, err
	}
	p.Finished = at.Last && len(at.Pending) == 0
	if p.Finished && b.All {
		p.Total = p.Done + p.Failed
	}
	p.Cursor, _ = json.Marshal(at) // numbers and instants only
	p.Result, _ = json.Marshal(result)
	return p, nil
}

// plan selects the next templates. Templates already in the step's state count as done.
func (s *Bulks) plan(ctx context.Context, j job.Job, b Bulk, at *bulkCursor, p *job.Progress) error {
	list, next, err := s.page(ctx, j.Actor, b, *at, bulkStep)
	if err != nil {
		return err
	}
	next.Last = len(list) < bulkStep
	now := s.Templates.Now()
	for _, t := range list {
		if t.Version != 0 && t.Taken(b.Transition, now) {
			p.Done++
			continue
		}
		next.Pending = append(next.Pending, t.ID)
	}
	*at = next
	return nil
}

// work changes the planned templates.
func (s *Bulks) work(ctx context.Context, j job.Job, b Bulk, at *bulkCursor, result *BulkResult, p *job.Progress) error {
	for i, id := range at.Pending {
		t, err := s.change(ctx, j, b, id)
		switch {
		case err == nil:
			p.Done++
			if result.Changed++; result.Changed <= undoable {
				result.IDs = append(result.IDs, id)
			} else {
				result.IDs = nil // an undo of some of them would be a surprise
			}
		case refusal(err):
			p.Failed++
			p.Errors = append(p.Errors, job.RowFailed(j.Worked()+int64(i)+1, fmt.Sprintf("#%d %s", id, t.Name), err))
		default:
			return err
		}
	}
	at.Pending = nil
	return nil
}

// change takes the step of one template, unless an earlier attempt took it already. A concurrent
// edit does not prevent the step, since the step does not depend on the version.
func (s *Bulks) change(ctx context.Context, j job.Job, b Bulk, id int64) (t Template, err error) {
	for range 3 {
		if t, err = s.Templates.Template(ctx, j.Actor, id); err != nil || t.Taken(b.Transition, s.Templates.Now()) {
			return t, err
		}
		if _, err = s.Templates.Do(ctx, j.Actor, id, 0, b.Transition, b.Reason); !errors.Is(err, fault.ErrStale) {
			return t, err
		}
	}
	return t, err
}

// refusal reports whether err is about one template and not about the system.
func refusal(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound, fault.Conflict, fault.Denied:
		return true
	}
	return false
}

func unmarshal(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
}
