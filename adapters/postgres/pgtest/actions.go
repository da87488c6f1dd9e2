package pgtest

import (
	"time"

	"dropbell/domain/template"
)

// Draft creates a template; change may be nil.
func (w *Fixture) Draft(change func(*template.Spec)) template.Template {
	w.Helper()
	s := Spec(2 * time.Hour)
	if change != nil {
		change(&s)
	}
	t, err := w.Service.Create(w.Context(), Actor, s, "")
	w.Must(err)
	return t
}

// Do takes a step of the template.
func (w *Fixture) Do(t template.Template, tr template.Transition) template.Template {
	w.Helper()
	t, err := w.Service.Do(w.Context(), Actor, t.ID, 0, tr, "test")
	w.Must(err)
	return t
}

// Move moves the opening of the template.
func (w *Fixture) Move(t template.Template, to time.Time) template.Template {
	w.Helper()
	now, err := w.Templates.Template(w.Context(), t.ID)
	w.Must(err)
	s := now.Spec
	s.OpensAt, s.ClosesAt = to, to.Add(time.Hour)
	moved, err := w.Service.Edit(w.Context(), Actor, t.ID, template.Edition{Version: now.Version, Spec: s})
	w.Must(err)
	return moved
}
