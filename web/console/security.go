package console

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/views/pages"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	// newCodeKey is where a session keeps the secret of an authenticator app
	// that is being enrolled, as it would be stored, behind the member's id.
	newCodeKey = "new_authenticator"
)

// securityRoutes are the addresses around second factors and confirmations.
func (c *Console) securityRoutes() []shell.Route {
	return []shell.Route{
		shell.Enrolling(shell.Get(shell.ConfirmPath, staff.View, c.confirmForm)),
		shell.Enrolling(shell.Post(shell.ConfirmPath, staff.View, c.confirm)),
		shell.Get(shell.ConfirmPath+"/oidc", staff.View, c.confirmElsewhere),
		shell.Enrolling(shell.Get(shell.SecurityPath, staff.View, c.showSecurity)),
		shell.Enrolling(shell.Sure(shell.Get(shell.SecurityPath+"/app", staff.View, c.newApp))),
		shell.Enrolling(shell.Sure(shell.Post(shell.SecurityPath+"/app", staff.View, c.addApp))),
		shell.Enrolling(shell.Sure(shell.Get(shell.SecurityPath+"/passkey", staff.View, c.newPasskey))),
		shell.Enrolling(shell.Sure(shell.Post(shell.SecurityPath+"/passkey", staff.View, c.addPasskey))),
		shell.Sure(shell.Post(shell.SecurityPath+"/recovery-codes", staff.View, c.newRecoveryCodes)),
		shell.Post(shell.SecurityPath+"/{id}/rename", staff.View, c.renameFactor),
		shell.Sure(shell.Get(shell.SecurityPath+"/{id}/remove", staff.View, c.confirmRemoveFactor)),
		shell.Sure(shell.Post(shell.SecurityPath+"/{id}/remove", staff.View, c.removeFactor)),
		shell.Sure(shell.Everywhere(shell.Get("/staff/{id}/reset-second-factors", staff.ManageStaff, c.confirmResetFactors))),
		shell.Sure(shell.Everywhere(shell.Post("/staff/{id}/reset-second-factors", staff.ManageStaff, c.resetFactors))),
		shell.Sure(shell.Everywhere(shell.Post("/staff/second-factors", staff.ManageStaff, c.savePolicy))),
	}
}

func (c *Console) showSecurity(w http.ResponseWriter, r *http.Request) error {
	return c.securityPage(w, r, http.StatusOK, nil)
}

func (c *Console) securityPage(w http.ResponseWriter, r *http.Request, status int, errs []fault.Field) error {
	has, err := c.Staff.SecurityOf(r.Context(), shell.Frame(r).Member)
	if err != nil {
		return err
	}
	p := pages.Security{Security: has, Errors: errs, Passkeys: c.party(r).ID != ""}
	if to := shell.LocalPath(r.FormValue("return")); to != "/" && !strings.HasPrefix(to, shell.SecurityPath) {
		p.Return = to
	}
	if _, codes := c.SecretOnce(w, r, shell.SecurityPath); codes != "" {
		p.Fresh = strings.Fields(codes)
	}
	return c.Show(w, r, status, p.Page())
}

// added goes back to the list after a second factor was added, where fresh
// recovery codes are shown once.
func (c *Console) added(w http.ResponseWriter, r *http.Request, codes []string) error {
	c.AccessChanged()
	if len(codes) > 0 {
		c.SecretFor(w, r, shell.SecurityPath, "recovery codes", strings.Join(codes, " "))
	}
	to := shell.SecurityPath
	if page := shell.LocalPath(r.FormValue("return")); page != "/" {
		to += "?" + url.Values{"return": {page}}.Encode()
	}
	return c.Done(w, r, to, ui.Good, shell.Say(r, "security.added"))
}

