package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	// fewErrors is how many rows that failed a job's page shows, and how many
	// that only have a note.
	fewErrors = 10
	// mostErrors is how many it looks through for them.
	mostErrors = 5000
)

func (c *Console) listWork(w http.ResponseWriter, r *http.Request) error {
	before, _ := strconv.ParseInt(r.FormValue("before"), 10, 64) // nonsense is the beginning
	p, q := workQuery(r)
	if len(p.Errors) > 0 {
		return c.Listed(w, r, p.Results(), p.Page())
	}
	p.Export, q.Before, q.Limit = shell.ExportURL(r), max(0, before), shell.PageSize+1
	list, err := c.Jobs.Jobs(r.Context(), shell.Actor(r), q)
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
	return c.Listed(w, r, p.Results(), p.Page())
}

// workQuery reads which jobs are meant; what cannot be read is among the
// page's errors.
func workQuery(r *http.Request) (p workpages.WorkList, q job.Query) {
	var broken fault.Fields
	p.State = strings.TrimSpace(r.FormValue("state"))
	if s := shell.Choice(r, "state", job.States(), &broken); s != "" {
		q.States = []job.State{s}
	}
	p.Errors = broken.List
	return p, q
}

func (c *Console) loadWork(r *http.Request) (job.Job, error) {
	id, err := shell.PathID(r)
	if err != nil {
		return job.Job{}, err
	}
	return c.Jobs.Job(r.Context(), shell.Actor(r), id)
}

func (c *Console) showWork(w http.ResponseWriter, r *http.Request) error {
	j, err := c.loadWork(r)
	if err != nil {
		return err
	}
	p := pageparts.Work{Job: j, MayStop: shell.Actor(r).Can(j.Needs, j.ShopNumber)}
	p.Noted = importNotes(j)
	if p.MayStop = p.MayStop && c.mayReadRows(r, j) == nil; p.MayStop && j.Failed+p.Noted > 0 {
		if p.Errors, p.Notes, err = c.firstErrors(r, j, p.Noted); err != nil {
			return err
		}
		if p.Last, err = c.Jobs.LastRowError(r.Context(), shell.Actor(r), j.ID); err != nil {
			return err
		}
	}
	if j.UploadID != 0 && !namedUsers(j) {
		if u, err := c.Uploads.Upload(r.Context(), j.UploadID); err == nil {
			p.Upload = u.Name
		} else if !errors.Is(err, job.ErrUploadNotFound) {
			return err
		}
	}
	p.Actions = c.workActions(r, j)
	p.Actions, p.Outcome = append(p.Actions, c.importActions(r, j)...), importOutcome(j)
	return c.Either(w, r, p.Card(), p.Page())
}

// namedUsers reports whether the job reads what a request named: nobody's file.
func namedUsers(j job.Job) bool {
	var p coupon.GrantParams
	return (j.Kind == coupon.GrantKind || j.Kind == coupon.TakeBackKind) && json.Unmarshal(j.Params, &p) == nil && p.IDs
}

// workActions are the buttons of a job's page that only its kind knows.
func (c *Console) workActions(r *http.Request, j job.Job) []ui.ButtonProps {
	switch j.Kind {
	case template.BulkKind:
		return c.bulkActions(r, j)
	case coupon.GrantKind, coupon.TakeBackKind:
		return []ui.ButtonProps{{Label: shell.Say(r, "grants.open"), Icon: "ticket", URL: couponpages.GrantURL(j.ID)}}
	}
	return nil
}

var errEnough = errors.New("enough rows")

// firstErrors returns the first rows that failed, and the first of the noted
// ones that did not.
func (c *Console) firstErrors(r *http.Request, j job.Job, noted int64) (failed, notes []job.RowError, err error) {
	seen, few := 0, func(list []job.RowError, all int64) bool { return int64(len(list)) < min(fewErrors, all) }
	err = c.Jobs.RowErrors(r.Context(), shell.Actor(r), j.ID, func(e job.RowError) error {
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

func workCrumbs(r *http.Request, j job.Job) []ui.Crumb {
	return []ui.Crumb{{Label: shell.Say(r, "nav.jobs"), URL: "/jobs"}, {Label: j.Title, URL: pageparts.Work{Job: j}.URL()}}
}

func (c *Console) confirmStopWork(w http.ResponseWriter, r *http.Request) error {
	j, err := c.loadWork(r)
	if err != nil {
		return err
	}
	if err := shell.Actor(r).May(j.Needs, j.ShopNumber); err != nil {
		return err
	}
	l, url := shell.Frame(r).Locale, pageparts.Work{Job: j}.URL()
	if j.State.Over() {
		return c.Done(w, r, url, ui.Info, l.T("jobs.over"))
	}
	return c.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "jobs", Crumbs: workCrumbs(r, j), ConfirmProps: ui.ConfirmProps{
		Title: l.T("jobs.cancel.title", j.Title), Points: []string{l.T("jobs.cancel.1", j.Worked()), l.T("jobs.cancel.2")},
		Action: url + "/cancel", Cancel: url, Submit: l.T("jobs.cancel"), Kind: "danger", NoReason: true}})
}

func (c *Console) stopWork(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	j, err := c.Jobs.Cancel(r.Context(), shell.Actor(r), id)
	url := pageparts.Work{Job: job.Job{ID: id}}.URL()
	if errors.Is(err, job.ErrOver) {
		return c.Done(w, r, url, ui.Info, shell.Say(r, "jobs.over"))
	}
	if err != nil {
		return err
	}
	return c.Done(w, r, url, ui.Good, shell.Say(r, "jobs.cancelled", j.Title))
}

// mayReadRows refuses rows of a file of users, in which contacts stand, to
// those who may not see contacts.
func (c *Console) mayReadRows(r *http.Request, j job.Job) error {
	if j.Kind != user.ImportJob && j.Kind != user.CheckJob {
		return nil
	}
	return shell.Actor(r).MayEverywhere(staff.ManageUsers)
}

// workErrors sends every row that failed or has a note as a file, whose last
// column tells the two apart.
func (c *Console) workErrors(w http.ResponseWriter, r *http.Request) error {
	j, err := c.loadWork(r)
	if err != nil {
		return err
	}
	if err := c.mayReadRows(r, j); err != nil {
		return err
	}
	return c.Export(w, r, "errors-"+strconv.FormatInt(j.ID, 10), []string{"line", "row", "error", "kind"}, func(t *shell.Sheet) error {
		return c.Jobs.RowErrors(r.Context(), shell.Actor(r), j.ID, func(e job.RowError) error {
			return t.Row(e.Line, e.Row, ui.RowErrorText(r.Context(), e), user.RowKind(e))
		})
	})
}
