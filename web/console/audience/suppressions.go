package audience

import (
	"errors"
	"net/http"
	"strings"

	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// suppressionFilter reads the filter of the list; unreadable fields are among the page's errors.
func suppressionFilter(r *http.Request) (p audiencepages.Suppressions) {
	var broken fault.Fields
	p.Search, p.Reason = strings.TrimSpace(r.FormValue("q")), shell.Choice(r, "reason", feedback.Reasons(), &broken)
	p.Errors, p.Masked = broken.List, !shell.Actor(r).SeesContacts()
	return p
}

func (h *handlers) listSuppressions(w http.ResponseWriter, r *http.Request) error {
	p := suppressionFilter(r)
	if len(p.Errors) > 0 {
		return h.Listed(w, r, p.Results(), p.Page())
	}
	var err error
	if p.Search != "" {
		p.List, err = h.foundSuppression(r, p)
	} else {
		err = h.latestSuppressions(r, &p)
	}
	if err != nil {
		return err
	}
	if !p.Masked {
		p.Export = shell.ExportURL(r)
		return h.Listed(w, r, p.Results(), p.Page())
	}
	for i := range p.List {
		p.List[i] = maskedSuppression(p.List[i])
	}
	return h.Listed(w, r, p.Results(), p.Page())
}

// foundSuppression returns the suppression of the searched address, if it has the chosen reason.
func (h *handlers) foundSuppression(r *http.Request, p audiencepages.Suppressions) ([]feedback.Suppression, error) {
	s, err := h.Suppressions.Find(r.Context(), shell.Actor(r), p.Search)
	switch {
	case errors.Is(err, feedback.ErrNotSuppressed):
		return nil, nil
	case err != nil || p.Reason != "" && p.Reason != s.Reason:
		return nil, err
	}
	return []feedback.Suppression{s}, nil
}

func (h *handlers) latestSuppressions(r *http.Request, p *audiencepages.Suppressions) error {
	after := shell.Places(".").In(r)
	list, next, err := h.Suppressions.Latest(r.Context(), shell.Actor(r), p.Reason, feedback.Place{Since: after.At, Hash: after.ID}, shell.PageSize)
	p.List, p.Paged = list, shell.Places(".").Paged(r, len(list), next != (feedback.Place{}), shell.Place{At: next.Since, ID: next.Hash})
	return err
}

func maskedSuppression(s feedback.Suppression) feedback.Suppression {
	s.Address, s.Cause = user.MaskEmail(s.Address), user.MaskText(s.Cause)
	return s
}

// suppressionOf returns the suppression of the user's mail address as the viewer may see it; nil if
// there is none.
func (h *handlers) suppressionOf(r *http.Request, u user.User) (*feedback.Suppression, error) {
	if u.Email == "" {
		return nil, nil
	}
	s, err := h.Suppressions.Find(r.Context(), shell.Actor(r), u.Email)
	switch {
	case errors.Is(err, feedback.ErrNotSuppressed):
		return nil, nil
	case err != nil:
		return nil, err
	case !shell.Actor(r).SeesContacts():
		s = maskedSuppression(s)
	}
	return &s, nil
}

// exportSuppressions sends all suppressions that the filter selects, by address. The export is
// recorded, because contacts leave the system.
func (h *handlers) exportSuppressions(w http.ResponseWriter, r *http.Request) error {
	p := suppressionFilter(r)
	if len(p.Errors) > 0 {
		return &fault.Fields{List: p.Errors}
	}
	if err := h.Audit.Record(r.Context(), staff.Entry{Actor: shell.Actor(r), Action: "suppression.export", ObjectKind: "suppression",
		After: map[string]string{"address": p.Search, "reason": p.Reason}}); err != nil {
		return err
	}
	return shell.List[feedback.Suppression, string]{Read: func(after string, limit int) ([]feedback.Suppression, error) {
		if p.Search != "" {
			return h.foundSuppression(r, p)
		}
		return h.Suppressions.List(r.Context(), shell.Actor(r), "", after, limit)
	}, KeyOf: func(s feedback.Suppression) string { return s.Address }, File: shell.FileOf(
		"suppressions", []string{"address", "reason", "provider", "cause", "since"}, func(s feedback.Suppression) []any {
			if p.Reason != "" && s.Reason != p.Reason {
				return nil
			}
			return []any{s.Address, s.Reason, s.Provider, s.Cause, s.Since}
		})}.Send(h.Shell, w, r)
}

func (h *handlers) newSuppression(w http.ResponseWriter, r *http.Request) error {
	return h.Show(w, r, http.StatusOK, audiencepages.SuppressionForm{}.Page())
}

func (h *handlers) addSuppression(w http.ResponseWriter, r *http.Request) error {
	p := audiencepages.SuppressionForm{Address: strings.TrimSpace(r.PostFormValue("address")), Cause: strings.TrimSpace(r.PostFormValue("cause"))}
	_, added, err := h.Suppressions.Add(r.Context(), shell.Actor(r), p.Address, p.Cause)
	if p.Errors = shell.FieldsOf(err); p.Errors != nil {
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
	}
	if err != nil {
		return err
	}
	if !added {
		return h.Done(w, r, "/suppressions", ui.Info, shell.Say(r, "suppressions.added_before"))
	}
	return h.Done(w, r, "/suppressions", ui.Good, shell.Say(r, "suppressions.added"))
}

func (h *handlers) confirmRelease(w http.ResponseWriter, r *http.Request) error {
	s, err := h.Suppressions.Find(r.Context(), shell.Actor(r), r.FormValue("address"))
	if err != nil {
		return h.notReleased(w, r, err)
	}
	l := shell.Frame(r).Locale
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "suppressions", Crumbs: []ui.Crumb{{Label: l.T("nav.suppressions"), URL: "/suppressions"}},
		ConfirmProps: ui.ConfirmProps{Title: l.T("suppressions.release.title", s.Address), Points: []string{l.T("suppressions.release.1"), l.T("suppressions.release.2")},
			Action: "/suppressions/release", Hidden: [][2]string{{"address", s.Address}}, Cancel: "/suppressions", Submit: l.T("suppressions.release"), Kind: "primary", NoReason: true}})
}

func (h *handlers) releaseSuppression(w http.ResponseWriter, r *http.Request) error {
	if err := h.Suppressions.Release(r.Context(), shell.Actor(r), r.PostFormValue("address")); err != nil {
		return h.notReleased(w, r, err)
	}
	return h.Done(w, r, "/suppressions", ui.Good, shell.Say(r, "suppressions.released"))
}

// notReleased redirects to the list, which may have been outdated.
func (h *handlers) notReleased(w http.ResponseWriter, r *http.Request, err error) error {
	if !errors.Is(err, feedback.ErrNotSuppressed) {
		return err
	}
	return h.Done(w, r, "/suppressions", ui.Bad, shell.Say(r, "fault.suppression_not_found"))
}
