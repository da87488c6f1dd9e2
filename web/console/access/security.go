package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	// newCodeKey is the session key of the authenticator app being enrolled: the ids of the member
	// and of the app, and the secret in the form in which it would be stored.
	newCodeKey = "new_authenticator"
)

// securityRoutes are the addresses around second factors and confirmations.
func (h *handlers) securityRoutes() []shell.Route {
	return []shell.Route{
		shell.Enrolling(shell.Get(shell.ConfirmPath, staff.View, h.confirmForm)),
		shell.Enrolling(shell.Post(shell.ConfirmPath, staff.View, h.confirm)),
		shell.Get(shell.ConfirmPath+"/oidc", staff.View, h.confirmElsewhere),
		shell.Enrolling(shell.Get(shell.SecurityPath, staff.View, h.showSecurity)),
		shell.Enrolling(shell.Sure(shell.Get(shell.SecurityPath+"/app", staff.View, h.newApp))),
		shell.Enrolling(shell.Sure(shell.Post(shell.SecurityPath+"/app", staff.View, h.addApp))),
		shell.Enrolling(shell.Sure(shell.Get(shell.SecurityPath+"/passkey", staff.View, h.newPasskey))),
		shell.Enrolling(shell.Sure(shell.Post(shell.SecurityPath+"/passkey", staff.View, h.addPasskey))),
		shell.Sure(shell.Post(shell.SecurityPath+"/recovery-codes", staff.View, h.newRecoveryCodes)),
		shell.Post(shell.SecurityPath+"/{id}/rename", staff.View, h.renameFactor),
		shell.Sure(shell.Get(shell.SecurityPath+"/{id}/remove", staff.View, h.confirmRemoveFactor)),
		shell.Sure(shell.Post(shell.SecurityPath+"/{id}/remove", staff.View, h.removeFactor)),
		shell.Sure(shell.Everywhere(shell.Get("/staff/{id}/reset-second-factors", staff.ManageStaff, shell.With(shell.PathID, h.confirmResetFactors)))),
		shell.Sure(shell.Everywhere(shell.Post("/staff/{id}/reset-second-factors", staff.ManageStaff, shell.With(shell.PathID, h.resetFactors)))),
		shell.Sure(shell.Everywhere(shell.Post("/staff/second-factors", staff.ManageStaff, h.savePolicy))),
	}
}

func (h *handlers) showSecurity(w http.ResponseWriter, r *http.Request) error {
	return h.securityPage(w, r, http.StatusOK, nil)
}

func (h *handlers) securityPage(w http.ResponseWriter, r *http.Request, status int, errs []fault.Field) error {
	has, err := h.Staff.SecurityOf(r.Context(), shell.Frame(r).Member)
	if err != nil {
		return err
	}
	p := accesspages.Security{Security: has, Errors: errs, Passkeys: h.party(r).ID != ""}
	if to := shell.LocalPath(r.FormValue("return")); to != "/" && !strings.HasPrefix(to, shell.SecurityPath) {
		p.Return = to
	}
	if _, codes := h.SecretOnce(w, r, shell.SecurityPath); codes != "" {
		p.Fresh = strings.Fields(codes)
	}
	return h.Show(w, r, status, p.Page())
}

// added redirects to the list after a second factor was added. The list shows fresh recovery codes
// once.
func (h *handlers) added(w http.ResponseWriter, r *http.Request, codes []string) error {
	h.AccessChanged()
	if len(codes) > 0 {
		h.SecretFor(w, r, shell.SecurityPath, "recovery codes", strings.Join(codes, " "))
	}
	to := shell.SecurityPath
	if page := shell.LocalPath(r.FormValue("return")); page != "/" {
		to += "?" + url.Values{"return": {page}}.Encode()
	}
	return h.Done(w, r, to, ui.Good, shell.Say(r, "security.added"))
}

// pending returns the authenticator app being enrolled that the session holds for the member, if
// any.
func (h *handlers) pending(r *http.Request) (f staff.Factor, begun bool) {
	_, err := fmt.Sscanf(h.Sessions.GetString(r.Context(), newCodeKey), "%d %d %x", &f.StaffID, &f.ID, &f.Secret)
	return f, err == nil && f.StaffID == shell.Frame(r).Member.ID
}

