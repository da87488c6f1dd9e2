package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

func (b *browser) try(email, pass, to string) answer {
	b.Helper()
	return b.post("/signin", url.Values{"email": {email}, "password": {pass}, "return": {to}})
}

func TestSignInTellsNothing(t *testing.T) {
	g := newRig(t)
	m, off := g.hire(staff.Viewer), g.hire(staff.Viewer)
	g.exec(`update staff set disabled_at = now() where id = $1`, off.ID)
	b := g.browser()
	wrong := b.try(m.Email, "not it", "/").is(http.StatusUnprocessableEntity)
	unknown := b.try("nobody@example.com", password, "/").is(http.StatusUnprocessableEntity)
	disabled := b.try(off.Email, password, "/").is(http.StatusUnprocessableEntity)
	same := func(a answer) string {
		return strings.NewReplacer(m.Email, "", off.Email, "", "nobody@example.com", "").Replace(a.text())
	}
	if same(wrong) != same(unknown) || same(wrong) != same(disabled) {
		t.Errorf("the answers differ:\n%s\n%s\n%s", same(wrong), same(unknown), same(disabled))
	}
	wrong.has("E-mail or password is not right", `value="`+m.Email+`"`).hasNot("not it")
	if c := b.try(strings.ToUpper(m.Email)+" ", password, "/"); c.status != http.StatusSeeOther {
		t.Errorf("the address in capitals is not taken: %d", c.status)
	}
}

// A form that was sent half filled in is no guess.
func TestSignInNamesWhatIsMissing(t *testing.T) {
	g := newRig(t, func(d *Deps) { d.Access.Throttle = shell.NewThrottle(1, time.Hour, d.Now) })
	m, b := g.hire(staff.Viewer), g.browser()
	b.try("", "", "/").is(http.StatusUnprocessableEntity).has(`id="f-email-error"`, `id="f-password-error"`, "is required").hasNot("not right")
	b.try(m.Email, "", "/").is(http.StatusUnprocessableEntity).has(`id="f-password-error"`, `value="`+m.Email+`"`).hasNot(`id="f-email-error"`)
	b.try(m.Email, password, "/").to("/")
}

func TestSignInReturnsOnlyToThisSite(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Viewer)
	for to, want := range map[string]string{
		"/templates?q=moon": "/templates?q=moon", "": "/", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/",
		"javascript:alert(1)": "/", "templates": "/", "/signin": "/", "/\t/evil.example": "/", "/%2Fevil.example": "/",
	} {
		g.browser().try(m.Email, password, to).to(want)
	}
	g.browser().get("/templates?q=moon").to("/signin?return=%2Ftemplates%3Fq%3Dmoon")
}

func TestSessionCookie(t *testing.T) {
	for publicURL, safe := range map[string]bool{"http://127.0.0.1": false, "https://drops.example": true} {
		g := newRig(t, func(d *Deps) { d.PublicURL = publicURL })
		m := g.hire(staff.Viewer)
		a := g.browser().try(m.Email, password, "/")
		cookie := a.header.Get("Set-Cookie")
		for _, want := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
			if !strings.Contains(cookie, want) {
				t.Errorf("%s: cookie %q lacks %s", publicURL, cookie, want)
			}
		}
		if strings.Contains(cookie, "Secure") != safe || strings.Contains(cookie, "__Host-") != safe {
			t.Errorf("%s: cookie %q", publicURL, cookie)
		}
		var stored, token string
		g.must(g.sql.QueryRow(t.Context(), `select token from sessions order by expiry desc limit 1`).Scan(&stored))
		token = cookie[strings.Index(cookie, "=")+1 : strings.Index(cookie, ";")]
		if stored == token || stored == "" {
			t.Errorf("the database holds the cookie's token %q itself", stored)
		}
	}
}

// A token that was there before the sign-in must not open the session after it.
func TestSessionFixation(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Viewer)
	b := g.browser()
	b.signIn(m.Email)
	here, _ := url.Parse(g.server.URL)
	planted := b.client.Jar.Cookies(here)
	b.post("/signin", url.Values{"email": {m.Email}, "password": {password}}).is(http.StatusSeeOther)
	thief := g.browser()
	thief.client.Jar.SetCookies(here, planted)
	thief.get("/").to("/signin")
	b.get("/").is(200)
}

