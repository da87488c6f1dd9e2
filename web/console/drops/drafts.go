package drops

import (
	"errors"
	"net/http"
	"strconv"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// undoFor returns the form that undoes the step in the address, which was just taken; nil if it
// cannot be undone.
func (h *handlers) undoFor(r *http.Request, t template.Template, outcome template.Outcome) *ui.Undo {
	step := template.Transition(r.PathValue("step"))
	if outcome != template.Taken || step != template.Pausing && (step != template.Closing || !t.MayReopen(h.Now())) {
		return nil
	}
	fields := [][2]string{{"step", string(step)}, {"version", strconv.FormatInt(t.Version, 10)}}
	if r.PostFormValue("was_paused") != "" {
		fields = append(fields, [2]string{"was_paused", "1"})
	}
	return &ui.Undo{Action: shell.TemplateURL(t.ID) + "/undo", Fields: fields}
}

func (h *handlers) undoStep(w http.ResponseWriter, r *http.Request, id int64) error {
	t, undone, err := h.Templates.Undo(r.Context(), shell.Actor(r), id, template.Undo{Step: template.Transition(r.PostFormValue("step")),
		Version: shell.ShownVersion(r), WasPaused: r.PostFormValue("was_paused") != ""})
	if err != nil {
		return h.NotUndone(w, r, shell.TemplateURL(id), err)
	}
	return h.Undone(w, r, shell.TemplateURL(id), t.Name, undone)
}

// deleteQuestion returns the confirmation of deleting a draft. For a template that is no draft it
// has no submit button.
func (h *handlers) deleteQuestion(r *http.Request, t template.Template) pageparts.Confirmation {
	return pageparts.DeleteDraft(r.Context(), pageparts.Draft{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t), Name: t.Name,
		URL: shell.TemplateURL(t.ID), Version: t.Version, Refusal: t.DeletableAt(h.Now())})
}

func (h *handlers) confirmDelete(w http.ResponseWriter, r *http.Request, t template.Template) error {
	return h.AskStep(w, r, h.deleteQuestion(r, t))
}

func (h *handlers) deleteDraft(w http.ResponseWriter, r *http.Request, id int64) error {
	t, err := h.Templates.Delete(r.Context(), shell.Actor(r), id, shell.ShownVersion(r), shell.Reason(r))
	switch {
	case errors.Is(err, template.ErrNotFound): // the form was sent twice
		return h.showDeleted(w, r)
	case fault.KindOf(err) == fault.Conflict:
		if now, again := shell.OwnTemplate(h.Templates)(r); again == nil {
			t = now
		}
		return h.StepRefused(w, r, h.deleteQuestion(r, t), err, pageparts.FieldLabel)
	case err != nil:
		return err
	}
	return h.DoneUndoable(w, r, "/templates", shell.Say(r, "draft.deleted", t.Name), ui.Undo{Action: shell.TemplateURL(id) + "/restore"})
}

// showDeleted shows how a deleted draft can be restored.
func (h *handlers) showDeleted(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	d, err := h.Templates.DeletedDraft(r.Context(), shell.Actor(r), id)
	if fault.KindOf(err) == fault.Denied {
		err = template.ErrNotFound
	}
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusGone, pageparts.Deleted{DeletedDraft: d, Active: "templates", URL: shell.TemplateURL(id), List: "/templates"}.Page())
}

func (h *handlers) restoreDraft(w http.ResponseWriter, r *http.Request, id int64) error {
	t, undone, err := h.Templates.Restore(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	return h.Undone(w, r, shell.TemplateURL(id), t.Name, undone)
}
