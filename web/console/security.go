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
)

const (
	// newCodeKey is where a session keeps the secret of an authenticator app
	// that is being enrolled, as it would be stored, behind the member's id.
	newCodeKey = "new_authenticator"
)

// securityRoutes are the addresses around second factors and confirmations.
func (c *Console) securityRoutes() []route {
	return []route{
		enrolling(get(confirmPath, staff.View, c.confirmForm)),
		enrolling(post(confirmPath, staff.View, c.confirm)),
		get(confirmPath+"/oidc", staff.View, c.confirmElsewhere),
		enrolling(get(securityPath, staff.View, c.showSecurity)),
		enrolling(sure(get(securityPath+"/app", staff.View, c.newApp))),
		enrolling(sure(post(securityPath+"/app", staff.View, c.addApp))),
		enrolling(sure(get(securityPath+"/passkey", staff.View, c.newPasskey))),
		enrolling(sure(post(securityPath+"/passkey", staff.View, c.addPasskey))),
		sure(post(securityPath+"/recovery-codes", staff.View, c.newRecoveryCodes)),
		post(securityPath+"/{id}/rename", staff.View, c.renameFactor),
		sure(get(securityPath+"/{id}/remove", staff.View, c.confirmRemoveFactor)),
		sure(post(securityPath+"/{id}/remove", staff.View, c.removeFactor)),
		sure(everywhere(get("/staff/{id}/reset-second-factors", staff.ManageStaff, c.confirmResetFactors))),
		sure(everywhere(post("/staff/{id}/reset-second-factors", staff.ManageStaff, c.resetFactors))),
		sure(everywhere(post("/staff/second-factors", staff.ManageStaff, c.savePolicy))),
	}
}

func (c *Console) showSecurity(w http.ResponseWriter, r *http.Request) error {
	return c.securityPage(w, r, http.StatusOK, nil)
}

func (c *Console) securityPage(w http.ResponseWriter, r *http.Request, status int, errs []fault.Field) error {
	has, err := c.Staff.SecurityOf(r.Context(), frame(r).Member)
	if err != nil {
		return err
	}
	p := pages.Security{Security: has, Errors: errs, Passkeys: c.party(r).ID != ""}
	if to := localPath(r.FormValue("return")); to != "/" && !strings.HasPrefix(to, securityPath) {
		p.Return = to
	}
	if _, codes := c.secretOnce(w, r, securityPath); codes != "" {
		p.Fresh = strings.Fields(codes)
	}
	return c.show(w, r, status, p.Page())
}

// added goes back to the list after a second factor was added, where fresh
// recovery codes are shown once.
func (c *Console) added(w http.ResponseWriter, r *http.Request, codes []string) error {
	c.accessChanged()
	if len(codes) > 0 {
		c.secretFor(w, r, securityPath, "recovery codes", strings.Join(codes, " "))
	}
	to := securityPath
	if page := localPath(r.FormValue("return")); page != "/" {
		to += "?" + url.Values{"return": {page}}.Encode()
	}
	return c.done(w, r, to, ui.Good, say(r, "security.added"))
}

// pending returns the secret that the session keeps for the member; nil = none.
func (c *Console) pending(r *http.Request) []byte {
	owner, text, _ := strings.Cut(c.sessions.GetString(r.Context(), newCodeKey), " ")
	if owner != strconv.FormatInt(frame(r).Member.ID, 10) {
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
		c.sessions.Put(r.Context(), newCodeKey, fmt.Sprintf("%d %s", frame(r).Member.ID, base64.RawStdEncoding.EncodeToString(stored)))
	}
	return c.appPage(w, r, http.StatusOK, pages.NewApp{Name: say(r, "security.app.default")})
}

func (c *Console) appPage(w http.ResponseWriter, r *http.Request, status int, p pages.NewApp) error {
	secret, err := c.Staff.ShowCode(frame(r).Member, c.pending(r))
	if errors.Is(err, staff.ErrSealed) { // begun before the key was changed
		c.sessions.Remove(r.Context(), newCodeKey)
	}
	if err != nil {
		return err
	}
	p.Secret, p.Return = secret, localPath(r.FormValue("return"))
	return c.show(w, r, status, p.Page())
}

func (c *Console) addApp(w http.ResponseWriter, r *http.Request) error {
	stored, in := c.pending(r), factorInput(r)
	if stored == nil {
		redirect(w, r, securityPath+"/app")
		return nil
	}
	held, wait, err := c.provingThrottled(r, frame(r).Member)
	if err != nil || wait > 0 {
		return tooMany(wait, err)
	}
	codes, err := c.Staff.AddCode(r.Context(), frame(r).Member, stored, in)
	if fields := fieldsOf(err); fields != nil {
		return c.appPage(w, r, http.StatusUnprocessableEntity, pages.NewApp{Name: in.Name, Errors: fields})
	}
	if err != nil {
		return err
	}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	c.sessions.Remove(r.Context(), newCodeKey)
	return c.added(w, r, codes)
}

func factorInput(r *http.Request) staff.FactorInput {
	return staff.FactorInput{Name: r.PostFormValue("name"), Code: narrow(r.PostFormValue("passcode"))}
}

func (c *Console) newPasskey(w http.ResponseWriter, r *http.Request) error {
	return c.passkeyPage(w, r, http.StatusOK, pages.NewPasskey{Name: say(r, "security.passkey.default")})
}

