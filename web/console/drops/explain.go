package drops

import (
	"errors"
	"net/http"

	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

// explain shows one user's reservations of one template and their outcomes.
func (h *handlers) explain(w http.ResponseWriter, r *http.Request, t template.Template) error {
	id, err := user.ParseID(r.PathValue("user"))
	if err != nil {
		return shell.ErrNoPage
	}
	p := droppages.Explain{Template: t, User: user.User{ID: id}}
	switch u, err := h.Users.User(r.Context(), id); {
	case err == nil:
		p.User = u
	case !errors.Is(err, user.ErrNotFound):
		return err
	}
	p.Timeline, err = h.Explainer.Explain(r.Context(), id, t.ID)
	p.Removed = errors.Is(err, reminder.ErrRowsRemoved)
	if p.Removed || errors.Is(err, reminder.ErrNotReserved) {
		return h.Show(w, r, http.StatusNotFound, p.Page())
	}
	if err != nil {
		return err
	}
	p.Found = true
	return h.Show(w, r, http.StatusOK, p.Page())
}
