package access_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestSignInTellsNothing(t *testing.T) {
	g := consoletest.New(t)
	m, off := g.Hire(staff.Viewer), g.Hire(staff.Viewer)
	g.Exec(`update staff set disabled_at = now() where id = $1`, off.ID)
	b := g.Browser()
	wrong := b.Try(m.Email, "not it", "/").Is(http.StatusUnprocessableEntity)
	unknown := b.Try("nobody@example.com", consoletest.Password, "/").Is(http.StatusUnprocessableEntity)
	disabled := b.Try(off.Email, consoletest.Password, "/").Is(http.StatusUnprocessableEntity)
	same := func(a consoletest.Answer) string {
		return strings.NewReplacer(m.Email, "", off.Email, "", "nobody@example.com", "").Replace(a.Text())
	}
	if same(wrong) != same(unknown) || same(wrong) != same(disabled) {
		t.Errorf("the answers differ:\n%s\n%s\n%s", same(wrong), same(unknown), same(disabled))
	}
	wrong.Has("The e-mail address or the password is wrong", `value="`+m.Email+`"`).HasNot("not it")
	if c := b.Try(strings.ToUpper(m.Email)+" ", consoletest.Password, "/"); c.Status != http.StatusSeeOther {
		t.Errorf("the address in capitals is not taken: %d", c.Status)
	}
}

// A form that was sent half filled in is no guess.
func TestSignInNamesWhatIsMissing(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Access.Throttle = shell.NewThrottle(1, time.Hour, d.Now) })
	m, b := g.Hire(staff.Viewer), g.Browser()
	b.Try("", "", "/").Is(http.StatusUnprocessableEntity).Has(`id="f-email-error"`, `id="f-password-error"`, "Enter an e-mail address", "Enter the password").HasNot("is wrong")
	b.Try(m.Email, "", "/").Is(http.StatusUnprocessableEntity).Has(`id="f-password-error"`, `value="`+m.Email+`"`).HasNot(`id="f-email-error"`)
	b.Try(m.Email, consoletest.Password, "/").To("/")
}

func TestSignInReturnsOnlyToThisSite(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Viewer)
	for to, want := range map[string]string{
		"/templates?q=moon": "/templates?q=moon", "": "/", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/",
		"javascript:alert(1)": "/", "templates": "/", "/signin": "/", "/\t/evil.example": "/", "/%2Fevil.example": "/",
	} {
		g.Browser().Try(m.Email, consoletest.Password, to).To(want)
	}
	g.Browser().Get("/templates?q=moon").To("/signin?return=%2Ftemplates%3Fq%3Dmoon")
}

func TestSessionCookie(t *testing.T) {
	for publicURL, safe := range map[string]bool{"http://127.0.0.1": false, "https://drops.example": true} {
		g := consoletest.New(t, func(d *console.Deps) { d.PublicURL = publicURL })
		m := g.Hire(staff.Viewer)
		a := g.Browser().Try(m.Email, consoletest.Password, "/")
		cookie := a.Header.Get("Set-Cookie")
		for _, want := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
			if !strings.Contains(cookie, want) {
				t.Errorf("%s: cookie %q lacks %s", publicURL, cookie, want)
			}
		}
		if strings.Contains(cookie, "Secure") != safe || strings.Contains(cookie, "__Host-") != safe {
			t.Errorf("%s: cookie %q", publicURL, cookie)
		}
		var stored, token string
		g.Must(g.SQL.QueryRow(t.Context(), `select token from sessions order by expiry desc limit 1`).Scan(&stored))
		token = cookie[strings.Index(cookie, "=")+1 : strings.Index(cookie, ";")]
		if stored == token || stored == "" {
			t.Errorf("the database holds the cookie's token %q itself", stored)
		}
	}
}

// A token that was there before the sign-in must not open the session after it.
func TestSessionFixation(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Viewer)
	b := g.Browser()
	b.SignIn(m.Email)
	here, _ := url.Parse(g.Server.URL)
	planted := b.Client.Jar.Cookies(here)
	b.Post("/signin", url.Values{"email": {m.Email}, "password": {consoletest.Password}}).Is(http.StatusSeeOther)
	thief := g.Browser()
	thief.Client.Jar.SetCookies(here, planted)
	thief.Get("/").To("/signin")
	b.Get("/").Is(200)
}

func TestSessionsEnd(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Viewer)
	b := g.Browser()
	b.SignIn(m.Email)

	g.Wait(shell.IdleTimeout - time.Hour) // only the console's clock; sessions end by the database's
	b.Get("/account").Is(200).Has("Signed in")
	g.Exec(`update sessions set expiry = now() - interval '1 second'`)
	b.Get("/account").To("/signin?return=%2Faccount")

	b.SignIn(m.Email)
	g.Exec(`update staff set disabled_at = now() where id = $1`, m.ID)
	g.Wait(shell.PresenceLife)
	b.Get("/").To("/signin")
	g.Exec(`update staff set disabled_at = null where id = $1`, m.ID)
	b.Get("/").To("/signin") // a session once refused stays ended
}

