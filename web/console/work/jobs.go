package work

import (
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
	before, _ := strconv.ParseInt(r.FormValue("before"), 10, 64) // nonsense is the beginning
	p, q := workQuery(r)
	if len(p.Errors) > 0 {
		return h.Listed(w, r, p.Results(), p.Page())
	}
	p.Export, q.Before, q.Limit = shell.ExportURL(r), max(0, before), shell.PageSize+1
	list, err := h.Jobs.Jobs(r.Context(), shell.Actor(r), q)
	if err != nil {
		return err
	}
	p.List = list[:min(len(list), shell.PageSize)]
	if len(list) > shell.PageSize {
		p.Next = shell.WithQuery(r, "before", strconv.FormatInt(p.List[shell.PageSize-1].ID, 10))
	}
	if before > 0 {
		p.First = shell.WithQuery(r, "before", "")
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

// workQuery reads which jobs are meant; unreadable fields are among the page's errors.
func workQuery(r *http.Request) (p workpages.WorkList, q job.Query) {
	var broken fault.Fields
	p.State = strings.TrimSpace(r.FormValue("state"))
	if s := shell.Choice(r, "state", job.States(), &broken); s != "" {
		q.States = []job.State{s}
	}
	p.Errors = broken.List
	return p, q
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

func (h *handlers) confirmStopWork(w http.ResponseWriter, r *http.Request) error {
	j, err := h.loadWork(r)
	if err != nil {
		return err
	}
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

func (h *handlers) stopWork(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
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

// mayReadRows refuses rows of the job to members who may not see them.
func (h *handlers) mayReadRows(r *http.Request, j job.Job) error {
	if view := h.JobView(j.Kind); view.MayReadRows != nil {
		return view.MayReadRows(shell.Actor(r))
	}
	return nil
}

// workErrors sends every row that failed or has a note as a file, whose last
// column distinguishes the two.
func (h *handlers) workErrors(w http.ResponseWriter, r *http.Request) error {
	j, err := h.loadWork(r)
	if err != nil {
		return err
	}
	if err := h.mayReadRows(r, j); err != nil {
		return err
	}
	return h.Export(w, r, "errors-"+strconv.FormatInt(j.ID, 10), []string{"line", "row", "error", "kind"}, func(t *shell.Sheet) error {
		return h.Jobs.RowErrors(r.Context(), shell.Actor(r), j.ID, func(e job.RowError) error {
			return t.Row(e.Line, e.Row, ui.RowErrorText(r.Context(), e), user.RowKind(e))
		})
	})
}

// exportWork sends every job that the list's filter selects.
func (h *handlers) exportWork(w http.ResponseWriter, r *http.Request) error {
	p, q := workQuery(r)
	if len(p.Errors) > 0 {
		return &fault.Fields{List: p.Errors}
	}
	q.Limit = shell.ExportPage
	head := []string{"id", "kind", "title", "shop_number", "state", "total", "done", "failed", "reason", "detail", "created_by", "created_at", "started_at", "finished_at"}
	return h.Export(w, r, "jobs", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *job.Job) ([]job.Job, error) {
			if last != nil {
				q.Before = last.ID
			}
			return h.Jobs.Jobs(r.Context(), shell.Actor(r), q)
		}, func(j job.Job) error {
			return s.Row(j.ID, j.Kind, j.Title, j.ShopNumber, string(j.State), j.Total, j.Done, j.Failed, j.Reason, j.Detail,
				j.CreatedBy, j.CreatedAt, j.StartedAt, j.FinishedAt)
		})
	})
}
