package job

import (
	"context"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// A Query selects jobs, newest first.
type Query struct {
	Kind   string // empty = all
	States []State
	// Shops limits the answer to jobs of these shops and jobs that Actor, an
	// actor's label, started; empty = all jobs.
	Shops  []int64
	Actor  string
	Before int64 // keyset: only jobs older than this one
	Limit  int
}

// Store stores jobs.
type Store interface {
	// StartJob stores j for the workers, with an event and e. If j's actor has
	// started a job of the same kind with this key, it returns that job. It returns
	// [ErrUploadNotFound] if j's upload is missing or incomplete.
	StartJob(ctx context.Context, j Job, requestKey string, e staff.Entry) (Job, error)
	// Job returns [ErrNotFound] if there is none.
	Job(ctx context.Context, id int64) (Job, error)
	Jobs(ctx context.Context, q Query) ([]Job, error)
	// CancelJob ends a job that is not over and records e, otherwise it returns
	// [ErrOver].
	CancelJob(ctx context.Context, id int64, e staff.Entry) (Job, error)
	// RowErrors yields the failed rows in the order in which they were processed,
	// until yield returns an error.
	RowErrors(ctx context.Context, id int64, yield func(RowError) error) error
	// LastRowError returns the last of them, an empty one if there is none.
	LastRowError(ctx context.Context, id int64) (RowError, error)
}

// Service holds the use cases of staff who start jobs.
type Service struct{ Store Store }

// maxTitle bounds a title, in characters.
const maxTitle = 200

// Start stores a job for the workers; it begins within about a second. The
// actor needs the permission in the job's shop. It returns
// [staff.ErrForbidden], [ErrUploadNotFound], or a [fault.Fields].
func (s *Service) Start(ctx context.Context, by staff.Actor, n New, needs staff.Permission) (Job, error) {
	j, e, err := n.Prepare(by, needs)
	if err != nil {
		return Job{}, err
	}
	return s.Store.StartJob(context.WithoutCancel(ctx), j, n.RequestKey, e)
}

// Prepare returns the job and its audit entry, for a store that starts the job in
// the transaction of another change. For the errors see [Service.Start].
func (n New) Prepare(by staff.Actor, needs staff.Permission) (Job, staff.Entry, error) {
	if err := by.May(needs, n.ShopNumber); err != nil {
		return Job{}, staff.Entry{}, err
	}
	if err := n.check(); err != nil {
		return Job{}, staff.Entry{}, err
	}
	j := Job{Kind: n.Kind, Title: title(n.Title), ShopNumber: n.ShopNumber, Needs: needs, Params: n.Params, State: Waiting,
		Total: n.Total, UploadID: n.UploadID, Actor: by, CreatedBy: strings.TrimSpace(by.Label + " " + by.Name)}
	return j, staff.Entry{Actor: by, Action: "job.start", ObjectKind: "job",
		ShopNumber: n.ShopNumber, Reason: n.Reason, After: map[string]any{"kind": j.Kind, "title": j.Title}}, nil
}

func (n New) check() error {
	e := &fault.Fields{}
	if n.Kind == "" {
		e.Add("kind", "rule.required", "is required")
	}
	if strings.TrimSpace(n.Title) == "" {
		e.Add("title", "rule.required", "is required")
	}
	if len(n.RequestKey) > maxTitle {
		e.Add("request_key", "rule.too_long", "must have at most %d characters", maxTitle)
	}
	return e.Err()
}

// title shortens a title that may contain a long name.
func title(s string) string {
	r := []rune(strings.TrimSpace(s))
	if len(r) > maxTitle {
		r = append(r[:maxTitle-1], '…')
	}
	return string(r)
}

// Job returns a job that the actor may see, otherwise [ErrNotFound].
func (s *Service) Job(ctx context.Context, by staff.Actor, id int64) (Job, error) {
	j, err := s.Store.Job(ctx, id)
	if err != nil {
		return Job{}, err
	}
	if err := j.Visible(by); err != nil {
		return Job{}, err
	}
	return j, nil
}

// Jobs lists the jobs that the actor may see, newest first.
func (s *Service) Jobs(ctx context.Context, by staff.Actor, q Query) ([]Job, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	q.Shops, q.Actor = by.Shops, by.Label
	return s.Store.Jobs(ctx, q)
}

// Cancel ends a job at once: its worker records nothing any more. Completed work is
// kept. It returns [ErrNotFound], [staff.ErrForbidden] or [ErrOver].
func (s *Service) Cancel(ctx context.Context, by staff.Actor, id int64) (Job, error) {
	j, err := s.own(ctx, by, id)
	if err != nil {
		return Job{}, err
	}
	return s.Store.CancelJob(context.WithoutCancel(ctx), id, staff.Entry{Actor: by, Action: "job.cancel", ObjectKind: "job",
		ObjectID: strconv.FormatInt(id, 10), ShopNumber: j.ShopNumber})
}

// RowErrors yields the failed rows. They hold uploaded data, so only staff who may
// start such a job may see them.
func (s *Service) RowErrors(ctx context.Context, by staff.Actor, id int64, yield func(RowError) error) error {
	if _, err := s.own(ctx, by, id); err != nil {
		return err
	}
	return s.Store.RowErrors(ctx, id, yield)
}

// LastRowError returns the last failed row, an empty one if there is none, for
// staff who may see the rows.
func (s *Service) LastRowError(ctx context.Context, by staff.Actor, id int64) (RowError, error) {
	if _, err := s.own(ctx, by, id); err != nil {
		return RowError{}, err
	}
	return s.Store.LastRowError(ctx, id)
}

func (s *Service) own(ctx context.Context, by staff.Actor, id int64) (Job, error) {
	j, err := s.Job(ctx, by, id)
	if err != nil {
		return Job{}, err
	}
	return j, by.May(j.Needs, j.ShopNumber)
}
