package access

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
	"dropbell/web/security"
)

func (h *handlers) confirmForm(w http.ResponseWriter, r *http.Request) error {
	to := afterConfirm(r.FormValue("return"))
	if h.Confirmed(r) {
		shell.Redirect(w, r, to)
		return nil
	}
	return h.showConfirm(w, r, http.StatusOK, accesspages.Confirm{Return: to, ByPassword: r.FormValue("with") == "password"})
}

func afterConfirm(to string) string {
	if to = shell.LocalPath(to); strings.HasPrefix(to, shell.ConfirmPath) {
		return "/"
	}
	return to
}

// showConfirm draws the question with the ways in which the member can answer.
func (h *handlers) showConfirm(w http.ResponseWriter, r *http.Request, status int, p accesspages.Confirm) error {
	f := shell.Frame(r)
	has, err := h.Staff.SecurityOf(r.Context(), f.Member)
	if err != nil {
		return err
	}
	p.Email = f.Member.Email
	p.SingleSignOn = f.Method == staff.BySingleSignOn && h.SingleSignOn != nil
	p.Password = f.Method == staff.ByPassword && has.Password
	p.Codes = slices.ContainsFunc(has.Factors, func(k staff.Factor) bool { return k.Kind == staff.TOTP }) || has.CodesLeft > 0
	p.ByPassword = p.Password && (p.ByPassword || len(has.Factors) == 0)
	if p.Passkey, err = h.askPasskey(r, f.Member); err != nil {
		return err
	}
	return h.Show(w, r, status, p.Page())
}

func (h *handlers) confirm(w http.ResponseWriter, r *http.Request) error {
	m := shell.Frame(r).Member
	again := accesspages.Confirm{Return: afterConfirm(r.PostFormValue("confirm_return")), Carried: shell.Carried(r.PostForm), ByPassword: r.PostFormValue("confirm_with") == "password"}
	if to := shell.LocalPath(r.PostFormValue("confirm_to")); to != "/" {
		again.To = to
	}
	answer := h.confirmation(r)
	if r.PostFormValue("confirm_other") != "" {
		again.ByPassword = !again.ByPassword
		return h.showConfirm(w, r, http.StatusOK, again)
	}
	if again.Errors = unanswered(r, answer); again.Errors != nil {
		return h.showConfirm(w, r, http.StatusUnprocessableEntity, again)
	}
	held, wait, err := h.provingThrottled(r, m)
	if err != nil {
		return err
	}
	if wait > 0 {
		w.Header().Set("Retry-After", shell.Seconds(wait))
		again.Error = shell.Say(r, "signin.throttled", shell.Frame(r).Locale.Duration(wait.Round(time.Second)+time.Second))
		return h.showConfirm(w, r, http.StatusTooManyRequests, again)
	}
	err = h.Staff.Confirm(r.Context(), m, r.PostFormValue("confirm_password"), answer)
	switch {
	case errors.Is(err, staff.ErrSignIn):
		h.Refused(r, security.ConfirmationRefused, m, "")
		again.Error = shell.Say(r, "confirm.password_refused")
		return h.showConfirm(w, r, http.StatusUnprocessableEntity, again)
	case errors.Is(err, staff.ErrSecondFactor), errors.Is(err, staff.ErrSealed):
		h.Refused(r, security.ConfirmationRefused, m, "")
		again.Error = h.proofRefused(r, m, err)
		return h.showConfirm(w, r, http.StatusUnprocessableEntity, again)
	case err != nil:
		return err
	}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	h.ConfirmedAt(r, h.Now())
	if again.To != "" {
		// The browser sends the form again, all of its fields included.
		http.Redirect(w, r, again.To, http.StatusTemporaryRedirect)
		return nil
	}
	return h.Done(w, r, again.Return, ui.Good, shell.Say(r, "confirm.done"))
}

// confirmation reads the proof in the form; an empty answer means the password. A member who signed
// in at the identity provider has no password here.
func (h *handlers) confirmation(r *http.Request) staff.Answer {
	if raw := r.PostFormValue("confirm_passkey"); raw != "" {
		a := h.passkeyAnswer(r, raw)
		return staff.Answer{Passkey: &a}
	}
	if r.PostFormValue("confirm_with") == "password" && shell.Frame(r).Method == staff.ByPassword {
		return staff.Answer{}
	}
	return staff.Answer{Code: shell.Narrow(r.PostFormValue("confirm_code"))}
}

func unanswered(r *http.Request, a staff.Answer) []fault.Field {
	switch {
	case a.Passkey != nil:
		return nil
	case r.PostFormValue("confirm_with") == "password" && shell.Frame(r).Method == staff.ByPassword:
		return shell.Missing(r, "confirm_password")
	}
	return shell.Missing(r, "confirm_code")
}

// confirmElsewhere sends a member who signed in at the identity provider there again.
func (h *handlers) confirmElsewhere(w http.ResponseWriter, r *http.Request) error {
	to := afterConfirm(r.FormValue("return"))
	if h.SingleSignOn == nil || shell.Frame(r).Method != staff.BySingleSignOn {
		return shell.ErrNoPage
	}
	a, address, err := h.SingleSignOn.BeginAgain(r.Context())
	if err != nil {
		return h.refuseConfirmation(w, r, to, err)
	}
	a.Return, a.Confirms = to, shell.Frame(r).Member.ID
	return h.leaveFor(w, r, a, address)
}

// endConfirmation receives the browser back from the identity provider, where the member was sent
// to authenticate again.
func (h *handlers) endConfirmation(w http.ResponseWriter, r *http.Request, a staff.Attempt, who staff.Identity) error {
	m, to := shell.Frame(r).Member, shell.LocalPath(a.Return)
	if m.ID != a.Confirms {
		return staff.ErrUnauthenticated
	}
	if err := h.Staff.ConfirmWith(r.Context(), m, who, a); err != nil {
		return h.refuseConfirmation(w, r, to, err)
	}
	h.ConfirmedAt(r, h.Now())
	return h.Done(w, r, to, ui.Good, shell.Say(r, "confirm.done"))
}

// refuseConfirmation explains on the confirmation page why the attempt failed.
func (h *handlers) refuseConfirmation(w http.ResponseWriter, r *http.Request, to string, err error) error {
	page, status := accesspages.Confirm{Return: to}, http.StatusUnprocessableEntity
	switch {
	case shell.Frame(r).Member.ID == 0:
		return staff.ErrUnauthenticated
	case errors.Is(err, staff.ErrProviderDown):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "2")
		h.Log.WarnContext(r.Context(), "the identity provider cannot be used", "error", err)
		page.Error = shell.Say(r, "confirm.sso_down")
	case errors.Is(err, staff.ErrNotAskedAgain):
		page.Error = shell.Say(r, "fault.sso_not_asked_again")
	case errors.Is(err, staff.ErrAttempt):
		page.Error = shell.Say(r, "signin.sso.ended")
	case errors.Is(err, staff.ErrSingleSignOn):
		h.Refused(r, security.ConfirmationRefused, shell.Frame(r).Member, "")
		page.Error = shell.Say(r, "confirm.sso_refused")
	default:
		return err
	}
	shell.Frame(r).Path = shell.ConfirmPath + "?" + url.Values{"return": {to}}.Encode()
	return h.showConfirm(w, r, status, page)
}
