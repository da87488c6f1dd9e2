package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/views/pages"
	"dropbell/views/ui"
	"dropbell/web/security"
)

const (
	idleTimeout  = 12 * time.Hour
	signInLife   = 7 * 24 * time.Hour
	signInKey    = "sign_in"
	localeCookie = "dropbell_locale"
	themeCookie  = "dropbell_theme"
	cookieLife   = 365 * 24 * time.Hour
)

func newSessions(d Deps, failed func(http.ResponseWriter, *http.Request, error)) *scs.SessionManager {
	s := scs.New()
	s.Store, s.HashTokenInStore = d.Sessions, true
	s.IdleTimeout, s.Lifetime = idleTimeout, signInLife
	s.Cookie.Name, s.Cookie.HttpOnly, s.Cookie.SameSite = "dropbell_session", true, http.SameSiteLaxMode
	if secure(d.PublicURL) {
		s.Cookie.Name, s.Cookie.Secure = "__Host-dropbell_session", true
	}
	s.ErrorFunc = failed
	return s
}

func secure(publicURL string) bool { return strings.HasPrefix(publicURL, "https://") }

// identify finds out who asks. A session whose sign-in was revoked, or whose
// member was disabled, is nobody's.
func (c *Console) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = withSession(r)
		id := c.sessions.GetString(r.Context(), signInKey)
		if id == "" {
			next.ServeHTTP(w, r)
			return
		}
		who, err := c.present.of(r.Context(), id)
		if errors.Is(err, staff.ErrUnauthenticated) {
			c.sessions.Remove(r.Context(), signInKey)
			next.ServeHTTP(w, r)
			return
		}
		if err != nil {
			c.fail(w, r, err)
			return
		}
		f, m := frame(r), who.Member
		f.Member, f.Method, f.MustEnrol = m, who.Method, who.MustEnrol
		f.Locale = c.languages.Match(m.Locale, cookie(r, localeCookie), r.Header.Get("Accept-Language"))
		if m.Theme != "" {
			f.Theme = theme(m.Theme)
		}
		next.ServeHTTP(w, r)
	})
}

// askToSignIn leads to the sign-in and from there back to the page that was
// open. What a request would have changed is lost, and that is said there.
func (c *Console) askToSignIn(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/live") && reads(r) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	to, again := "/signin", url.Values{}
	if page := openPage(r); page != "/" {
		again.Set("return", page)
	}
	if !reads(r) {
		again.Set("lost", "1")
	}
	if len(again) > 0 {
		to += "?" + again.Encode()
	}
	if partial(r) {
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// openPage is the page in front of which the request was made; "/" if nothing
// trustworthy says which.
func openPage(r *http.Request) string {
	says := r.Header.Get("HX-Current-URL")
	switch {
	case says == "" && reads(r):
		return localPath(r.URL.RequestURI())
	case says == "":
		says = r.Referer()
	}
	u, err := url.Parse(says)
	if err != nil {
		return "/"
	}
	if to := localPath(u.RequestURI()); !strings.HasPrefix(to, "/signin") {
		return to // of whichever host: it is a path of ours
	}
	return "/"
}

func (c *Console) signInForm(w http.ResponseWriter, r *http.Request) error {
	to := afterSignIn(r)
	if frame(r).Member.ID != 0 {
		redirect(w, r, to)
		return nil
	}
	switch {
	case r.FormValue("lost") != "":
		frame(r).Flashes = append(frame(r).Flashes, ui.Flash{Kind: ui.Warn, Text: say(r, "signin.lost")})
	case to != "/":
		frame(r).Flashes = append(frame(r).Flashes, ui.Flash{Kind: ui.Info, Text: say(r, "signin.again")})
	}
	return c.show(w, r, http.StatusOK, c.signInPage(to).Page())
}

func (c *Console) signIn(w http.ResponseWriter, r *http.Request) error {
	if c.Staff.PasswordsOff {
		return staff.ErrPasswordsOff
	}
	email, to := r.PostFormValue("email"), afterSignIn(r)
	again := c.signInPage(to)
	if len(email) <= staff.MaxEmail {
		again.Email = email
	}
	if again.Errors = missing(r, "email", "password"); again.Errors != nil {
		return c.show(w, r, http.StatusUnprocessableEntity, again.Page())
	}
	held, wait, err := c.throttled(r, email)
	if err != nil {
		return err
	}
	if wait > 0 {
		c.noteSlowed(r, email)
		w.Header().Set("Retry-After", seconds(wait))
		again.Error = say(r, "signin.throttled", frame(r).Locale.Duration(wait.Round(time.Second)+time.Second))
		return c.show(w, r, http.StatusTooManyRequests, again.Page())
	}
	from := staff.Client{IP: clientIP(r), UserAgent: r.UserAgent()}
	m, in, err := c.Staff.SignIn(r.Context(), email, r.PostFormValue("password"), from)
	if errors.Is(err, staff.ErrSignIn) {
		c.refused(r, security.SignInRefused, staff.Member{}, "")
		again.Error = say(r, "signin.refused")
		return c.show(w, r, http.StatusUnprocessableEntity, again.Page())
	}
	if err != nil && !errors.Is(err, staff.ErrSecondFactorNeeded) {
		return err
	}
	if err := held.giveBack(r.Context()); err != nil {
		return err
	}
	if err != nil {
		return c.askSecond(w, r, m, to)
	}
	return c.enter(w, r, in, to)
}

// enter opens the session of a sign-in and goes on. The session gets a new
// token: a browser into which somebody planted the old one is not signed in.
func (c *Console) enter(w http.ResponseWriter, r *http.Request, in staff.SignIn, to string) error {
	if err := c.sessions.RenewToken(r.Context()); err != nil {
		return err
	}
	c.sessions.Remove(r.Context(), halfKey)
	c.sessions.Put(r.Context(), signInKey, in.ID)
	if in.Method == staff.ByPassword {
		c.confirmedAt(r, in.CreatedAt)
	}
	c.Log.InfoContext(r.Context(), "signed in", "staff", in.StaffID, "method", in.Method)
	redirect(w, r, to)
	return nil
}

// missing returns the fields of a form in which nothing was typed.
func missing(r *http.Request, names ...string) (list []fault.Field) {
	for _, name := range names {
		if r.PostFormValue(name) == "" {
			list = append(list, fault.Field{Name: name, Key: "rule.required", Message: "is required"})
		}
	}
	return list
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request) error {
	id := c.sessions.GetString(r.Context(), signInKey)
	if m := frame(r).Member; m.ID != 0 && id != "" {
		if err := c.Staff.SignOut(context.WithoutCancel(r.Context()), m, id); err != nil {
			return err
		}
		c.present.forget(id)
	}
	if err := c.sessions.Destroy(r.Context()); err != nil {
		return err
	}
	redirect(w, r, "/signin")
	return nil
}

// savePreferences keeps language and theme: in cookies, and for members also
// with their account.
func (c *Console) savePreferences(w http.ResponseWriter, r *http.Request) error {
	m := frame(r).Member
	if r.PostForm.Has("theme") {
		m.Theme = theme(r.PostFormValue("theme"))
		c.keep(w, themeCookie, m.Theme)
	}
	if tag := r.PostFormValue("locale"); tag != "" {
		m.Locale = c.languages.Match(tag).Tag
		c.keep(w, localeCookie, m.Locale)
	}
	if m.ID != 0 {
		if err := c.Staff.SetPreferences(r.Context(), m, m.Locale, m.Theme); err != nil {
			return err
		}
		c.present.forget(c.sessions.GetString(r.Context(), signInKey))
	}
	redirect(w, r, localPath(r.PostFormValue("return")))
	return nil
}

func (c *Console) keep(w http.ResponseWriter, name, value string) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(cookieLife / time.Second),
		HttpOnly: true, Secure: secure(c.PublicURL), SameSite: http.SameSiteLaxMode})
}

