package shell

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"dropbell/domain/staff"
)

// SecurityPath is the page of the member's second factors.
const SecurityPath = "/account/security"

const (
	// IdleTimeout ends an unused session.
	IdleTimeout = 12 * time.Hour
	signInLife  = 7 * 24 * time.Hour
	// SignInKey is where a session keeps the id of its sign-in.
	SignInKey = "sign_in"
	// LocaleCookie and ThemeCookie keep preferences of browsers without a sign-in.
	LocaleCookie = "dropbell_locale"
	ThemeCookie  = "dropbell_theme"
	// ZoneCookie has the name of the browser's time zone. The console's script writes it.
	ZoneCookie = "dropbell_zone"
	// SetupCookie says whether a browser shows the first steps: [SetupHidden] = never, [SetupShown]
	// = also when all steps are done, without the cookie = until all steps are done.
	SetupCookie = "dropbell_setup"
	SetupHidden = "hidden"
	SetupShown  = "shown"
	// BrowserCookie keeps the digest of the browser's subscription to notifications.
	BrowserCookie = "dropbell_browser"
	// CookieLife is how long browsers keep preferences.
	CookieLife = 365 * 24 * time.Hour
)

func newSessions(d Deps, failed func(http.ResponseWriter, *http.Request, error)) *scs.SessionManager {
	s := scs.New()
	s.Store, s.HashTokenInStore = steadyStore{d.Sessions, s.Codec}, true
	s.IdleTimeout, s.Lifetime = IdleTimeout, signInLife
	s.Cookie.Name, s.Cookie.HttpOnly, s.Cookie.SameSite = "dropbell_session", true, http.SameSiteLaxMode
	if Secure(d.PublicURL) {
		s.Cookie.Name, s.Cookie.Secure = "__Host-dropbell_session", true
	}
	s.ErrorFunc = failed
	return s
}

// Secure reports whether browsers reach the console over https only.
func Secure(publicURL string) bool { return strings.HasPrefix(publicURL, "https://") }

// identify sets the member of the request. A session whose sign-in was revoked, or whose member was
// disabled, has no member.
func (sh *Shell) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = withSession(r)
		id := sh.Sessions.GetString(r.Context(), SignInKey)
		if id == "" {
			next.ServeHTTP(w, r)
			return
		}
		who, err := sh.present.of(r.Context(), id)
		if errors.Is(err, staff.ErrUnauthenticated) {
			sh.Sessions.Remove(r.Context(), SignInKey)
			next.ServeHTTP(w, r)
			return
		}
		if err != nil {
			sh.Fail(w, r, err)
			return
		}
		f, m := Frame(r), who.Member
		f.Member, f.Method, f.MustEnrol = m, who.Method, who.MustEnrol
		f.Locale = sh.Languages.Match(m.Locale, cookie(r, LocaleCookie), r.Header.Get("Accept-Language"))
		if m.Theme != "" {
			f.Theme = Theme(m.Theme)
		}
		next.ServeHTTP(w, r)
	})
}

// askToSignIn redirects to the sign-in and from there back to the page that was open. The changes
// of the request are lost, and the sign-in page says so.
func (sh *Shell) askToSignIn(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/live") && Reads(r) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	to, again := "/signin", url.Values{}
	if page := openPage(r); page != "/" {
		again.Set("return", page)
	}
	if !Reads(r) {
		again.Set("lost", "1")
	}
	if len(again) > 0 {
		to += "?" + again.Encode()
	}
	if Partial(r) {
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// openPage returns the page from which the request was made; "/" if no trustworthy header names it.
func openPage(r *http.Request) string {
	says := r.Header.Get("HX-Current-URL")
	switch {
	case says == "" && Reads(r):
		return LocalPath(r.URL.RequestURI())
	case says == "":
		says = r.Referer()
	}
	u, err := url.Parse(says)
	if err != nil {
		return "/"
	}
	if to := LocalPath(u.RequestURI()); !strings.HasPrefix(to, "/signin") {
		return to // of whichever host: it is a path of ours
	}
	return "/"
}

// KeptBrowser returns the value of [BrowserCookie]; "" = none.
func KeptBrowser(r *http.Request) string { return cookie(r, BrowserCookie) }

func cookie(r *http.Request, name string) string {
	if k, err := r.Cookie(name); err == nil {
		return k.Value
	}
	return ""
}

// Theme returns s if it is a theme, else "": the theme of the browser's system.
func Theme(s string) string {
	if s == "light" || s == "dark" {
		return s
	}
	return ""
}

// LocalPath returns s if it is a path of this site, else "/", to prevent open redirects.
func LocalPath(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") ||
		strings.ContainsAny(s, "\\\r\n\t") || strings.HasPrefix(u.Path, "//") {
		return "/"
	}
	return s
}

// askToEnrol redirects a member who must have a second factor to the page for adding it.
func (sh *Shell) askToEnrol(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/live") && Reads(r) {
		w.WriteHeader(http.StatusForbidden) // the page behind the stream is loaded again
		return
	}
	if !Reads(r) {
		Redirect(w, r, SecurityPath)
		return
	}
	to := SecurityPath
	if page := openPage(r); page != "/" {
		to += "?" + url.Values{"return": {page}}.Encode()
	}
	Redirect(w, r, to)
}

type sessionKey struct{}

// withSession marks the request as having a session. There is no session while the database, which
// stores sessions, does not answer.
func withSession(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, true))
}

func hasSession(r *http.Request) bool { return r.Context().Value(sessionKey{}) != nil }