func (c *Console) passkeyPage(w http.ResponseWriter, r *http.Request, status int, p pages.NewPasskey) error {
	asked, err := c.Staff.BeginPasskey(r.Context(), c.party(r), frame(r).Member)
	if err != nil {
		return err
	}
	c.sessions.Put(r.Context(), ceremonyKey, string(asked.State))
	p.Options, p.Return = string(asked.Options), localPath(r.FormValue("return"))
	return c.show(w, r, status, p.Page())
}

func (c *Console) addPasskey(w http.ResponseWriter, r *http.Request) error {
	in := factorInput(r)
	codes, err := c.Staff.AddPasskey(r.Context(), frame(r).Member, in, c.passkeyAnswer(r, r.PostFormValue("passkey")))
	if fields := fieldsOf(err); fields != nil {
		return c.passkeyPage(w, r, http.StatusUnprocessableEntity, pages.NewPasskey{Name: in.Name, Errors: fields})
	}
	if errors.Is(err, staff.ErrSecondFactor) {
		c.Log.InfoContext(r.Context(), "a passkey was not enrolled", "staff", frame(r).Member.ID, "error", err)
		return c.passkeyPage(w, r, http.StatusUnprocessableEntity, pages.NewPasskey{Name: in.Name, Error: say(r, "security.passkey.refused")})
	}
	if err != nil {
		return err
	}
	return c.added(w, r, codes)
}

func (c *Console) newRecoveryCodes(w http.ResponseWriter, r *http.Request) error {
	codes, err := c.Staff.NewRecoveryCodes(r.Context(), frame(r).Member)
	if err != nil {
		return err
	}
	c.secretFor(w, r, securityPath, "recovery codes", strings.Join(codes, " "))
	return c.done(w, r, securityPath, ui.Good, say(r, "security.codes.made"))
}

func (c *Console) renameFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	err = c.Staff.RenameFactor(r.Context(), frame(r).Member, id, r.PostFormValue("name"))
	if fields := fieldsOf(err); fields != nil {
		return c.securityPage(w, r, http.StatusUnprocessableEntity, fields)
	}
	if err != nil {
		return err
	}
	return c.done(w, r, securityPath, ui.Good, say(r, "security.renamed"))
}

func (c *Console) confirmRemoveFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	has, err := c.Staff.SecurityOf(r.Context(), frame(r).Member)
	if err != nil {
		return err
	}
	for _, f := range has.Factors {
		if f.ID != id {
			continue
		}
		points := []string{say(r, "security.remove.1")}
		if len(has.Factors) == 1 {
			points = append(points, say(r, "security.remove.last"))
		}
		return c.ask(w, r, http.StatusOK, pages.Confirmation{Crumbs: securityCrumbs(r),
			ConfirmProps: ui.ConfirmProps{Title: say(r, "security.remove.title", f.Name), Points: points, NoReason: true,
				Action: fmt.Sprintf("%s/%d/remove", securityPath, id), Cancel: securityPath, Submit: say(r, "security.remove"), Kind: "danger"}})
	}
	return staff.ErrFactorNotFound
}

func securityCrumbs(r *http.Request) []ui.Crumb {
	return []ui.Crumb{{Label: say(r, "account.title"), URL: "/account"}, {Label: say(r, "security.title"), URL: securityPath}}
}

func (c *Console) removeFactor(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	if err := c.Staff.RemoveFactor(r.Context(), frame(r).Member, id); err != nil {
		return err
	}
	c.accessChanged()
	return c.done(w, r, securityPath, ui.Good, say(r, "security.removed"))
}

func (c *Console) confirmResetFactors(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	m, err := c.Staff.Member(r.Context(), actor(r), id)
	if err != nil {
		return err
	}
	page := fmt.Sprintf("/staff/%d", id)
	return c.ask(w, r, http.StatusOK, pages.Confirmation{Active: "staff", Crumbs: []ui.Crumb{{Label: say(r, "nav.staff"), URL: "/staff"}, {Label: m.Actor().Name, URL: page}},
		ConfirmProps: ui.ConfirmProps{Title: say(r, "security.reset.title", m.Actor().Name), NoReason: true,
			Points: []string{say(r, "security.reset.1"), say(r, "security.reset.2"), say(r, "security.reset.3")},
			Action: page + "/reset-second-factors", Cancel: page, Submit: say(r, "security.reset"), Kind: "danger"}})
}

func (c *Console) resetFactors(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r)
	if err != nil {
		return err
	}
	n, err := c.Staff.ResetFactors(r.Context(), actor(r), id)
	if err != nil {
		return err
	}
	c.accessChanged()
	return c.done(w, r, fmt.Sprintf("/staff/%d", id), ui.Good, frame(r).Locale.N("security.reset_done", int64(n)))
}

func (c *Console) savePolicy(w http.ResponseWriter, r *http.Request) error {
	p := staff.Policy(r.PostFormValue("second_factor"))
	if err := c.Staff.SetPolicy(r.Context(), actor(r), p); err != nil {
		return err
	}
	c.accessChanged()
	return c.done(w, r, "/staff", ui.Good, say(r, "staff.policy.saved"))
}

// tooMany is the refusal of attempts that come too fast.
func tooMany(wait time.Duration, err error) error {
	if err != nil {
		return err
	}
	return &fault.RetryAfter{Err: fault.New(fault.Throttled, "rate_limited", "too many attempts"), After: wait}
}
