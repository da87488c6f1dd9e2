package parts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/views/ui"
)

// URL is the page of the job.
func (p Work) URL() string { return fmt.Sprintf("/jobs/%d", p.Job.ID) }

// WorkTone is the colour of a job's state. A finished job with failed rows has the colour of a
// warning.
func WorkTone(j job.Job) ui.Tone {
	switch j.State {
	case job.Waiting, job.Running:
		return ui.Info
	case job.Failed:
		return ui.Bad
	case job.Cancelled:
		return ui.Neutral
	}
	if j.Failed > 0 {
		return ui.Warn
	}
	return ui.Good
}

// WorkKind falls back to the kind's own name if it has no text.
func WorkKind(ctx context.Context, kind string) string {
	if key := "jobs.kind." + kind; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return kind
}

// WorkPieces returns no pieces while the job's total is unknown.
func WorkPieces(j job.Job) []Piece {
	if j.Total == 0 && j.State != job.Done {
		return nil
	}
	return []Piece{{"bar-sent", j.Done}, {"bar-dead", j.Failed}}
}

// WorkWhole returns the length of the job's bar: all its rows, as far as known.
func WorkWhole(j job.Job) int64 { return max(j.Total, j.Worked(), 1) }

// WorkText says how far the job is.
func WorkText(ctx context.Context, j job.Job) string {
	l := ui.From(ctx).Locale
	switch {
	case j.State == job.Waiting:
		return l.T("jobs.not_begun")
	case j.Total > 0:
		return l.T("jobs.progress", j.Worked(), max(j.Total, j.Worked()))
	}
	return l.T("jobs.worked", j.Worked())
}

// WorkPace returns the speed of the job and its approximate remaining time.
func WorkPace(ctx context.Context, j job.Job) string {
	if j.State != job.Running || j.StartedAt == nil || j.IdleSince != nil || j.Worked() == 0 {
		return ""
	}
	took := ui.From(ctx).Now.Sub(*j.StartedAt)
	if took < time.Second {
		return ""
	}
	l, rate := ui.From(ctx).Locale, float64(j.Worked())/took.Seconds()
	if j.Total <= j.Worked() {
		return l.T("jobs.rate", int64(rate+0.5))
	}
	left := time.Duration(float64(j.Total-j.Worked()) / rate * float64(time.Second))
	return l.T("jobs.left", l.Duration(max(left, time.Second)))
}

// WorkReason says why a job failed, or why it waits after a failed step.
func WorkReason(ctx context.Context, j job.Job) string {
	if j.Reason == "" {
		return ""
	}
	if key := "fault." + j.Reason; ui.From(ctx).Locale.Has(key) {
		return ui.FieldText(ctx, fault.Field{Key: key, Message: j.Detail})
	}
	if j.Detail != "" {
		return ui.From(ctx).Locale.Said(j.Detail)
	}
	return ui.T(ctx, "fault.bug")
}

// said are faults of jobs whose details add nothing to the catalogue's text.
var said = []*fault.Fault{job.ErrWorkersDied, job.ErrUploadNotFound, coupon.ErrNoUserColumn, coupon.ErrNoGrants, coupon.ErrTooManyGrants}

// workDetail returns the details that the reason does not contain, such as the line: in English.
func workDetail(ctx context.Context, j job.Job) string {
	reason := WorkReason(ctx, j)
	numbered := reason != ui.T(ctx, "fault."+j.Reason) // by what the detail says
	if ui.From(ctx).Locale.Said(j.Detail) == reason || numbered || slices.ContainsFunc(said, func(f *fault.Fault) bool { return f.Code == j.Reason }) {
		return ""
	}
	return ui.From(ctx).Locale.Said(j.Detail)
}
