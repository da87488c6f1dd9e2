package drops

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// maxPicked bounds how many templates can be chosen one by one.
const maxPicked = 1000

// listFilters are the parameters of the filter of the list of templates.
func listFilters() []string { return []string{"q", "state", "shop", "from", "to"} }

// bulkOf reads one step for many templates: the ticked templates, the templates that an earlier job
// changed, or all templates that the list's filter selects. It returns a [fault.Fields] if the
// filter cannot be read.
func (h *handlers) bulkOf(r *http.Request) (template.Bulk, error) {
	b := template.Bulk{Transition: template.Transition(r.FormValue("step"))}
	if id, err := strconv.ParseInt(r.FormValue("undo"), 10, 64); err == nil {
		return h.undoOf(r, id)
	}
	if r.FormValue("all") != "" {
		p, q, err := h.templateQuery(r)
		if err != nil {
			return b, err
		}
		if len(p.Errors) > 0 {
			return b, &fault.Fields{List: p.Errors}
		}
		b.Selection = template.Selection{All: true, Search: q.Search, States: q.States, Shops: q.Shops, From: q.From, To: q.To}
		return b, nil
	}
	for _, text := range r.Form["id"] {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 && !slices.Contains(b.IDs, id) && len(b.IDs) < maxPicked {
			b.IDs = append(b.IDs, id)
		}
	}
	return b, nil
}

// unread redirects to the list whose filter cannot be read, if err says so.
func (h *handlers) unread(w http.ResponseWriter, r *http.Request, err error) error {
	if shell.FieldsOf(err) == nil {
		return err
	}
	again := url.Values{}
	for _, name := range listFilters() {
		if r.FormValue(name) != "" {
			again[name] = r.Form[name]
		}
	}
	return h.Done(w, r, "/templates?"+again.Encode(), ui.Warn, shell.Say(r, "bulk.unread"))
}

// undoOf is the step that takes a finished job back.
func (h *handlers) undoOf(r *http.Request, id int64) (b template.Bulk, err error) {
	j, err := h.Jobs.Job(r.Context(), shell.Actor(r), id)
	if err != nil {
		return b, err
	}
	done, result, ok := undoable(j)
	if !ok {
		return b, job.ErrOver
	}
	back, _ := done.Transition.Undo()
	return template.Bulk{Transition: back, Selection: template.Selection{IDs: result.IDs}, UndoOf: id}, nil
}

// undoable returns the step and the result of a job. ok reports whether the job can be undone.
func undoable(j job.Job) (b template.Bulk, result template.BulkResult, ok bool) {
	if j.Kind != template.BulkKind || !j.State.Over() || json.Unmarshal(j.Params, &b) != nil || json.Unmarshal(j.Result, &result) != nil {
		return b, result, false
	}
	_, can := b.Transition.Undo()
	return b, result, can && len(result.IDs) > 0
}

// confirmBulk shows the effect of the step before it is taken.
func (h *handlers) confirmBulk(w http.ResponseWriter, r *http.Request) error {
	parts, err := h.bulkParts(r)
	if err != nil {
		return h.unread(w, r, err)
	}
	rehearsal, err := rehearseBulk(r, parts)
	if shell.FieldsOf(err) != nil {
		return h.Done(w, r, "/templates", ui.Warn, ui.FieldText(r.Context(), shell.FieldsOf(err)[0]))
	}
	if err != nil {
		return err
	}
	l := shell.Frame(r).Locale
	b := parts[0].Bulk
	step, kind, keep := string(b.Transition), "primary", ""
	submit := l.T("do." + step)
	if b.Transition == template.Closing || b.Transition == template.Cancelling {
		kind = "danger"
	}
	if b.Transition == template.Cancelling {
		keep, submit = l.T("bulk.keep"), l.T("bulk.do.cancel")
	}
	hidden := [][2]string{{"step", step}, {"request_key", rand.Text()}}
	switch {
	case b.UndoOf != 0:
		hidden = append(hidden, [2]string{"undo", strconv.FormatInt(b.UndoOf, 10)})
	case b.All:
		hidden = append(hidden, [2]string{"all", "1"})
		for name, values := range r.Form {
			if slices.Contains(listFilters(), name) {
				for _, v := range values {
					hidden = append(hidden, [2]string{name, v})
				}
			}
		}
	default:
		for _, p := range parts {
			for _, id := range p.IDs {
				hidden = append(hidden, [2]string{"id", strconv.FormatInt(id, 10)})
			}
		}
	}
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "templates", Crumbs: []ui.Crumb{{Label: l.T("nav.templates"), URL: "/templates"}},
		Inside: droppages.BulkSummary(rehearsal), ConfirmProps: ui.ConfirmProps{Title: l.N("bulk."+step+".title", int64(rehearsal.Total())), Points: []string{l.T("bulk." + step + ".1")},
			Action: "/templates/bulk", Cancel: "/templates", Keep: keep, Submit: submit, Kind: kind, Hidden: hidden}})
}

func (h *handlers) startBulk(w http.ResponseWriter, r *http.Request) error {
	parts, err := h.bulkParts(r)
	if err != nil {
		return h.unread(w, r, err)
	}
	to := "/templates" // the jobs of several databases have no common page
	for _, b := range parts {
		b.Reason = shell.Reason(r)
		title := shell.Say(r, "bulk."+string(b.Transition)+".all")
		if !b.All {
			title = shell.Frame(r).Locale.N("bulk."+string(b.Transition)+".title", int64(len(b.IDs)))
		}
		j, err := b.Bulks.Start(r.Context(), shell.Actor(r), b.Bulk, title, r.PostFormValue("request_key"))
		if shell.FieldsOf(err) != nil {
			return h.Done(w, r, "/templates", ui.Warn, ui.FieldText(r.Context(), shell.FieldsOf(err)[0]))
		}
		if err != nil {
			return err
		}
		if len(parts) == 1 {
			to = pageparts.Work{Job: j}.URL()
		}
	}
	return h.Done(w, r, to, ui.Good, shell.Say(r, "bulk.started"))
}

// bulkActions offers to take a finished bulk job back.
func (h *handlers) bulkActions(r *http.Request, j job.Job) []ui.ButtonProps {
	b, result, ok := undoable(j)
	if !ok || !shell.Actor(r).Can(staff.ManageTemplates, 0) {
		return nil
	}
	back, _ := b.Transition.Undo()
	q := url.Values{"undo": {strconv.FormatInt(j.ID, 10)}, "step": {string(back)}}
	return []ui.ButtonProps{{Label: shell.Frame(r).Locale.N("bulk.undo."+string(back), int64(len(result.IDs))), Icon: "refresh",
		URL: fmt.Sprintf("/templates/bulk?%s", q.Encode()), Dialog: true}}
}

// showBulkJobs sets the content of the job pages of bulk steps.
func (h *handlers) showBulkJobs() {
	h.ShowJobs(shell.JobView{Actions: h.bulkActions}, template.BulkKind)
}