func TestSignOut(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	here, _ := url.Parse(g.Server.URL)
	kept := b.Client.Jar.Cookies(here)
	b.Do(http.MethodGet, "/signout", nil).Is(http.StatusNotFound) // a link must not end a session
	b.Get("/").Is(200)
	b.Post("/signout", nil).To("/signin")
	b.Client.Jar.SetCookies(here, kept)
	b.Get("/").To("/signin")
}

func TestRevokeOwnSignIns(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Viewer)
	here, other, third := g.Browser(), g.Browser(), g.Browser()
	for _, b := range []*consoletest.Browser{here, other, third} {
		b.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0")
		b.SignIn(m.Email)
		b.Get("/").Is(200)
	}
	page := here.Get("/account").Is(200).Has("Firefox, Linux", "This browser", "Sign out everywhere else")
	here.Post("/account/revoke", url.Values{"id": {page.Field("id")}}).To("/account")
	here.Get("/account").Is(200).Has("1 sign-in has been ended.")
	left := 0
	for _, b := range []*consoletest.Browser{other, third} {
		if b.Get("/").Status == 200 {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d of two other browsers are still signed in, want 1", left)
	}
	here.Post("/account/revoke", nil).To("/account")
	other.Get("/").To("/signin")
	third.Get("/").To("/signin")
	here.Get("/").Is(200)

	stranger := g.As(staff.Admin)
	stranger.Post("/account/revoke", url.Values{"id": {page.Field("id")}}).To("/account")
	here.Get("/").Is(200)
}

func TestChangePassword(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Viewer)
	b, other := g.Browser(), g.Browser()
	b.SignIn(m.Email)
	other.SignIn(m.Email)
	b.Post("/account/password", url.Values{"old_password": {"no"}, "password": {"long enough words"}}).Is(422).Has("is not your current password")
	b.Post("/account/password", url.Values{"old_password": {consoletest.Password}, "password": {"short"}}).Is(422).Has("must have between 12 and 200 characters")
	b.Post("/account/password", url.Values{"old_password": {consoletest.Password}, "password": {"Password1234"}}).Is(422).Has("one of the most common passwords")
	b.Post("/account/password", url.Values{"old_password": {consoletest.Password}, "password": {"long enough words"}}).To("/account")
	b.Get("/account").Is(200).Has("Your password has been changed.")
	other.Get("/").To("/signin")
	g.Browser().Try(m.Email, consoletest.Password, "/").Is(422)
	g.Browser().Try(m.Email, "long enough words", "/").To("/")
}

func TestSignInIsThrottled(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Access.Throttle = shell.NewThrottle(3, time.Minute, d.Now) })
	m := g.Hire(staff.Viewer)
	b := g.Browser()
	for range 3 {
		b.Try(m.Email, "guess", "/").Is(422)
	}
	a := b.Try(m.Email, consoletest.Password, "/").Is(http.StatusTooManyRequests).Has("Too many attempts")
	if a.Header.Get("Retry-After") != "61" && a.Header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After %q, want about a minute", a.Header.Get("Retry-After"))
	}
	g.Wait(61 * time.Second)
	b.Try(m.Email, consoletest.Password, "/").To("/")
}

// watchful records the keys that a throttle is called with.
type watchful struct{ asked []string }

func (w *watchful) Allow(_ context.Context, key string) (time.Duration, error) {
	w.asked = append(w.asked, key)
	return 0, nil
}

func (w *watchful) Return(context.Context, string) error { return nil }

// A text too long for an address is answered like a wrong password, and no part of it is stored.
func TestSignInWithTooLongAnAddress(t *testing.T) {
	w := &watchful{}
	g := consoletest.New(t, func(d *console.Deps) { d.Access.Throttle = w })
	m := g.Hire(staff.Viewer)
	b := g.Browser()
	wrong := b.Try(m.Email, "not it", "/").Is(http.StatusUnprocessableEntity)
	w.asked = nil
	long := b.Try(strings.Repeat("x", 500_000)+m.Email, consoletest.Password, "/").Is(http.StatusUnprocessableEntity)
	if long.Text() != wrong.Text() || len(long.Body) > len(wrong.Body) {
		t.Errorf("the answers differ: %d bytes and %d:\n%s\n%s", len(long.Body), len(wrong.Body), long.Text(), wrong.Text())
	}
	if len(w.asked) != 1 || !strings.HasPrefix(w.asked[0], "signin:ip:") {
		t.Errorf("counted for %.100q", w.asked)
	}
}