func cookie(r *http.Request, name string) string {
	if k, err := r.Cookie(name); err == nil {
		return k.Value
	}
	return ""
}

func theme(s string) string {
	if s == "light" || s == "dark" {
		return s
	}
	return ""
}

// localPath returns s if it is a path of this site, else "/": nobody is sent
// to another site by a link to ours.
func localPath(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") ||
		strings.ContainsAny(s, "\\\r\n\t") || strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	return s
}

// afterSignIn is where a sign-in leads: to the page that asked for it.
func afterSignIn(r *http.Request) string {
	to := localPath(r.FormValue("return"))
	if strings.HasPrefix(to, "/signin") {
		return "/"
	}
	return to
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second)+1, 10) }

func (c *Console) account(w http.ResponseWriter, r *http.Request) error {
	return c.accountPage(w, r, http.StatusOK, nil)
}

func (c *Console) accountPage(w http.ResponseWriter, r *http.Request, status int, errs []fault.Field) error {
	list, err := c.Staff.SignIns(r.Context(), frame(r).Member)
	if err != nil {
		return err
	}
	return c.show(w, r, status, pages.Account{SignIns: list, InUse: c.sessions.GetString(r.Context(), signInKey), Errors: errs,
		PasswordsOff: c.Staff.PasswordsOff}.Page())
}

func (c *Console) changePassword(w http.ResponseWriter, r *http.Request) error {
	id := c.sessions.GetString(r.Context(), signInKey)
	// Guessing the old password here must not be easier than at the door.
	wait, err := c.Throttle.Allow(r.Context(), "password:"+frame(r).Member.Actor().Label)
	if err != nil {
		return err
	}
	if wait > 0 {
		return &fault.RetryAfter{Err: fault.New(fault.Throttled, "rate_limited", "too many attempts"), After: wait}
	}
	err = c.Staff.ChangeOwnPassword(r.Context(), frame(r).Member, r.PostFormValue("old_password"), r.PostFormValue("password"), id)
	if f, ok := errors.AsType[*fault.Fields](err); ok {
		return c.accountPage(w, r, http.StatusUnprocessableEntity, f.List)
	}
	if err != nil {
		return err
	}
	c.present.clear()
	return c.done(w, r, "/account", ui.Good, say(r, "account.password_changed"))
}

func (c *Console) revokeSignIns(w http.ResponseWriter, r *http.Request) error {
	ended, err := c.Staff.Revoke(r.Context(), frame(r).Member, r.PostFormValue("id"), c.sessions.GetString(r.Context(), signInKey))
	if err != nil {
		return err
	}
	c.present.clear()
	return c.done(w, r, "/account", ui.Good, frame(r).Locale.N("account.revoked", int64(ended)))
}
