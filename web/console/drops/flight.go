package drops

import (
	"net/http"

	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

// showFlight checks the drop and shows the result.
func (h *handlers) showFlight(w http.ResponseWriter, r *http.Request, t template.Template) error {
	c, err := h.Flight.Check(r.Context(), shell.Actor(r), t.ID)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, droppages.Flight{Template: t, Check: c}.Page())
}