func TestAnotherSiteChangesNothing(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	for _, site := range []string{"cross-site", "same-site"} {
		b.Header.Set("Sec-Fetch-Site", site)
		b.Header.Set("Origin", "https://evil.example")
		b.Post("/shops", url.Values{"shop_number": {"5"}, "name": {"x"}, "timezone": {"UTC"}}).Is(http.StatusForbidden)
		b.Post("/signout", nil).Is(http.StatusForbidden)
	}
	b.Header.Set("Sec-Fetch-Site", "same-origin")
	b.Get("/shops").Is(200).HasNot(">x<")
}

func TestLanguageAndTheme(t *testing.T) {
	g := consoletest.New(t)
	b := g.Browser()
	b.Header.Set("Accept-Language", "zh-TW, en;q=0.5")
	b.Get("/signin").Is(200).Has(`lang="zh-CN"`, "登录")
	b.Post("/preferences", url.Values{"locale": {"en"}, "theme": {"dark"}, "return": {"/signin"}}).To("/signin")
	b.Get("/signin").Is(200).Has(`lang="en"`, `data-theme="dark"`)

	m := g.Hire(staff.Viewer)
	b.SignIn(m.Email)
	b.Post("/preferences", url.Values{"locale": {"zh-CN"}, "return": {"//evil.example"}}).To("/")
	b.Post("/preferences", url.Values{"theme": {"light"}}).To("/")
	elsewhere := g.Browser()
	elsewhere.SignIn(m.Email)
	elsewhere.Get("/account").Is(200).Has(`lang="zh-CN"`, `data-theme="light"`, "我的账号")
	b.Post("/preferences", url.Values{"theme": {"<script>"}, "locale": {"xx-!!"}}).To("/")
	b.Get("/account").Is(200).HasNot("<script>")
}

func TestSecurityHeaders(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	first, second := b.Get("/templates/new"), b.Get("/templates/new")
	policy := first.Header.Get("Content-Security-Policy")
	if policy == second.Header.Get("Content-Security-Policy") {
		t.Error("two pages share a nonce")
	}
	for _, want := range []string{"default-src 'none'", "script-src 'nonce-", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin"} {
		if first.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, first.Header.Get(name), want)
		}
	}
}

// A member whose sign-in ended comes back to the page that was open, with a message that the form
// was not stored.
func TestSignInLeadsBackToTheOpenPage(t *testing.T) {
	g := consoletest.New(t)
	b := g.Browser()
	for _, c := range []struct{ method, path, header, from, want string }{
		{"GET", "/users/7/edit?a=b", "", "", "/signin?return=%2Fusers%2F7%2Fedit%3Fa%3Db"},
		{"POST", "/users/7/edit", "Referer", g.Server.URL + "/users/7/edit?x=1", "/signin?lost=1&return=%2Fusers%2F7%2Fedit%3Fx%3D1"},
		{"POST", "/users/7/edit", "", "", "/signin?lost=1"},
		{"POST", "/users/7/edit", "Referer", g.Server.URL + "//evil.example/", "/signin?lost=1"},
		{"POST", "/users/7/edit", "Referer", g.Server.URL + "/signin?return=/x", "/signin?lost=1"},
		{"GET", "/templates?q=x", "HX-Current-URL", g.Server.URL + "/templates?sort=name#top", "/signin?return=%2Ftemplates%3Fsort%3Dname"},
		{"POST", "/templates/1/publish", "HX-Current-URL", g.Server.URL + "/templates/1", "/signin?lost=1&return=%2Ftemplates%2F1"},
		{"GET", "/templates", "HX-Current-URL", "javascript:alert(1)", "/signin"},
	} {
		b.Header = http.Header{}
		if c.header != "" {
			b.Header.Set(c.header, c.from)
		}
		if strings.HasPrefix(c.header, "HX-") {
			b.Header.Set("HX-Request", "true")
		}
		a := b.Do(c.method, c.path, url.Values{})
		if to := a.Header.Get("Location") + a.Header.Get("HX-Redirect"); to != c.want {
			t.Errorf("%s %s from %s leads to %q, want %q", c.method, c.path, c.from, to, c.want)
		}
	}
	b.Header = http.Header{}
	b.Get("/signin?lost=1&return=%2Fusers%2F7%2Fedit").Is(200).Has("your last input was not saved", `value="/users/7/edit"`)
}

// TestTheDemosPasswordStaysHome: the demo's password opens the console from the same machine only,
// for any account.
func TestTheDemosPasswordStaysHome(t *testing.T) {
	g := consoletest.New(t)
	g.From()
	form := url.Values{"email": {"nobody@example.com"}, "password": {staff.DemoPassword}}
	g.At("203.0.113.9").Post("/signin", form).Is(http.StatusUnprocessableEntity).Has("opens the console from its own machine only")
	for _, ip := range []string{"127.0.0.1", "[::1]"} {
		g.At(ip).Post("/signin", form).Is(http.StatusUnprocessableEntity).Has("The e-mail address or the password is wrong")
	}
}