func (h *handlers) newApp(w http.ResponseWriter, r *http.Request) error {
	if _, begun := h.pending(r); !begun {
		f, err := h.Staff.BeginCode(r.Context(), shell.Frame(r).Member)
		if err != nil {
			return err
		}
		h.Sessions.Put(r.Context(), newCodeKey, fmt.Sprintf("%d %d %x", f.StaffID, f.ID, f.Secret))
	}
	return h.appPage(w, r, http.StatusOK, accesspages.NewApp{Name: shell.Say(r, "security.app.default")})
}

func (h *handlers) appPage(w http.ResponseWriter, r *http.Request, status int, p accesspages.NewApp) error {
	f, _ := h.pending(r)
	secret, err := h.Staff.ShowCode(shell.Frame(r).Member, f)
	if errors.Is(err, staff.ErrSealed) { // begun before the key was changed
		h.Sessions.Remove(r.Context(), newCodeKey)
	}
	if err != nil {
		return err
	}
	p.Secret, p.Return = secret, shell.LocalPath(r.FormValue("return"))
	return h.Show(w, r, status, p.Page())
}

func (h *handlers) addApp(w http.ResponseWriter, r *http.Request) error {
	f, begun := h.pending(r)
	if !begun {
		shell.Redirect(w, r, shell.SecurityPath+"/app")
		return nil
	}
	held, wait, err := h.provingThrottled(r, shell.Frame(r).Member)
	if err != nil || wait > 0 {
		return tooMany(wait, err)
	}
	in := factorInput(r)
	codes, err := h.Staff.AddCode(r.Context(), shell.Frame(r).Member, f, in)
	if fields := shell.FieldsOf(err); fields != nil {
		return h.appPage(w, r, http.StatusUnprocessableEntity, accesspages.NewApp{Name: in.Name, Errors: fields})
	}
	if err != nil {
		return err
	}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	h.Sessions.Remove(r.Context(), newCodeKey)
	return h.added(w, r, codes)
}

func factorInput(r *http.Request) staff.FactorInput {
	return staff.FactorInput{Name: r.PostFormValue("name"), Code: shell.Narrow(r.PostFormValue("passcode"))}
}

func (h *handlers) newPasskey(w http.ResponseWriter, r *http.Request) error {
	return h.passkeyPage(w, r, http.StatusOK, accesspages.NewPasskey{Name: shell.Say(r, "security.passkey.default")})
}

func (h *handlers) passkeyPage(w http.ResponseWriter, r *http.Request, status int, p accesspages.NewPasskey) error {
	asked, err := h.Staff.BeginPasskey(r.Context(), h.party(r), shell.Frame(r).Member)
	if err != nil {
		return err
	}
	h.Sessions.Put(r.Context(), ceremonyKey, string(asked.State))
	p.Options, p.Return = string(asked.Options), shell.LocalPath(r.FormValue("return"))
	return h.Show(w, r, status, p.Page())
}

func (h *handlers) addPasskey(w http.ResponseWriter, r *http.Request) error {
	in := factorInput(r)
	codes, err := h.Staff.AddPasskey(r.Context(), shell.Frame(r).Member, in, h.passkeyAnswer(r, r.PostFormValue("passkey")))
	if fields := shell.FieldsOf(err); fields != nil {
		return h.passkeyPage(w, r, http.StatusUnprocessableEntity, accesspages.NewPasskey{Name: in.Name, Errors: fields})
	}
	if errors.Is(err, staff.ErrSecondFactor) {
		h.Log.InfoContext(r.Context(), "a passkey was not enrolled", "staff", shell.Frame(r).Member.ID, "error", err)
		return h.passkeyPage(w, r, http.StatusUnprocessableEntity, accesspages.NewPasskey{Name: in.Name, Error: shell.Say(r, "security.passkey.refused")})
	}
	if err != nil {
		return err
	}
	return h.added(w, r, codes)
}