func TestSessionsEnd(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Viewer)
	b := g.browser()
	b.signIn(m.Email)

	g.wait(shell.IdleTimeout - time.Hour) // only the console's clock; sessions end by the database's
	b.get("/account").is(200).has("Signed in")
	g.exec(`update sessions set expiry = now() - interval '1 second'`)
	b.get("/account").to("/signin?return=%2Faccount")

	b.signIn(m.Email)
	g.exec(`update staff set disabled_at = now() where id = $1`, m.ID)
	g.wait(shell.PresenceLife)
	b.get("/").to("/signin")
	g.exec(`update staff set disabled_at = null where id = $1`, m.ID)
	b.get("/").to("/signin") // a session once refused stays ended
}

func TestSignOut(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Viewer)
	here, _ := url.Parse(g.server.URL)
	kept := b.client.Jar.Cookies(here)
	b.do(http.MethodGet, "/signout", nil).is(http.StatusNotFound) // a link must not sign anybody out
	b.get("/").is(200)
	b.post("/signout", nil).to("/signin")
	b.client.Jar.SetCookies(here, kept)
	b.get("/").to("/signin")
}

func TestRevokeOwnSignIns(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Viewer)
	here, other, third := g.browser(), g.browser(), g.browser()
	for _, b := range []*browser{here, other, third} {
		b.header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0")
		b.signIn(m.Email)
		b.get("/").is(200)
	}
	page := here.get("/account").is(200).has("Firefox, Linux", "this browser", "Sign out everywhere else")
	here.post("/account/revoke", url.Values{"id": {page.field("id")}}).to("/account")
	here.get("/account").is(200).has("1 sign-in has been ended.")
	left := 0
	for _, b := range []*browser{other, third} {
		if b.get("/").status == 200 {
			left++
		}
	}
	if left != 1 {
		t.Errorf("%d of two other browsers are still signed in, want 1", left)
	}
	here.post("/account/revoke", nil).to("/account")
	other.get("/").to("/signin")
	third.get("/").to("/signin")
	here.get("/").is(200)

	stranger := g.as(staff.Admin)
	stranger.post("/account/revoke", url.Values{"id": {page.field("id")}}).to("/account")
	here.get("/").is(200)
}

func TestChangePassword(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Viewer)
	b, other := g.browser(), g.browser()
	b.signIn(m.Email)
	other.signIn(m.Email)
	b.post("/account/password", url.Values{"old_password": {"no"}, "password": {"long enough words"}}).is(422).has("is not your current password")
	b.post("/account/password", url.Values{"old_password": {password}, "password": {"short"}}).is(422).has("must have between 12 and 200 characters")
	b.post("/account/password", url.Values{"old_password": {password}, "password": {"Password1234"}}).is(422).has("one of the commonest passwords")
	b.post("/account/password", url.Values{"old_password": {password}, "password": {"long enough words"}}).to("/account")
	b.get("/account").is(200).has("Your password has been changed.")
	other.get("/").to("/signin")
	g.browser().try(m.Email, password, "/").is(422)
	g.browser().try(m.Email, "long enough words", "/").to("/")
}

func TestSignInIsThrottled(t *testing.T) {
	g := newRig(t, func(d *Deps) { d.Access.Throttle = shell.NewThrottle(3, time.Minute, d.Now) })
	m := g.hire(staff.Viewer)
	b := g.browser()
	for range 3 {
		b.try(m.Email, "guess", "/").is(422)
	}
	a := b.try(m.Email, password, "/").is(http.StatusTooManyRequests).has("Too many attempts")
	if a.header.Get("Retry-After") != "61" && a.header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After %q, want about a minute", a.header.Get("Retry-After"))
	}
	g.wait(61 * time.Second)
	b.try(m.Email, password, "/").to("/")
}

// watchful counts what a throttle is asked for.
type watchful struct{ asked []string }

func (w *watchful) Allow(_ context.Context, key string) (time.Duration, error) {
	w.asked = append(w.asked, key)
	return 0, nil
}

func (w *watchful) Return(context.Context, string) error { return nil }

// What nobody's address can be is answered like a wrong password, and nothing
// of it is kept.
func TestSignInWithTooLongAnAddress(t *testing.T) {
	w := &watchful{}
	g := newRig(t, func(d *Deps) { d.Access.Throttle = w })
	m := g.hire(staff.Viewer)
	b := g.browser()
	wrong := b.try(m.Email, "not it", "/").is(http.StatusUnprocessableEntity)
	w.asked = nil
	long := b.try(strings.Repeat("x", 500_000)+m.Email, password, "/").is(http.StatusUnprocessableEntity)
	if long.text() != wrong.text() || len(long.body) > len(wrong.body) {
		t.Errorf("the answers differ: %d bytes and %d:\n%s\n%s", len(long.body), len(wrong.body), long.text(), wrong.text())
	}
	if len(w.asked) != 1 || !strings.HasPrefix(w.asked[0], "signin:ip:") {
		t.Errorf("counted for %.100q", w.asked)
	}
}

