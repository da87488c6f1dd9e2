package access

import (
	"net/http"
	"strings"
	"time"

	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/web/console/shell"
)

// forgotPath is where a member who forgot the password requests a link.
const forgotPath = "/signin/forgot"

func (h *handlers) forgotForm(w http.ResponseWriter, r *http.Request) error {
	if h.Staff.PasswordsOff {
		return staff.ErrPasswordsOff
	}
	return h.Show(w, r, http.StatusOK, accesspages.ForgotPassword{Email: shortEmail(r.FormValue("email"))}.Page())
}

// forgotPassword requests the mail. Requests are limited for each network, which the answer says, and
// for each address, which it does not say.
func (h *handlers) forgotPassword(w http.ResponseWriter, r *http.Request) error {
	p := accesspages.ForgotPassword{Email: shortEmail(r.PostFormValue("email"))}
	r.PostForm.Set("email", p.Email)
	if p.Errors = shell.Missing(r, "email"); p.Errors != nil {
		return h.Show(w, r, http.StatusUnprocessableEntity, p.Page())
	}
	wait, err := h.Throttle.Allow(r.Context(), "forgot:ip:"+shell.Network(r))
	if err != nil {
		return err
	}
	if wait > 0 {
		w.Header().Set("Retry-After", shell.Seconds(wait))
		p.Error = shell.Say(r, "signin.throttled", shell.Frame(r).Locale.Duration(wait.Round(time.Second)+time.Second))
		return h.Show(w, r, http.StatusTooManyRequests, p.Page())
	}
	if wait, err = h.Guesses.Allow(r.Context(), "forgot:email:"+staff.NormalEmail(p.Email)); err != nil {
		return err
	}
	if wait == 0 {
		if err := h.Staff.ForgotPassword(r.Context(), p.Email, shell.Frame(r).Locale.Tag); err != nil {
			return err
		}
	}
	p.Sent = true
	return h.Show(w, r, http.StatusOK, p.Page())
}

// shortEmail returns the typed address, or nothing for a text that is too long for one.
func shortEmail(typed string) string {
	if typed = strings.TrimSpace(typed); len(typed) > staff.MaxEmail {
		return ""
	}
	return typed
}
