package coupons

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
)

// listGrants lists the lists of one template, or of all.
func (h *handlers) listGrants(w http.ResponseWriter, r *http.Request) error {
	var p couponpages.Grants
	var templateID int64
	if r.PathValue("id") != "" {
		t, err := shell.TemplateOf(h.Templates)(r)
		if err != nil {
			return err
		}
		p.Template, templateID = &t, t.ID
		p.MayGive = shell.Actor(r).Can(staff.ManageUsers, t.ShopNumber)
	}
	list, paged, err := h.allGrants(r, templateID).Page(r)
	if err != nil {
		return err
	}
	p.Paged = paged
	for _, j := range shell.Rows(list) {
		g := couponpages.GrantRow{Job: j}
		_ = json.Unmarshal(j.Params, &g.Params) // was written by this program
		p.List = append(p.List, g)
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// allGrants returns the lists of users who are given coupons in all databases: of one template, or of all
// (0).
func (h *handlers) allGrants(r *http.Request, templateID int64) shell.List[shell.Found[job.Job], string] {
	return shell.Joined(h.Shell, r, h.cells, func(h *handlers, r *http.Request) shell.List[job.Job, int64] { return h.grants(r, templateID) }, func(a, b job.Job) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
}

// grants returns the lists of this database.
func (h *handlers) grants(r *http.Request, templateID int64) shell.List[job.Job, int64] {
	return shell.List[job.Job, int64]{Keys: shell.IDs(), Read: func(before int64, limit int) ([]job.Job, error) {
		return h.Grants.List(r.Context(), shell.Actor(r), coupon.GrantQuery{TemplateID: templateID, Before: before, Limit: limit})
	}, KeyOf: func(j job.Job) int64 { return j.ID }, File: shell.FileOf("grants",
		[]string{"id", "template_id", "shop_number", "title", "dry_run", "why", "state", "total", "done", "failed", "reason", "detail",
			"created_by", "created_at", "started_at", "finished_at", "file"},
		func(j job.Job) []any {
			var p coupon.GrantParams
			_ = json.Unmarshal(j.Params, &p) // was written by this program
			return []any{j.ID, p.TemplateID, j.ShopNumber, j.Title, p.DryRun, p.Reason, string(j.State), j.Total, j.Done, j.Failed, j.Reason, j.Detail,
				j.CreatedBy, j.CreatedAt, j.StartedAt, j.FinishedAt, p.File}
		})}
}

// exportedGrants are the lists of the template that is named, or of all.
func (h *handlers) exportedGrants(r *http.Request) (id int64, l shell.List[shell.Found[job.Job], string], err error) {
	id, err = namedTemplate(r)
	return id, h.allGrants(r, id), err
}

// grantFile is a file to fill in.
func (h *handlers) grantFile(w http.ResponseWriter, r *http.Request) error {
	return shell.FileOf("coupons", []string{"user_id"}, func(id int64) []any { return []any{id} }).Send(h.Shell, w, r, shell.Each([]int64{1001, 1002}))
}

// loadGiving loads the template of the address for members who may give its coupons.
func (h *handlers) loadGiving(r *http.Request) (template.Template, error) {
	t, err := shell.TemplateOf(h.Templates)(r)
	if err != nil {
		return t, err
	}
	return t, shell.Actor(r).May(staff.ManageUsers, t.ShopNumber)
}

func (h *handlers) newGrant(w http.ResponseWriter, r *http.Request, t template.Template) error {
	return h.Show(w, r, http.StatusOK, couponpages.GrantStart{Template: t}.Page())
}

// startGrant stores the list and starts the dry run, which reports the effect.
func (h *handlers) startGrant(w http.ResponseWriter, r *http.Request) error {
	t, err := h.loadGiving(r) // before anything is stored
	if err != nil {
		return err
	}
	refused := func(list []fault.Field) error {
		return h.Show(w, r, http.StatusUnprocessableEntity, couponpages.GrantStart{Template: t, Errors: list}.Page())
	}
	if coupon.CheckGiving(t, true, h.Now()) != nil { // the page says why
		return h.Show(w, r, http.StatusConflict, couponpages.GrantStart{Template: t}.Page())
	}
	u, _, err := h.Files.Receive(r)
	if list := shell.FieldsOf(err); list != nil {
		return refused(list)
	}
	if err != nil {
		return err
	}
	if err := h.unusable(r, u.ID); err != nil {
		h.Files.Remove(r, u.ID)
		if status, list := upload.Refused(w, err); list != nil {
			return h.Show(w, r, status, couponpages.GrantStart{Template: t, Errors: list}.Page())
		}
		return err
	}
	p := coupon.GrantParams{TemplateID: t.ID, DryRun: true, Source: coupon.Source{File: u.Name}}
	j, err := h.Grants.Start(r.Context(), shell.Actor(r), p, u.ID, "")
	if err != nil {
		h.Files.Remove(r, u.ID)
		return err
	}
	return h.Done(w, r, couponpages.GrantURL(j.ID), "", "")
}

// unusable returns the errors at the beginning of an uploaded list, so that the list is refused at
// once and not by the job.
func (h *handlers) unusable(r *http.Request, upload int64) error {
	s, err := h.Files.Sample(r, upload, job.Reading{})
	if err != nil {
		return err
	}
	switch column, heading := coupon.UserColumn(s.Header); {
	case column < 0:
		return &fault.Fields{List: []fault.Field{{Name: "file", Key: "rule.user_column", Message: coupon.ErrNoUserColumn.Text}}}
	case heading && s.Bare:
		return &fault.Fields{List: []fault.Field{{Name: "file", Key: "rule.list_rows", Message: coupon.ErrNoGrants.Text}}}
	}
	return nil
}

// loadGrant returns the page of the grant in the address, without its rows.
func (h *handlers) loadGrant(r *http.Request) (p couponpages.Grant, err error) {
	id, err := shell.PathID(r)
	if err != nil {
		return p, err
	}
	if p.Job, p.Params, err = h.Grants.Job(r.Context(), shell.Actor(r), id); err != nil {
		return p, err
	}
	if p.Template, err = h.Templates.Template(r.Context(), shell.Actor(r), p.Params.TemplateID); err != nil {
		return p, err
	}
	p.MayGive = shell.Actor(r).Can(staff.ManageUsers, p.Template.ShopNumber)
	p.Job, p.Counts, err = h.Grants.Outcome(r.Context(), p.Job)
	return p, err
}

func (h *handlers) showGrant(w http.ResponseWriter, r *http.Request) error {
	p, err := h.loadGrant(r)
	if err != nil {
		return err
	}
	if p.TakesBack() {
		if p.MayGive && p.Job.Failed > 0 {
			if p.Errors, _, err = shell.FirstErrors(r, h.Jobs, p.Job, 0); err != nil {
				return err
			}
		}
		return h.Either(w, r, p.Card(), p.Page())
	}
	if p.Applied, err = h.Grants.Applied(r.Context(), p.Job, p.Params); err != nil {
		return err
	}
	if p.MayGive && p.Job.State.Over() && p.Applied == 0 {
		if err := h.grantLines(r, &p); err != nil {
			return err
		}
	}
	return h.Either(w, r, p.Card(), p.Page())
}

func (h *handlers) grantLines(r *http.Request, p *couponpages.Grant) (err error) {
	if _, known := p.Counts[r.FormValue("result")]; known {
		p.Result = r.FormValue("result")
	}
	p.Rows, p.Paged, err = shell.List[coupon.GrantRow, int64]{Keys: shell.Lines(), Read: func(after int64, limit int) ([]coupon.GrantRow, error) {
		return h.Grants.Lines(r.Context(), shell.Actor(r), p.Job, p.Result, after, limit)
	}, KeyOf: func(row coupon.GrantRow) int64 { return row.Line }}.Page(r)
	shell.NameEach(h.Shell, r, p.Rows, func(row coupon.GrantRow) user.ID { return row.UserID })
	return err
}

func (h *handlers) grantResults(w http.ResponseWriter, r *http.Request, p couponpages.Grant) error {
	if p.TakesBack() {
		return shell.ErrNoPage
	}
	if err := shell.Actor(r).May(staff.ManageUsers, p.Template.ShopNumber); err != nil {
		return err
	}
	head := []string{"line", "user_id", "result", "coupon_id"}
	return shell.FileOf(fmt.Sprintf("grant-%d", p.Job.ID), head, func(g coupon.GrantRow) []any {
		var who, what any = "", ""
		if who = g.Input; g.UserID != 0 {
			who = int64(g.UserID)
		}
		if g.CouponID != 0 {
			what = g.CouponID
		}
		return []any{g.Line, who, g.Result, what}
	}).Send(h.Shell, w, r, func(write func(coupon.GrantRow) error) error {
		return h.Grants.Results(r.Context(), shell.Actor(r), p.Job.ID, write)
	})
}

// grantStep is the confirmation of the step in the address.
func (h *handlers) grantStep(r *http.Request, p couponpages.Grant, broken string) pageparts.Confirmation {
	l, url := shell.Frame(r).Locale, couponpages.GrantURL(p.Job.ID)
	ask := pageparts.Confirmation{Active: "templates", Crumbs: p.Crumbs(r.Context()), ConfirmProps: ui.ConfirmProps{Cancel: url, Reason: shell.Reason(r),
		NeedsReason: true, ReasonError: broken, Hidden: [][2]string{{"request_key", shell.RequestKey(r)}}}}
	if r.PathValue("step") == "apply" {
		ask.Title, ask.Submit, ask.Action, ask.Kind = l.T("grants.apply.title", p.Template.Name), l.T("grants.apply"), url+"/apply", "primary"
		ask.Points = []string{l.N("grants.apply.1", p.Job.Done), l.T("grants.apply.2")}
		if p.Job.Failed > 0 {
			ask.Points = append(ask.Points, l.N("grants.apply.failed", p.Job.Failed))
		}
		if left := p.Template.StockLeft(); left < p.Job.Done {
			ask.Points = append(ask.Points, l.T("grants.apply.short", left))
		}
		return ask
	}
	ask.Title, ask.Submit, ask.Action, ask.Kind = l.T("grants.takeback.title", p.Template.Name), l.T("grants.takeback"), url+"/takeback", "danger"
	ask.Points = []string{l.N("grants.takeback.1", p.Job.Done), l.T("grants.takeback.2"), l.T("coupon.revoke.2")}
	ask.Inside = couponpages.ReturnChoice(r.PostFormValue("stock") != "")
	return ask
}

// loadGrantStep loads the grant for members who may take a step of it.
func (h *handlers) loadGrantStep(r *http.Request) (couponpages.Grant, error) {
	p, err := h.loadGrant(r)
	if err != nil {
		return p, err
	}
	if p.TakesBack() {
		return p, shell.ErrNoPage
	}
	return p, shell.Actor(r).May(staff.ManageUsers, p.Template.ShopNumber)
}

func (h *handlers) confirmGrantStep(w http.ResponseWriter, r *http.Request) error {
	p, err := h.loadGrantStep(r)
	if err != nil {
		return err
	}
	if r.PathValue("step") == "apply" { // another request may have applied it
		id, err := h.Grants.Applied(r.Context(), p.Job, p.Params)
		if err != nil {
			return err
		}
		if id != 0 {
			j, err := h.Jobs.Job(r.Context(), shell.Actor(r), id)
			if err != nil {
				return err
			}
			return h.Done(w, r, couponpages.GrantURL(id), ui.Info, appliedBy(r, j))
		}
		if err := p.Params.CheckApplying(p.Job, p.Template, h.Now()); err != nil {
			return err
		}
	}
	return h.Ask(w, r, http.StatusOK, h.grantStep(r, p, ""))
}

// appliedBy describes the job that another member has started.
func appliedBy(r *http.Request, j job.Job) string {
	return shell.Say(r, "grants.applied_by", pageparts.ActorName(r.Context(), j.CreatedBy))
}

func (h *handlers) takeGrantStep(w http.ResponseWriter, r *http.Request, p couponpages.Grant) error {
	err := coupon.CheckReason(shell.Reason(r))
	var j job.Job
	tone, said := ui.Good, shell.Say(r, "grants.started")
	switch {
	case err != nil:
	case r.PathValue("step") == "apply":
		var first bool
		if j, first, err = h.Grants.Apply(r.Context(), shell.Actor(r), p.Job.ID, shell.Reason(r)); err == nil && !first && !j.By(shell.Actor(r)) {
			tone, said = ui.Info, appliedBy(r, j)
		}
	default:
		said = shell.Say(r, "grants.taking_back")
		j, err = h.Grants.TakeBack(r.Context(), shell.Actor(r), p.Job.ID, shell.Reason(r), r.PostFormValue("stock") != "", shell.RequestKey(r))
	}
	if broken := ui.ErrorOf(r.Context(), shell.FieldsOf(err), "reason"); broken != "" {
		return h.Ask(w, r, http.StatusUnprocessableEntity, h.grantStep(r, p, broken))
	}
	if fault.KindOf(err) == fault.Conflict {
		ask := h.grantStep(r, p, "")
		ask.Error = ui.FaultText(r.Context(), err)
		return h.Ask(w, r, http.StatusConflict, ask)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, couponpages.GrantURL(j.ID), tone, said)
}

// showGrantJobs registers how the pages of jobs show grants.
func (h *handlers) showGrantJobs() {
	h.ShowJobs(shell.JobView{NoFile: namedUsers, Actions: func(r *http.Request, j job.Job) []ui.ButtonProps {
		return []ui.ButtonProps{{Label: shell.Say(r, "grants.open"), Icon: "ticket", URL: couponpages.GrantURL(j.ID)}}
	}}, coupon.GrantKind, coupon.TakeBackKind)
}

// namedUsers reports whether the job's users came in a request and not in a file.
func namedUsers(j job.Job) bool {
	var p coupon.GrantParams
	return json.Unmarshal(j.Params, &p) == nil && p.IDs
}
