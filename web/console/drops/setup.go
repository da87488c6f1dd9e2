package drops

import (
	"net/http"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// setup returns the first steps for the overview page. It returns nothing for members who may take
// none of the steps, after all steps are taken, or if the steps are hidden. A member can show them
// again.
func (h *handlers) setup(r *http.Request) (*template.Setup, error) {
	by := shell.Actor(r)
	if by.May(staff.ManageTemplates, 0) != nil {
		return nil, nil
	}
	chosen := ""
	if c, err := r.Cookie(shell.SetupCookie); err == nil {
		chosen = c.Value
	}
	if chosen == shell.SetupHidden || chosen != shell.SetupShown && h.settled.Load() {
		return nil, nil
	}
	s, err := h.Setups.Of(r.Context(), by)
	if err != nil {
		return nil, err
	}
	_, all := s.Done()
	if all && len(by.Shops) == 0 { // as it stays, so it is not asked again and again
		h.settled.Store(true)
	}
	if all && chosen != shell.SetupShown {
		return nil, nil
	}
	return &s, nil
}
