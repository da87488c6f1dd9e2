package shell

import (
	"context"
	"errors"
	"net/http"

	"github.com/a-h/templ"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// A JobView is the content that a subject adds to the pages of its jobs. Each function may be nil.
type JobView struct {
	// Actions are the buttons that only this kind of job has.
	Actions func(r *http.Request, j job.Job) []ui.ButtonProps
	// Outcome shows the result of the job; nil = there is nothing to show.
	Outcome func(j job.Job) templ.Component
	// Noted is how many rows have a note and did not fail.
	Noted func(j job.Job) int64
	// MayReadRows refuses members who may not see the job's rows that failed or have a note.
	MayReadRows func(by staff.Actor) error
	// NoFile reports whether the job's rows came in a request and not in a file.
	NoFile func(j job.Job) bool
}

// ShowJobs sets the content that pages show of jobs of the given kinds.
func (sh *Shell) ShowJobs(v JobView, kinds ...string) {
	for _, kind := range kinds {
		sh.jobs[kind] = v
	}
}

// JobView returns the content that the subject of the kind of job adds to its page.
func (sh *Shell) JobView(kind string) JobView { return sh.jobs[kind] }

const (
	// fewErrors is how many failed rows a job's page shows, and how many rows that only have a
	// note.
	fewErrors = 10
	// mostErrors is how many rows are searched for them.
	mostErrors = 5000
)

var errEnough = errors.New("enough rows")

// RowErrors reads the rows of a job that failed or have a note.
type RowErrors interface {
	RowErrors(ctx context.Context, by staff.Actor, id int64, row func(job.RowError) error) error
}

// FirstErrors returns the first failed rows, and the first rows that have a note and did not fail.
// noted is the number of rows of the job with a note.
func FirstErrors(r *http.Request, jobs RowErrors, j job.Job, noted int64) (failed, notes []job.RowError, err error) {
	seen, few := 0, func(list []job.RowError, all int64) bool { return int64(len(list)) < min(fewErrors, all) }
	err = jobs.RowErrors(r.Context(), Actor(r), j.ID, func(e job.RowError) error {
		switch isNote := user.IsNote(e); {
		case isNote && few(notes, noted):
			notes = append(notes, e)
		case !isNote && few(failed, j.Failed):
			failed = append(failed, e)
		}
		if seen++; seen == mostErrors || !few(failed, j.Failed) && !few(notes, noted) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return failed, notes, err
}

// JobCrumbs lead from the list of jobs to the page of one.
func JobCrumbs(r *http.Request, j job.Job) []ui.Crumb {
	return []ui.Crumb{{Label: Say(r, "nav.jobs"), URL: "/jobs"}, {Label: j.Title, URL: pageparts.Work{Job: j}.URL()}}
}
