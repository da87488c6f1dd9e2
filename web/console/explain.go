package console

import (
	"errors"
	"net/http"

	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/views/pages"
)

// explain tells what one user reserved for one template and what became of it.
func (c *Console) explain(w http.ResponseWriter, r *http.Request) error {
	t, err := c.loadTemplate(r)
	if err != nil {
		return err
	}
	id, err := user.ParseID(r.PathValue("user"))
	if err != nil {
		return errNoPage
	}
	p := pages.Explain{Template: t, User: user.User{ID: id}}
	switch u, err := c.Users.User(r.Context(), id); {
	case err == nil:
		p.User = u
	case !errors.Is(err, user.ErrNotFound):
		return err
	}
	p.Timeline, err = c.Explainer.Explain(r.Context(), id, t.ID)
	if errors.Is(err, reminder.ErrNotReserved) {
		return c.show(w, r, http.StatusNotFound, p.Page())
	}
	if err != nil {
		return err
	}
	p.Found = true
	return c.show(w, r, http.StatusOK, p.Page())
}