// pending returns the secret that the session keeps for the member; nil = none.
func (c *Console) pending(r *http.Request) []byte {
	owner, text, _ := strings.Cut(c.Sessions.GetString(r.Context(), newCodeKey), " ")
	if owner != strconv.FormatInt(shell.Frame(r).Member.ID, 10) {
		return nil
	}
	stored, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return stored
}

func (c *Console) newApp(w http.ResponseWriter, r *http.Request) error {
	if c.pending(r) == nil {
		stored, err := c.Staff.BeginCode()
		if err != nil {
			return err
		}
		c.Sessions.Put(r.Context(), newCodeKey, fmt.Sprintf("%d %s", shell.Frame(r).Member.ID, base64.RawStdEncoding.EncodeToString(stored)))
	}
	return c.appPage(w, r, http.StatusOK, pages.NewApp{Name: shell.Say(r, "security.app.default")})
}

func (c *Console) appPage(w http.ResponseWriter, r *http.Request, status int, p pages.NewApp) error {
	secret, err := c.Staff.ShowCode(shell.Frame(r).Member, c.pending(r))
	if errors.Is(err, staff.ErrSealed) { // begun before the key was changed
		c.Sessions.Remove(r.Context(), newCodeKey)
	}
	if err != nil {
		return err
	}
	p.Secret, p.Return = secret, shell.LocalPath(r.FormValue("return"))
	return c.Show(w, r, status, p.Page())
}

func (c *Console) addApp(w http.ResponseWriter, r *http.Request) error {
	stored, in := c.pending(r), factorInput(r)
	if stored == nil {
		shell.Redirect(w, r, shell.SecurityPath+"/app")
		return nil
	}
	held, wait, err := c.provingThrottled(r, shell.Frame(r).Member)
	if err != nil || wait > 0 {
		return tooMany(wait, err)
	}
	codes, err := c.Staff.AddCode(r.Context(), shell.Frame(r).Member, stored, in)
	if fields := shell.FieldsOf(err); fields != nil {
		return c.appPage(w, r, http.StatusUnprocessableEntity, pages.NewApp{Name: in.Name, Errors: fields})
	}
	if err != nil {
		return err
	}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	c.Sessions.Remove(r.Context(), newCodeKey)
	return c.added(w, r, codes)
}

func factorInput(r *http.Request) staff.FactorInput {
	return staff.FactorInput{Name: r.PostFormValue("name"), Code: shell.Narrow(r.PostFormValue("passcode"))}
}

func (c *Console) newPasskey(w http.ResponseWriter, r *http.Request) error {
	return c.passkeyPage(w, r, http.StatusOK, pages.NewPasskey{Name: shell.Say(r, "security.passkey.default")})
}

func (c *Console) passkeyPage(w http.ResponseWriter, r *http.Request, status int, p pages.NewPasskey) error {
	asked, err := c.Staff.BeginPasskey(r.Context(), c.party(r), shell.Frame(r).Member)
	if err != nil {
		return err
	}
	c.Sessions.Put(r.Context(), ceremonyKey, string(asked.State))
	p.Options, p.Return = string(asked.Options), shell.LocalPath(r.FormValue("return"))
	return c.Show(w, r, status, p.Page())
}

func (c *Console) addPasskey(w http.ResponseWriter, r *http.Request) error {
	in := factorInput(r)
	codes, err := c.Staff.AddPasskey(r.Context(), shell.Frame(r).Member, in, c.passkeyAnswer(r, r.PostFormValue("passkey")))
	if fields := shell.FieldsOf(err); fields != nil {
		return c.passkeyPage(w, r, http.StatusUnprocessableEntity, pages.NewPasskey{Name: in.Name, Errors: fields})
	}
	if errors.Is(err, staff.ErrSecondFactor) {
		c.Log.InfoContext(r.Context(), "a passkey was not enrolled", "staff", shell.Frame(r).Member.ID, "error", err)
		return c.passkeyPage(w, r, http.StatusUnprocessableEntity, pages.NewPasskey{Name: in.Name, Error: shell.Say(r, "security.passkey.refused")})
	}
	if err != nil {
		return err
	}
	return c.added(w, r, codes)
}

