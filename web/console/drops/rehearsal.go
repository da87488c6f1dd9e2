package drops

import (
	"net/http"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// showRehearsals shows the rehearsals of a drop, and how the running one proceeds.
func (h *handlers) showRehearsals(w http.ResponseWriter, r *http.Request) error {
	t, err := shell.TemplateOf(r, h.Templates)
	if err != nil {
		return err
	}
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
	t, err := shell.OwnTemplate(r, h.Templates)
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