func (h *handlers) newRecoveryCodes(w http.ResponseWriter, r *http.Request) error {
	codes, err := h.Staff.NewRecoveryCodes(r.Context(), shell.Frame(r).Member)
	if err != nil {
		return err
	}
	h.SecretFor(w, r, shell.SecurityPath, "recovery codes", strings.Join(codes, " "))
	return h.Done(w, r, shell.SecurityPath, ui.Good, shell.Say(r, "security.codes.made"))
}

func (h *handlers) renameFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	err = h.Staff.RenameFactor(r.Context(), shell.Frame(r).Member, id, r.PostFormValue("name"))
	if fields := shell.FieldsOf(err); fields != nil {
		return h.securityPage(w, r, http.StatusUnprocessableEntity, fields)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, shell.SecurityPath, ui.Good, shell.Say(r, "security.renamed"))
}

func (h *handlers) confirmRemoveFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	has, err := h.Staff.SecurityOf(r.Context(), shell.Frame(r).Member)
	if err != nil {
		return err
	}
	for _, f := range has.Factors {
		if f.ID != id {
			continue
		}
		points := []string{shell.Say(r, "security.remove.1")}
		if len(has.Factors) == 1 {
			points = append(points, shell.Say(r, "security.remove.last"))
		}
		return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Crumbs: securityCrumbs(r),
			ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "security.remove.title", f.Name), Points: points, NoReason: true,
				Action: fmt.Sprintf("%s/%d/remove", shell.SecurityPath, id), Cancel: shell.SecurityPath, Submit: shell.Say(r, "security.remove"), Kind: "danger"}})
	}
	return staff.ErrFactorNotFound
}

func securityCrumbs(r *http.Request) []ui.Crumb {
	return []ui.Crumb{{Label: shell.Say(r, "account.title"), URL: "/account"}, {Label: shell.Say(r, "security.title"), URL: shell.SecurityPath}}
}

func (h *handlers) removeFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	if err := h.Staff.RemoveFactor(r.Context(), shell.Frame(r).Member, id); err != nil {
		return err
	}
	h.AccessChanged()
	return h.Done(w, r, shell.SecurityPath, ui.Good, shell.Say(r, "security.removed"))
}

func (h *handlers) confirmResetFactors(w http.ResponseWriter, r *http.Request, id int64) error {
	m, err := h.Staff.Member(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	page := fmt.Sprintf("/staff/%d", id)
	return h.Ask(w, r, http.StatusOK, pageparts.Confirmation{Active: "staff", Crumbs: []ui.Crumb{{Label: shell.Say(r, "nav.staff"), URL: "/staff"}, {Label: m.Actor().Name, URL: page}},
		ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "security.reset.title", m.Actor().Name), NoReason: true,
			Points: []string{shell.Say(r, "security.reset.1"), shell.Say(r, "security.reset.2"), shell.Say(r, "security.reset.3")},
			Action: page + "/reset-second-factors", Cancel: page, Submit: shell.Say(r, "security.reset"), Kind: "danger"}})
}

func (h *handlers) resetFactors(w http.ResponseWriter, r *http.Request, id int64) error {
	n, err := h.Staff.ResetFactors(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	h.AccessChanged()
	return h.Done(w, r, fmt.Sprintf("/staff/%d", id), ui.Good, shell.Frame(r).Locale.N("security.reset_done", int64(n)))
}

func (h *handlers) savePolicy(w http.ResponseWriter, r *http.Request) error {
	p := staff.Policy(r.PostFormValue("second_factor"))
	if err := h.Staff.SetPolicy(r.Context(), shell.Actor(r), p); err != nil {
		return err
	}
	h.AccessChanged()
	return h.Done(w, r, "/staff", ui.Good, shell.Say(r, "staff.policy.saved"))
}

// tooMany is the refusal of attempts that come too fast.
func tooMany(wait time.Duration, err error) error {
	if err != nil {
		return err
	}
	return &fault.RetryAfter{Err: fault.New(fault.Throttled, "rate_limited", "too many attempts"), After: wait}
}