func TestAnotherSiteChangesNothing(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	for _, site := range []string{"cross-site", "same-site"} {
		b.header.Set("Sec-Fetch-Site", site)
		b.header.Set("Origin", "https://evil.example")
		b.post("/shops", url.Values{"shop_number": {"5"}, "name": {"x"}, "timezone": {"UTC"}}).is(http.StatusForbidden)
		b.post("/signout", nil).is(http.StatusForbidden)
	}
	b.header.Set("Sec-Fetch-Site", "same-origin")
	b.get("/shops").is(200).hasNot(">x<")
}

func TestLanguageAndTheme(t *testing.T) {
	g := newRig(t)
	b := g.browser()
	b.header.Set("Accept-Language", "zh-TW, en;q=0.5")
	b.get("/signin").is(200).has(`lang="zh-CN"`, "登录")
	b.post("/preferences", url.Values{"locale": {"en"}, "theme": {"dark"}, "return": {"/signin"}}).to("/signin")
	b.get("/signin").is(200).has(`lang="en"`, `data-theme="dark"`)

	m := g.hire(staff.Viewer)
	b.signIn(m.Email)
	b.post("/preferences", url.Values{"locale": {"zh-CN"}, "return": {"//evil.example"}}).to("/")
	b.post("/preferences", url.Values{"theme": {"light"}}).to("/")
	elsewhere := g.browser()
	elsewhere.signIn(m.Email)
	elsewhere.get("/account").is(200).has(`lang="zh-CN"`, `data-theme="light"`, "我的账号")
	b.post("/preferences", url.Values{"theme": {"<script>"}, "locale": {"xx-!!"}}).to("/")
	b.get("/account").is(200).hasNot("<script>")
}

func TestSecurityHeaders(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	first, second := b.get("/templates/new"), b.get("/templates/new")
	policy := first.header.Get("Content-Security-Policy")
	if policy == second.header.Get("Content-Security-Policy") {
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
		if first.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, first.header.Get(name), want)
		}
	}
}

// Whoever was signed out meanwhile comes back to the page that was open, and
// hears that what was sent is not stored.
func TestSignInLeadsBackToTheOpenPage(t *testing.T) {
	g := newRig(t)
	b := g.browser()
	for _, c := range []struct{ method, path, header, from, want string }{
		{"GET", "/users/7/edit?a=b", "", "", "/signin?return=%2Fusers%2F7%2Fedit%3Fa%3Db"},
		{"POST", "/users/7/edit", "Referer", g.server.URL + "/users/7/edit?x=1", "/signin?lost=1&return=%2Fusers%2F7%2Fedit%3Fx%3D1"},
		{"POST", "/users/7/edit", "", "", "/signin?lost=1"},
		{"POST", "/users/7/edit", "Referer", g.server.URL + "//evil.example/", "/signin?lost=1"},
		{"POST", "/users/7/edit", "Referer", g.server.URL + "/signin?return=/x", "/signin?lost=1"},
		{"GET", "/templates?q=x", "HX-Current-URL", g.server.URL + "/templates?sort=name#top", "/signin?return=%2Ftemplates%3Fsort%3Dname"},
		{"POST", "/templates/1/publish", "HX-Current-URL", g.server.URL + "/templates/1", "/signin?lost=1&return=%2Ftemplates%2F1"},
		{"GET", "/templates", "HX-Current-URL", "javascript:alert(1)", "/signin"},
	} {
		b.header = http.Header{}
		if c.header != "" {
			b.header.Set(c.header, c.from)
		}
		if strings.HasPrefix(c.header, "HX-") {
			b.header.Set("HX-Request", "true")
		}
		a := b.do(c.method, c.path, url.Values{})
		if to := a.header.Get("Location") + a.header.Get("HX-Redirect"); to != c.want {
			t.Errorf("%s %s from %s leads to %q, want %q", c.method, c.path, c.from, to, c.want)
		}
	}
	b.header = http.Header{}
	b.get("/signin?lost=1&return=%2Fusers%2F7%2Fedit").is(200).has("your last input was not saved", `value="/users/7/edit"`)
}
