package access

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/web/console/shell"
	"dropbell/web/security"
)

// attemptKey is the session key of the attempt begun at the identity provider.
const attemptKey = "sso_attempt"

// signInPage returns the form, with the link to the identity provider if there is one.
func (h *handlers) signInPage(to string) accesspages.SignIn {
	return accesspages.SignIn{Return: to, SingleSignOn: h.SingleSignOn != nil, PasswordsOff: h.Staff.PasswordsOff}
}

// beginSingleSignOn sends the browser to the identity provider. The page uses a link and not a
// form: the content security policy allows no form to lead to another site.
func (h *handlers) beginSingleSignOn(w http.ResponseWriter, r *http.Request) error {
	to := afterSignIn(r)
	if h.SingleSignOn == nil {
		return shell.ErrNoPage
	}
	if shell.Frame(r).Member.ID != 0 {
		shell.Redirect(w, r, to)
		return nil
	}
	if wait, err := h.Throttle.Allow(r.Context(), "signin:ip:"+shell.Network(r)); err != nil || wait > 0 {
		return h.slowDown(w, r, to, wait, err)
	}
	a, address, err := h.SingleSignOn.Begin(r.Context())
	if err != nil {
		return h.refuseSingleSignOn(w, r, to, err)
	}
	a.Return = to
	return h.leaveFor(w, r, a, address)
}

// leaveFor keeps the attempt and sends the browser to the identity provider.
func (h *handlers) leaveFor(w http.ResponseWriter, r *http.Request, a staff.Attempt, address string) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	h.Sessions.Put(r.Context(), attemptKey, string(raw))
	shell.Redirect(w, r, address)
	return nil
}

// endSingleSignOn takes the browser back from the identity provider.
func (h *handlers) endSingleSignOn(w http.ResponseWriter, r *http.Request) error {
	if h.SingleSignOn == nil {
		return shell.ErrNoPage
	}
	if wait, err := h.Throttle.Allow(r.Context(), "signin:back:"+shell.Network(r)); err != nil || wait > 0 {
		return h.slowDown(w, r, "/", wait, err)
	}
	// The attempt is removed whatever the result: an attempt can be used once.
	var a staff.Attempt
	if raw := h.Sessions.PopString(r.Context(), attemptKey); raw != "" {
		if err := json.Unmarshal([]byte(raw), &a); err != nil {
			return err
		}
	}
	to, refuse := shell.LocalPath(a.Return), h.refuseSingleSignOn
	if a.Confirms != 0 {
		refuse = h.refuseConfirmation
	}
	if err := a.Answers(r.FormValue("state"), h.Now()); err != nil {
		return refuse(w, r, to, err)
	}
	if r.FormValue("error") != "" || r.FormValue("code") == "" {
		return refuse(w, r, to, staff.ErrSingleSignOn.Because("the identity provider sent no code: %s", errorCode(r.FormValue("error"))))
	}
	who, err := h.SingleSignOn.Finish(r.Context(), a, r.FormValue("code"))
	if err != nil {
		return refuse(w, r, to, err)
	}
	if a.Confirms != 0 {
		return h.endConfirmation(w, r, a, who)
	}
	_, in, err := h.Staff.SignInWith(r.Context(), who, staff.Client{IP: shell.ClientIP(r), UserAgent: r.UserAgent()})
	if err != nil {
		return h.refuseSingleSignOn(w, r, to, err)
	}
	// As with a password, a success does not count.
	held := tokens{{h.Throttle, "signin:ip:" + shell.Network(r)}, {h.Throttle, "signin:back:" + shell.Network(r)}}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	h.ConfirmedAt(r, who.At)
	return h.enter(w, r, in, to)
}

// errorCode returns the error code if OAuth defines it. Other texts in the address are untrusted.
func errorCode(text string) string {
	if oauthCode.MatchString(text) {
		return text
	}
	return "unknown reason"
}

var oauthCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// refuseSingleSignOn explains on the sign-in page why the attempt failed. There the member can
// begin again or use a password.
func (h *handlers) refuseSingleSignOn(w http.ResponseWriter, r *http.Request, to string, err error) error {
	page, status := h.signInPage(to), http.StatusUnprocessableEntity
	switch {
	case r.Context().Err() != nil:
		return err // the client has gone
	case errors.Is(err, staff.ErrProviderDown):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "2")
		h.Log.WarnContext(r.Context(), "the identity provider cannot be used", "error", err)
		page.Error = shell.Say(r, "signin.sso.down")
		if page.PasswordsOff {
			page.Error = shell.Say(r, "signin.sso.down_only")
		}
	case errors.Is(err, staff.ErrAttempt):
		h.Log.InfoContext(r.Context(), "single sign-on ended", "error", err)
		page.Error = shell.Say(r, "signin.sso.ended")
	case errors.Is(err, staff.ErrSingleSignOn):
		h.Log.InfoContext(r.Context(), "single sign-on refused", "reason", err)
		h.Refused(r, security.SingleSignOnRefused, staff.Member{}, "")
		page.Error = shell.Say(r, "signin.sso.refused")
	default:
		return err
	}
	onSignIn(r, to)
	return h.Show(w, r, status, page.Page())
}

func (h *handlers) slowDown(w http.ResponseWriter, r *http.Request, to string, wait time.Duration, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Retry-After", shell.Seconds(wait))
	page := h.signInPage(to)
	page.Error = shell.Say(r, "signin.throttled", shell.Frame(r).Locale.Duration(wait.Round(time.Second)+time.Second))
	onSignIn(r, to)
	return h.Show(w, r, http.StatusTooManyRequests, page.Page())
}

// onSignIn makes the page link to the sign-in instead of its own address: the own address begins an
// attempt, or contains a code.
func onSignIn(r *http.Request, to string) {
	shell.Frame(r).Path = "/signin"
	if to != "/" {
		shell.Frame(r).Path += "?return=" + url.QueryEscape(to)
	}
}
