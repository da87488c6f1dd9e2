package drops

import (
	"net/http"

	"dropbell/domain/fault"
	"dropbell/domain/rehearsal"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// showRehearsals shows the rehearsals of a drop, and how the running one proceeds.
func (h *handlers) showRehearsals(w http.ResponseWriter, r *http.Request, t template.Template) error {
	p, err := h.rehearsals(r, t)
	if err != nil {
		return err
	}
	return h.Either(w, r, p.Live(), p.Page())
}

func (h *handlers) rehearsals(r *http.Request, t template.Template) (p droppages.Rehearsals, err error) {
	p.Template = t
	p.List, p.Evening, err = h.Rehearsals.Of(r.Context(), shell.Actor(r), t.ID)
	return p, err
}

// rehearse asks for a rehearsal.
func (h *handlers) rehearse(w http.ResponseWriter, r *http.Request) error {
	t, err := shell.OwnTemplate(h.Templates)(r)
	if err != nil {
		return err
	}
	_, err = h.Rehearsals.Ask(r.Context(), shell.Actor(r), t.ID)
	if fault.KindOf(err) == fault.Conflict {
		p, failed := h.rehearsals(r, t)
		if failed != nil {
			return failed
		}
		p.Error = ui.FaultText(r.Context(), err)
		return h.Show(w, r, http.StatusConflict, p.Page())
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, shell.TemplateURL(t.ID)+"/rehearsal", ui.Good, shell.Say(r, "done.rehearse", t.Name))
}

// dressForm asks whether the drop should get a dress rehearsal.
func (h *handlers) dressForm(w http.ResponseWriter, r *http.Request, t template.Template) error {
	return h.Ask(w, r, http.StatusOK, h.dressQuestion(r, t))
}

func (h *handlers) dressQuestion(r *http.Request, t template.Template) pageparts.Confirmation {
	l := shell.Frame(r).Locale
	return pageparts.Confirmation{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t), ConfirmProps: ui.ConfirmProps{Title: l.T("dress.title", t.Name),
		Points: []string{l.T("dress.who", rehearsal.DressLead), l.T("dress.stock", l.Number(max(1, t.Stock/100))), l.T("dress.real"), l.T("dress.tests")},
		Action: shell.TemplateURL(t.ID) + "/dress", Cancel: shell.TemplateURL(t.ID), Submit: l.T("dress.add"), Kind: "primary", NoReason: true}}
}

// dress adds a dress rehearsal to a draft.
func (h *handlers) dress(w http.ResponseWriter, r *http.Request) error {
	t, err := shell.OwnTemplate(h.Templates)(r)
	if err != nil {
		return err
	}
	_, err = h.Dresses.Add(r.Context(), shell.Actor(r), t.ID)
	if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Invalid {
		return h.StepRefused(w, r, h.dressQuestion(r, t), err, pageparts.FieldLabel)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, shell.TemplateURL(t.ID)+"/doors", ui.Good, shell.Say(r, "done.dress", t.Name))
}
