package access

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
	"dropbell/web/security"
)

func (h *handlers) signInForm(w http.ResponseWriter, r *http.Request) error {
	to := afterSignIn(r)
	if shell.Frame(r).Member.ID != 0 {
		shell.Redirect(w, r, to)
		return nil
	}
	switch {
	case r.FormValue("lost") != "":
		shell.Frame(r).Flashes = append(shell.Frame(r).Flashes, ui.Flash{Kind: ui.Warn, Text: shell.Say(r, "signin.lost")})
	case to != "/":
		shell.Frame(r).Flashes = append(shell.Frame(r).Flashes, ui.Flash{Kind: ui.Info, Text: shell.Say(r, "signin.again")})
	}
	return h.Show(w, r, http.StatusOK, h.signInPage(to).Page())
}

func (h *handlers) signIn(w http.ResponseWriter, r *http.Request) error {
	if h.Staff.PasswordsOff {
		return staff.ErrPasswordsOff
	}
	email, to := r.PostFormValue("email"), afterSignIn(r)
	again := h.signInPage(to)
	if len(email) <= staff.MaxEmail {
		again.Email = email
	}
	if again.Errors = shell.Missing(r, "email", "password"); again.Errors != nil {
		return h.Show(w, r, http.StatusUnprocessableEntity, again.Page())
	}
	held, wait, err := h.throttled(r, email)
	if err != nil {
		return err
	}
	if wait > 0 {
		h.noteSlowed(r, email)
		w.Header().Set("Retry-After", shell.Seconds(wait))
		again.Error = shell.Say(r, "signin.throttled", shell.Frame(r).Locale.Duration(wait.Round(time.Second)+time.Second))
		return h.Show(w, r, http.StatusTooManyRequests, again.Page())
	}
	if ip, err := netip.ParseAddr(shell.ClientIP(r)); r.PostFormValue("password") == staff.DemoPassword && (err != nil || !ip.Unmap().IsLoopback()) {
		again.Error = shell.Say(r, "signin.demo_elsewhere")
		return h.Show(w, r, http.StatusUnprocessableEntity, again.Page())
	}
	from := staff.Client{IP: shell.ClientIP(r), UserAgent: r.UserAgent()}
	m, in, err := h.Staff.SignIn(r.Context(), email, r.PostFormValue("password"), from)
	if errors.Is(err, staff.ErrSignIn) {
		h.Refused(r, security.SignInRefused, staff.Member{}, "")
		again.Error = shell.Say(r, "signin.refused")
		return h.Show(w, r, http.StatusUnprocessableEntity, again.Page())
	}
	if err != nil && !errors.Is(err, staff.ErrSecondFactorNeeded) {
		return err
	}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	if err != nil {
		return h.askSecond(w, r, m, to)
	}
	return h.enter(w, r, in, to)
}

// enter opens the session of a sign-in and redirects.
func (h *handlers) enter(w http.ResponseWriter, r *http.Request, in staff.SignIn, to string) error {
	if err := h.BeginSession(w, r, in); err != nil {
		return err
	}
	h.Sessions.Remove(r.Context(), halfKey)
	if in.Method == staff.ByPassword {
		h.ConfirmedAt(r, in.CreatedAt)
	}
	h.Log.InfoContext(r.Context(), "signed in", "staff", in.StaffID, "method", in.Method)
	shell.Redirect(w, r, to)
	return nil
}

func (h *handlers) signOut(w http.ResponseWriter, r *http.Request) error {
	id := h.SignedInAs(r)
	if m := shell.Frame(r).Member; m.ID != 0 && id != "" {
		if err := h.Staff.SignOut(context.WithoutCancel(r.Context()), m, id); err != nil {
			return err
		}
		h.ForgetSignIn(id)
	}
	if err := h.Sessions.Destroy(r.Context()); err != nil {
		return err
	}
	shell.Redirect(w, r, "/signin")
	return nil
}

// savePreferences stores language, theme and whether the first steps are shown in cookies. For
// members it also stores language and theme with their account.
func (h *handlers) savePreferences(w http.ResponseWriter, r *http.Request) error {
	m := shell.Frame(r).Member
	if r.PostForm.Has("theme") {
		m.Theme = shell.Theme(r.PostFormValue("theme"))
		h.Keep(w, shell.ThemeCookie, m.Theme)
	}
	if tag := r.PostFormValue("locale"); tag != "" {
		m.Locale = h.Languages.Match(tag).Tag
		h.Keep(w, shell.LocaleCookie, m.Locale)
	}
	if setup := r.PostFormValue("setup"); setup == shell.SetupHidden || setup == shell.SetupShown {
		h.Keep(w, shell.SetupCookie, setup)
	}
	if m.ID != 0 {
		if err := h.Staff.SetPreferences(r.Context(), m, m.Locale, m.Theme); err != nil {
			return err
		}
		h.ForgetSignIn(h.SignedInAs(r))
	}
	shell.Redirect(w, r, shell.LocalPath(r.PostFormValue("return")))
	return nil
}

// afterSignIn returns the page to open after a sign-in: the page that required it.
func afterSignIn(r *http.Request) string {
	to := shell.LocalPath(r.FormValue("return"))
	if strings.HasPrefix(to, "/signin") {
		return "/"
	}
	return to
}

func (h *handlers) account(w http.ResponseWriter, r *http.Request) error {
	return h.accountPage(w, r, http.StatusOK, nil)
}

func (h *handlers) accountPage(w http.ResponseWriter, r *http.Request, status int, errs []fault.Field) error {
	list, err := h.Staff.SignIns(r.Context(), shell.Frame(r).Member)
	if err != nil {
		return err
	}
	return h.Show(w, r, status, accesspages.Account{SignIns: list, InUse: h.SignedInAs(r), Errors: errs,
		PasswordsOff: h.Staff.PasswordsOff}.Page())
}

func (h *handlers) changePassword(w http.ResponseWriter, r *http.Request) error {
	id := h.SignedInAs(r)
	// Guessing the old password here must not be easier than at the door.
	wait, err := h.Throttle.Allow(r.Context(), "password:"+shell.Frame(r).Member.Actor().Label)
	if err != nil {
		return err
	}
	if wait > 0 {
		return &fault.RetryAfter{Err: fault.New(fault.Throttled, "rate_limited", "too many attempts"), After: wait}
	}
	err = h.Staff.ChangeOwnPassword(r.Context(), shell.Frame(r).Member, r.PostFormValue("old_password"), r.PostFormValue("password"), id)
	if f, ok := errors.AsType[*fault.Fields](err); ok {
		return h.accountPage(w, r, http.StatusUnprocessableEntity, f.List)
	}
	if err != nil {
		return err
	}
	h.AccessChanged()
	return h.Done(w, r, "/account", ui.Good, shell.Say(r, "account.password_changed"))
}

func (h *handlers) revokeSignIns(w http.ResponseWriter, r *http.Request) error {
	ended, err := h.Staff.Revoke(r.Context(), shell.Frame(r).Member, r.PostFormValue("id"), h.SignedInAs(r))
	if err != nil {
		return err
	}
	h.AccessChanged()
	return h.Done(w, r, "/account", ui.Good, shell.Frame(r).Locale.N("account.revoked", int64(ended)))
}
