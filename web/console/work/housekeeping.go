package work

import (
	"net/http"

	workpages "dropbell/views/pages/work"
)

// showHousekeeping shows the progress of the removal of old rows.
func (h *handlers) showHousekeeping(w http.ResponseWriter, r *http.Request) error {
	steps, err := h.Housekeeping.Steps(r.Context())
	if err != nil {
		return err
	}
	archived, err := h.Housekeeping.Archived(r.Context())
	if err != nil {
		return err
	}
	p := workpages.Housekeeping{Steps: steps, Archived: archived, Now: h.Now()}
	return h.Either(w, r, p.Live(), p.Page())
}