func (c *Console) newRecoveryCodes(w http.ResponseWriter, r *http.Request) error {
	codes, err := c.Staff.NewRecoveryCodes(r.Context(), shell.Frame(r).Member)
	if err != nil {
		return err
	}
	c.SecretFor(w, r, shell.SecurityPath, "recovery codes", strings.Join(codes, " "))
	return c.Done(w, r, shell.SecurityPath, ui.Good, shell.Say(r, "security.codes.made"))
}

func (c *Console) renameFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	err = c.Staff.RenameFactor(r.Context(), shell.Frame(r).Member, id, r.PostFormValue("name"))
	if fields := shell.FieldsOf(err); fields != nil {
		return c.securityPage(w, r, http.StatusUnprocessableEntity, fields)
	}
	if err != nil {
		return err
	}
	return c.Done(w, r, shell.SecurityPath, ui.Good, shell.Say(r, "security.renamed"))
}

func (c *Console) confirmRemoveFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	has, err := c.Staff.SecurityOf(r.Context(), shell.Frame(r).Member)
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
		return c.Ask(w, r, http.StatusOK, pages.Confirmation{Crumbs: securityCrumbs(r),
			ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "security.remove.title", f.Name), Points: points, NoReason: true,
				Action: fmt.Sprintf("%s/%d/remove", shell.SecurityPath, id), Cancel: shell.SecurityPath, Submit: shell.Say(r, "security.remove"), Kind: "danger"}})
	}
	return staff.ErrFactorNotFound
}

func securityCrumbs(r *http.Request) []ui.Crumb {
	return []ui.Crumb{{Label: shell.Say(r, "account.title"), URL: "/account"}, {Label: shell.Say(r, "security.title"), URL: shell.SecurityPath}}
}

func (c *Console) removeFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	if err := c.Staff.RemoveFactor(r.Context(), shell.Frame(r).Member, id); err != nil {
		return err
	}
	c.AccessChanged()
	return c.Done(w, r, shell.SecurityPath, ui.Good, shell.Say(r, "security.removed"))
}

func (c *Console) confirmResetFactors(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	m, err := c.Staff.Member(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	page := fmt.Sprintf("/staff/%d", id)
	return c.Ask(w, r, http.StatusOK, pages.Confirmation{Active: "staff", Crumbs: []ui.Crumb{{Label: shell.Say(r, "nav.staff"), URL: "/staff"}, {Label: m.Actor().Name, URL: page}},
		ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "security.reset.title", m.Actor().Name), NoReason: true,
			Points: []string{shell.Say(r, "security.reset.1"), shell.Say(r, "security.reset.2"), shell.Say(r, "security.reset.3")},
			Action: page + "/reset-second-factors", Cancel: page, Submit: shell.Say(r, "security.reset"), Kind: "danger"}})
}

func (c *Console) resetFactors(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	n, err := c.Staff.ResetFactors(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	c.AccessChanged()
	return c.Done(w, r, fmt.Sprintf("/staff/%d", id), ui.Good, shell.Frame(r).Locale.N("security.reset_done", int64(n)))
}

func (c *Console) savePolicy(w http.ResponseWriter, r *http.Request) error {
	p := staff.Policy(r.PostFormValue("second_factor"))
	if err := c.Staff.SetPolicy(r.Context(), shell.Actor(r), p); err != nil {
		return err
	}
	c.AccessChanged()
	return c.Done(w, r, "/staff", ui.Good, shell.Say(r, "staff.policy.saved"))
}

// tooMany is the refusal of attempts that come too fast.
func tooMany(wait time.Duration, err error) error {
	if err != nil {
		return err
	}
	return &fault.RetryAfter{Err: fault.New(fault.Throttled, "rate_limited", "too many attempts"), After: wait}
}
