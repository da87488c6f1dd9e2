package drops

import (
	"errors"
	"fmt"
	"net/http"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// savedValues returns the initial values of the form for a new drop from a saved model: the
// complete drop, on the first free day at the model's time of day.
func (h *handlers) savedValues(r *http.Request, id int64) (values map[string]string, whole bool, err error) {
	m, _, err := h.model(r, id)
	if err != nil {
		return nil, false, err
	}
	zone := m.Drop.Zone()
	opened := m.Drop.OpensAt.In(zone)
	at, err := h.freeDay(r, zone, opened.Hour(), opened.Minute(), everyDay)
	if err != nil {
		return nil, false, err
	}
	if at.IsZero() { // no day is free: the member chooses one
		values = valuesOf(m.Drop)
		for _, name := range []string{"opens_at", "closes_at", "valid_until"} {
			values[name], values[name+"_fold"] = "", ""
		}
		return values, false, nil
	}
	return valuesOf(m.Opening(at)), true, nil
}

// modelQuestion asks for the name under which the drop is saved.
func (h *handlers) modelQuestion(r *http.Request, t template.Template, typed, broken string) pageparts.Confirmation {
	l := shell.Frame(r).Locale
	return pageparts.Confirmation{Active: "templates", Crumbs: shell.TemplateCrumbs(r, t),
		Inside: ui.Field(ui.FieldProps{Name: "name", Label: l.T("models.name"), Value: typed, Error: broken, Required: true, MaxLength: fmt.Sprint(template.MaxModelName), Autocomplete: "off"}),
		ConfirmProps: ui.ConfirmProps{Title: l.T("models.save_title", t.Name), Points: []string{l.T("models.save.1"), l.T("models.save.2")},
			Action: shell.TemplateURL(t.ID) + "/model", Cancel: shell.TemplateURL(t.ID), Submit: l.T("models.save"), Kind: "primary", NoReason: true}}
}

func (h *handlers) modelForm(w http.ResponseWriter, r *http.Request, t template.Template) error {
	name := []rune(t.Name)
	return h.Ask(w, r, http.StatusOK, h.modelQuestion(r, t, string(name[:min(len(name), template.MaxModelName)]), ""))
}

func (h *handlers) saveModel(w http.ResponseWriter, r *http.Request, t template.Template) error {
	typed := r.PostFormValue("name")
	m, err := h.Models.Save(r.Context(), shell.Actor(r), t.ID, typed)
	switch broken := modelErrors(err); {
	case len(broken) > 0:
		return h.Ask(w, r, statusOf(err), h.modelQuestion(r, t, typed, ui.FieldText(r.Context(), broken[0])))
	case err != nil:
		return err
	}
	return h.Done(w, r, fmt.Sprintf("/templates/models#model-%d", m.ID), ui.Good, shell.Say(r, "models.saved_as", m.Name))
}

// modelErrors returns the errors about the name of a model; nil for any other error.
func modelErrors(err error) []fault.Field {
	if fields := shell.FieldsOf(err); fields != nil {
		return fields
	}
	if errors.Is(err, template.ErrModelTaken) || errors.Is(err, template.ErrTooManyModels) {
		return []fault.Field{{Name: "name", Key: "fault." + fault.CodeOf(err), Message: err.Error()}}
	}
	return nil
}

func statusOf(err error) int {
	if fault.KindOf(err) == fault.Conflict {
		return http.StatusConflict
	}
	return http.StatusUnprocessableEntity
}

func (h *handlers) renameModel(w http.ResponseWriter, r *http.Request, id int64) error {
	typed := r.PostFormValue("name")
	_, err := h.Models.Rename(r.Context(), shell.Actor(r), id, typed)
	if broken := modelErrors(err); len(broken) > 0 {
		return h.drawModels(w, r, statusOf(err), droppages.Models{Renaming: id, NewName: typed, Errors: broken})
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, "/templates/models", ui.Good, shell.Say(r, "models.renamed"))
}

func (h *handlers) deleteModel(w http.ResponseWriter, r *http.Request, id int64) error {
	m, err := h.Models.Delete(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	return h.DoneUndoable(w, r, "/templates/models", shell.Say(r, "models.deleted", m.Name), ui.Undo{Action: fmt.Sprintf("/templates/models/%d/restore", id)})
}

func (h *handlers) restoreModel(w http.ResponseWriter, r *http.Request, id int64) error {
	m, undone, err := h.Models.Restore(r.Context(), shell.Actor(r), id)
	if modelErrors(err) != nil { // the name, or the last place, is taken by now
		return h.Done(w, r, "/templates/models", ui.Warn, ui.FaultText(r.Context(), err))
	}
	if err != nil {
		return err
	}
	return h.Undone(w, r, "/templates/models", m.Name, undone)
}
