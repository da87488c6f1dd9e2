// Package job holds background work that takes longer than a request: imports,
// grants, bulk actions. A job runs in small steps, each of which is saved
// together with its progress, so that any worker can continue where another one
// stopped, died or was cut off.
package job

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// State is where a job is in its life.
type State string

// The states of a job.
const (
	Waiting   State = "waiting"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// States returns every state.
func States() []State { return []State{Waiting, Running, Done, Failed, Cancelled} }

// Over reports whether nothing happens in s any more.
func (s State) Over() bool { return s == Done || s == Failed || s == Cancelled }

// A Job is one piece of work in the background.
type Job struct {
	ID         int64
	Kind       string // "templates.bulk"; decides which [Runner] works it off
	Title      string
	ShopNumber int64 // 0 = belongs to no shop
	// Needs is the permission required to start the job; staff who have it may
	// also stop the job and see the rows that failed.
	Needs staff.Permission
	// Params describe the work, Cursor its progress and Result its results. Only
	// the kind's runner interprets them.
	Params, Cursor, Result json.RawMessage
	State                  State
	// Total is the number of items, 0 while it is not known. Done is the number of
	// items that succeeded, Failed the number that did not.
	Total, Done, Failed int64
	// Reason is the code of the fault that ended a failed job, Detail its text.
	Reason, Detail string
	// Actor started the job. A runner acts in the name of Actor, with the rights at
	// the start. CreatedBy is the actor's label and name, as in the audit log.
	Actor      staff.Actor
	CreatedBy  string
	UploadID   int64 // 0 = none
	CreatedAt  time.Time
	StartedAt  *time.Time
	FinishedAt *time.Time
	// IdleSince is since when a running job has had no worker: the last worker fell
	// silent, or no worker is free. It is nil while that is less than [IdleAfter].
	IdleSince *time.Time
}

// IdleAfter is how long a running job may be without a worker before it is shown as
// stalled. A worker normally takes a job over in less time.
const IdleAfter = 10 * time.Second

// Worked returns how many items were looked at.
func (j Job) Worked() int64 { return j.Done + j.Failed }

// By reports whether the actor started the job.
func (j Job) By(a staff.Actor) bool { return a.Label != "" && j.Actor.Label == a.Label }

// Visible returns [ErrNotFound] unless the actor may see the job: staff who are
// limited to shops see the jobs of these shops and their own jobs.
func (j Job) Visible(to staff.Actor) error {
	if err := to.May(staff.View, 0); err != nil {
		return err
	}
	if j.By(to) || len(to.Shops) == 0 || j.ShopNumber != 0 && to.Can(staff.View, j.ShopNumber) {
		return nil
	}
	return ErrNotFound
}

// A RowError is one line of a list that could not be processed, with the reason: in
// English, and as broken rules that can be shown in any language.
type RowError struct {
	Line    int64
	Row     string
	Error   string
	Because []fault.Field // may be empty
}

// RowFailed returns the error of a line. If err is a [fault.Fault], only its
// text is used.
func RowFailed(line int64, row string, err error) RowError {
	e := RowError{Line: line, Row: row, Error: err.Error()}
	if fields, ok := errors.AsType[*fault.Fields](err); ok {
		e.Because = fields.List
		all := make([]string, len(fields.List))
		for i, f := range fields.List {
			if all[i] = f.Message; f.Name != "" {
				all[i] = f.Name + ": " + f.Message
			}
		}
		e.Error = strings.Join(all, "; ")
	}
	return e
}

// EndsReading reports whether the lines after this line could not be read.
func (e RowError) EndsReading() bool { return e.Breaks(ReadingEnded) }

// Breaks reports whether the rule is among those that the line breaks.
func (e RowError) Breaks(rule string) bool {
	return slices.ContainsFunc(e.Because, func(f fault.Field) bool { return f.Key == rule })
}

// Progress is how far a job is after a step. Total, Done and Failed are absolute,
// so that saving the same progress twice counts nothing twice. When a job finishes
// whose total was never known, the total becomes the number of processed items.
type Progress struct {
	Cursor, Result      json.RawMessage // nil = unchanged
	Total, Done, Failed int64
	Errors              []RowError // of this step only
	Finished            bool
}

// New is the input for starting a job.
type New struct {
	Kind, Title string
	ShopNumber  int64
	Params      json.RawMessage
	UploadID    int64
	// Total is how many items there are, if that is known already.
	Total int64
	// RequestKey makes starting repeatable: the same actor starting the same
	// kind with the same key again gets the first job. Empty = none.
	RequestKey string
	// Reason is why, for the audit log.
	Reason string
}

// An Upload is a file that waits for a job to read it.
type Upload struct {
	ID        int64
	Name      string
	Bytes     int64
	SHA256    []byte
	CreatedBy string
	CreatedAt time.Time
	// Previews are the beginnings of the table, one for each sheet of a workbook,
	// read when the file was uploaded.
	Previews []Preview
}

// Visible returns [ErrUploadNotFound] unless the actor may read the file. An upload
// belongs to no shop, so staff who are limited to shops see their own uploads only.
func (u Upload) Visible(to staff.Actor) error {
	if by, _, _ := strings.Cut(u.CreatedBy, " "); len(to.Shops) > 0 && by != to.Label {
		return ErrUploadNotFound
	}
	return nil
}

// Faults of this room.
var (
	ErrNotFound       = fault.New(fault.NotFound, "job_not_found", "there is no such job; check its id")
	ErrOver           = fault.New(fault.Conflict, "job_over", "the job has ended already; start another one if it is needed")
	ErrUploadNotFound = fault.New(fault.NotFound, "upload_not_found", "the uploaded file is no longer there; upload it again")
	// ErrUnreadable is the refusal of an uploaded table in which nothing can be read.
	ErrUnreadable     = fault.New(fault.Invalid, "sheet_unreadable", "the file cannot be read; use CSV in UTF-8 or XLSX")
	ErrUploadTooLarge = fault.New(fault.Invalid, "upload_too_large", "the file is too large; divide it")
	// ErrBusy is the refusal of a workbook while this process reads other workbooks.
	ErrBusy = fault.New(fault.Unavailable, "overloaded", "another workbook is being read; try again in a moment")
	// ErrWorkersDied ends a job during whose steps several workers disappeared one
	// after the other.
	ErrWorkersDied = fault.New(fault.Unavailable, "job_workers_died", "several workers died while processing this job; look at their logs before you start it again")
	// ErrNoWork is returned when there is nothing to take: another worker has the
	// job, or the job has to wait or is over.
	ErrNoWork = fault.New(fault.Conflict, "no_job", "there is no job to take")
	// ErrLeaseLost is returned to a worker whose job was taken over or cancelled; its
	// work since the last save is not recorded.
	ErrLeaseLost = fault.New(fault.Conflict, "job_lease_lost", "another worker has this job, or it was cancelled")
)
