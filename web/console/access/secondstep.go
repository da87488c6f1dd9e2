package access

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/web/console/shell"
	"dropbell/web/security"
)

const (
	// halfKey is the session key of a sign-in of which only the password was given. It gives no
	// access.
	halfKey = "half_sign_in"
	// ceremonyKey is the session key of the pending passkey challenge.
	ceremonyKey    = "passkey_ceremony"
	secondStepPath = "/signin/second"
)

// askSecond stores the first step of a sign-in and redirects to the second
// factor.
func (h *handlers) askSecond(w http.ResponseWriter, r *http.Request, m staff.Member, to string) error {
	half := m.Half(h.Now())
	half.Return = to
	raw, err := json.Marshal(half)
	if err != nil {
		return err
	}
	if err := h.Sessions.RenewToken(r.Context()); err != nil {
		return err
	}
	h.Sessions.Remove(r.Context(), shell.SignInKey)
	h.Sessions.Put(r.Context(), halfKey, string(raw))
	shell.Redirect(w, r, secondStepPath)
	return nil
}

// halfWay returns the first step stored in the session, and its member.
func (h *handlers) halfWay(r *http.Request) (staff.HalfSignIn, staff.Member, error) {
	var half staff.HalfSignIn
	if raw := h.Sessions.GetString(r.Context(), halfKey); raw != "" {
		if err := json.Unmarshal([]byte(raw), &half); err != nil {
			return half, staff.Member{}, err
		}
	}
	m, err := h.Staff.HalfWay(r.Context(), half)
	return half, m, err
}

func (h *handlers) secondForm(w http.ResponseWriter, r *http.Request) error {
	if shell.Frame(r).Member.ID != 0 {
		shell.Redirect(w, r, "/")
		return nil
	}
	half, m, err := h.halfWay(r)
	if errors.Is(err, staff.ErrHalfSignIn) {
		return h.beginAnew(w, r, half)
	}
	if err != nil {
		return err
	}
	return h.showSecond(w, r, http.StatusOK, m, accesspages.SecondStep{})
}

// showSecond renders the page, with a passkey ceremony if the member has a
// passkey.
func (h *handlers) showSecond(w http.ResponseWriter, r *http.Request, status int, m staff.Member, p accesspages.SecondStep) error {
	var err error
	p.Email, p.Recovery = m.Email, r.FormValue("with") == "recovery"
	if p.Passkey, err = h.askPasskey(r, m); err != nil {
		return err
	}
	return h.Show(w, r, status, p.Page())
}

// beginAnew leads back to the password.
func (h *handlers) beginAnew(w http.ResponseWriter, r *http.Request, half staff.HalfSignIn) error {
	h.Sessions.Remove(r.Context(), halfKey)
	to := "/signin"
	if page := shell.LocalPath(half.Return); page != "/" {
		to += "?" + url.Values{"return": {page}}.Encode()
	}
	shell.Redirect(w, r, to)
	return nil
}

func (h *handlers) secondStep(w http.ResponseWriter, r *http.Request) error {
	half, m, err := h.halfWay(r)
	if errors.Is(err, staff.ErrHalfSignIn) {
		return h.beginAnew(w, r, half)
	}
	if err != nil {
		return err
	}
	again := accesspages.SecondStep{}
	answer := h.answerOf(r)
	if answer.Passkey == nil {
		if again.Errors = shell.Missing(r, "passcode"); again.Errors != nil {
			return h.showSecond(w, r, http.StatusUnprocessableEntity, m, again)
		}
	}
	held, wait, err := h.provingThrottled(r, m)
	if err != nil {
		return err
	}
	if wait > 0 {
		h.noteSlowed(r, m.Email)
		w.Header().Set("Retry-After", shell.Seconds(wait))
		again.Error = shell.Say(r, "signin.throttled", shell.Frame(r).Locale.Duration(wait.Round(time.Second)+time.Second))
		return h.showSecond(w, r, http.StatusTooManyRequests, m, again)
	}
	_, in, err := h.Staff.SecondStep(r.Context(), half, answer, staff.Client{IP: shell.ClientIP(r), UserAgent: r.UserAgent()})
	switch {
	case errors.Is(err, staff.ErrHalfSignIn):
		return h.beginAnew(w, r, half)
	case errors.Is(err, staff.ErrSecondFactor), errors.Is(err, staff.ErrSealed):
		h.Refused(r, security.SecondFactorRefused, m, "")
		again.Error = h.proofRefused(r, m, err)
		return h.showSecond(w, r, http.StatusUnprocessableEntity, m, again)
	case err != nil:
		return err
	}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	return h.enter(w, r, in, shell.LocalPath(half.Return))
}

// proofRefused returns why an answer is refused.
func (h *handlers) proofRefused(r *http.Request, m staff.Member, err error) string {
	h.Log.InfoContext(r.Context(), "a second factor was refused", "staff", m.ID, "error", err)
	if errors.Is(err, staff.ErrSealed) {
		return shell.Say(r, "fault.second_factor_sealed")
	}
	return shell.Say(r, "fault.second_factor_refused")
}

// provingThrottled counts an attempt at a second factor or at a new authentication: for the
// network, and for the account in all networks. Known addresses are not exempt: the attacker has
// the password or the session.
func (h *handlers) provingThrottled(r *http.Request, m staff.Member) (held tokens, wait time.Duration, err error) {
	if wait, err = held.take(r.Context(), h.Throttle, "second:ip:"+shell.Network(r)); err != nil || wait > 0 {
		return held, wait, err
	}
	wait, err = held.take(r.Context(), h.Guesses, "second:account:"+strconv.FormatInt(m.ID, 10))
	return held, wait, err
}

// answerOf reads the proof in a form: the answer of a passkey, or a code.
func (h *handlers) answerOf(r *http.Request) staff.Answer {
	if raw := r.PostFormValue("passkey"); raw != "" {
		a := h.passkeyAnswer(r, raw)
		return staff.Answer{Passkey: &a}
	}
	return staff.Answer{Code: shell.Narrow(r.PostFormValue("passcode"))}
}

// party is the site whose passkeys the request may use.
func (h *handlers) party(r *http.Request) staff.Party {
	return staff.PartyOf(h.PublicURL, r.Host)
}

// passkeyAnswer joins a browser's answer with its challenge. The challenge is removed from the
// session: it may be used once.
func (h *handlers) passkeyAnswer(r *http.Request, raw string) staff.PasskeyAnswer {
	return staff.PasskeyAnswer{Party: h.party(r), State: []byte(h.Sessions.PopString(r.Context(), ceremonyKey)), Answer: []byte(raw)}
}

// askPasskey returns the challenge for the browser, for any of m's passkeys; "" if no passkey can
// be used here.
func (h *handlers) askPasskey(r *http.Request, m staff.Member) (options string, err error) {
	asked, err := h.Staff.AskPasskey(r.Context(), h.party(r), m)
	if err != nil || asked.Options == nil {
		return "", err
	}
	h.Sessions.Put(r.Context(), ceremonyKey, string(asked.State))
	return string(asked.Options), nil
}
