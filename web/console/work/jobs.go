package work

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/user"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) listWork(w http.ResponseWriter, r *http.Request) error {
	p, jobs, err := h.jobs(r)
	if err != nil {
		return err
	}
	found, paged, err := jobs.Page(r)
	if err != nil {
		return err
	}
	p.List, p.Paged = shell.Rows(found), paged
	return h.Listed(w, r, p.Results(), p.Page())
}

// jobs returns the jobs of all databases that the filter of the list selects, the newest first.
func (h *handlers) jobs(r *http.Request) (p workpages.WorkList, l shell.List[shell.Found[job.Job], string], _ error) {
	var q job.Query
	var broken fault.Fields
	p.State = strings.TrimSpace(r.FormValue("state"))
	if s := shell.Choice(r, "state", job.States(), &broken); s != "" {
		q.States = []job.State{s}
	}
	return p, shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[job.Job, int64] {
		return shell.List[job.Job, int64]{Keys: shell.IDs(), Broken: broken.List, Read: func(before int64, limit int) ([]job.Job, error) {
			q := q
			q.Before, q.Limit = before, limit
			return h.Jobs.Jobs(r.Context(), shell.Actor(r), q)
		}, KeyOf: func(j job.Job) int64 { return j.ID }, File: shell.FileOf("jobs",
			[]string{"id", "kind", "title", "shop_number", "state", "total", "done", "failed", "reason", "detail", "created_by", "created_at", "started_at", "finished_at"},
			func(j job.Job) []any {
				return []any{j.ID, j.Kind, j.Title, j.ShopNumber, string(j.State), j.Total, j.Done, j.Failed, j.Reason, j.Detail,
					j.CreatedBy, j.CreatedAt, j.StartedAt, j.FinishedAt}
			})}
	}, func(a, b job.Job) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID)) }), nil
}

func (h *handlers) loadWork(r *http.Request) (job.Job, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return job.Job{}, err
	}
	return h.Jobs.Job(r.Context(), shell.Actor(r), id)
}

func (h *handlers) showWork(w http.ResponseWriter, r *http.Request) error {
	j, err := h.loadWork(r)
	if err != nil {
		return err
	}
	p := pageparts.Work{Job: j, MayStop: shell.Actor(r).Can(j.Needs, j.ShopNumber)}
	view := h.JobView(j.Kind)
	if view.Noted != nil {
		p.Noted = view.Noted(j)
	}
	if p.MayStop = p.MayStop && h.mayReadRows(r, j) == nil; p.MayStop && j.Failed+p.Noted > 0 {
		if p.Errors, p.Notes, err = shell.FirstErrors(r, h.Jobs, j, p.Noted); err != nil {
			return err
		}
		if p.Last, err = h.Jobs.LastRowError(r.Context(), shell.Actor(r), j.ID); err != nil {
			return err
		}
	}
	if j.UploadID != 0 && (view.NoFile == nil || !view.NoFile(j)) {
		if u, err := h.Uploads.Upload(r.Context(), j.UploadID); err == nil {
			p.Upload = u.Name
		} else if !errors.Is(err, job.ErrUploadNotFound) {
			return err
		}
	}
	if view.Actions != nil {
		p.Actions = view.Actions(r, j)
	}
	if view.Outcome != nil {
		p.Outcome = view.Outcome(j)
	}
	return h.Either(w, r, p.Card(), p.Page())
}

func (h *handlers) confirmStopWork(w http.ResponseWriter, r *http.Request, j job.Job) error {
	if err := shell.Actor(r).May(j.Needs, j.ShopNumber); err != nil {
		return err
	}
	l, url := shell.Frame(r).Locale, pageparts.Work{Job: j}.URL()
	if j.State.Over() {
		return h.Done(w, r, url, ui.Info, l.T("jobs.over"))
	}
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "jobs", Crumbs: shell.JobCrumbs(r, j), ConfirmProps: ui.ConfirmProps{
		Title: l.T("jobs.cancel.title", j.Title), Points: []string{l.T("jobs.cancel.1", j.Worked()), l.T("jobs.cancel.2")},
		Action: url + "/cancel", Cancel: url, Submit: l.T("jobs.cancel"), Kind: "danger", NoReason: true}})
}

func (h *handlers) stopWork(w http.ResponseWriter, r *http.Request, id int64) error {
	j, err := h.Jobs.Cancel(r.Context(), shell.Actor(r), id)
	url := pageparts.Work{Job: job.Job{ID: id}}.URL()
	if errors.Is(err, job.ErrOver) {
		return h.Done(w, r, url, ui.Info, shell.Say(r, "jobs.over"))
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, url, ui.Good, shell.Say(r, "jobs.cancelled", j.Title))
}

// mayReadRows refuses members who may not see the rows of the job.
func (h *handlers) mayReadRows(r *http.Request, j job.Job) error {
	if view := h.JobView(j.Kind); view.MayReadRows != nil {
		return view.MayReadRows(shell.Actor(r))
	}
	return nil
}

// workErrors sends every row that failed or has a note as a file. The last column distinguishes
// failed rows and notes.
func (h *handlers) workErrors(w http.ResponseWriter, r *http.Request, j job.Job) error {
	if err := h.mayReadRows(r, j); err != nil {
		return err
	}
	return shell.FileOf("errors-"+strconv.FormatInt(j.ID, 10), []string{"line", "row", "error", "kind"}, func(e job.RowError) []any {
		return []any{e.Line, e.Row, ui.RowErrorText(r.Context(), e), user.RowKind(e)}
	}).Send(h.Shell, w, r, func(write func(job.RowError) error) error {
		return h.Jobs.RowErrors(r.Context(), shell.Actor(r), j.ID, write)
	})
}
