package access

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/web/console/shell"
	"dropbell/web/security"
)

// passwordPath is where the holder of a password link sets the password.
const passwordPath = "/password"

// passwordLinkRoutes are the addresses around password links.
func (h *handlers) passwordLinkRoutes() []shell.Route {
	return []shell.Route{
		shell.Open(shell.Get(passwordPath, "", h.passwordForm)),
		shell.Open(shell.Post(passwordPath, "", h.setPassword)),
		shell.Sure(shell.Everywhere(shell.Post("/staff/{id}/password-link", staff.ManageStaff, shell.With(shell.PathID, h.newPasswordLink)))),
	}
}

// newPasswordLink makes a link for a member; the member's earlier link becomes invalid.
func (h *handlers) newPasswordLink(w http.ResponseWriter, r *http.Request, id int64) error {
	m, token, err := h.Staff.NewPasswordLink(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	return h.showLinkOnce(w, r, m, token)
}

// showLinkOnce leads to the member's page, which shows the link this once.
func (h *handlers) showLinkOnce(w http.ResponseWriter, r *http.Request, m staff.Member, token string) error {
	link := staff.PasswordLinkURL(h.PublicURL, token)
	h.SecretFor(w, r, memberPath(m.ID), m.Actor().Name, link)
	shell.Redirect(w, r, memberPath(m.ID))
	return nil
}

// passwordForm shows the form for the new password to the holder of a link.
func (h *handlers) passwordForm(w http.ResponseWriter, r *http.Request) error {
	return h.withLink(w, r, func(p accesspages.SetPassword) error { return h.Show(w, r, http.StatusOK, p.Page()) })
}

// withLink calls next with the link in the request. Attempts with invalid links
// are limited for each network.
func (h *handlers) withLink(w http.ResponseWriter, r *http.Request, next func(accesspages.SetPassword) error) error {
	var held tokens
	wait, err := held.take(r.Context(), h.Throttle, "password_link:ip:"+shell.Network(r))
	if err != nil {
		return err
	}
	if wait > 0 {
		w.Header().Set("Retry-After", shell.Seconds(wait))
		p := accesspages.SetPassword{Invalid: true, Error: shell.Say(r, "signin.throttled", shell.Frame(r).Locale.Duration(wait.Round(time.Second)+time.Second))}
		return h.Show(w, r, http.StatusTooManyRequests, p.Page())
	}
	token := r.FormValue("token")
	l, m, err := h.Staff.PasswordLink(r.Context(), token)
	if errors.Is(err, staff.ErrPasswordLink) {
		return h.linkInvalid(w, r)
	}
	if err != nil {
		return err
	}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	// Language and theme are switched on this page with a form that leads back.
	shell.Frame(r).Path = passwordPath + "?" + url.Values{"token": {token}}.Encode()
	return next(accesspages.SetPassword{Token: token, Email: m.Email, Name: m.Name, Purpose: l.Purpose})
}

func (h *handlers) linkInvalid(w http.ResponseWriter, r *http.Request) error {
	h.Refused(r, security.PasswordLinkRefused, staff.Member{}, "")
	return h.Show(w, r, http.StatusNotFound, accesspages.SetPassword{Invalid: true}.Page())
}

// setPassword sets the password of the link's member and signs the member in.
func (h *handlers) setPassword(w http.ResponseWriter, r *http.Request) error {
	return h.withLink(w, r, func(p accesspages.SetPassword) error {
		from := staff.Client{IP: shell.ClientIP(r), UserAgent: r.UserAgent()}
		m, in, err := h.Staff.SetPasswordByLink(r.Context(), p.Token, r.PostFormValue("password"), from)
		if f, ok := errors.AsType[*fault.Fields](err); ok {
			p.Errors = f.List
			return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
		}
		if errors.Is(err, staff.ErrPasswordLink) {
			return h.linkInvalid(w, r)
		}
		if err != nil && !errors.Is(err, staff.ErrSecondFactorNeeded) {
			return err
		}
		h.AccessChanged()
		if err != nil {
			return h.askSecond(w, r, m, "/")
		}
		return h.enter(w, r, in, "/")
	})
}
