package console

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/oidc"
	"dropbell/adapters/oidctest"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// door is a console beside an identity provider.
type door struct {
	*rig
	there  *oidctest.Provider
	member staff.Member
}

func newDoor(t *testing.T, change ...func(*Deps)) *door {
	t.Helper()
	d := &door{}
	d.rig = newRig(t, append([]func(*Deps){func(deps *Deps) {
		d.there = oidctest.New(t, deps.Now)
		deps.Access.SingleSignOn = oidc.New(oidc.Options{Issuer: d.there.Issuer(), ClientID: oidctest.ClientID,
			ClientSecret: oidctest.ClientSecret, PublicURL: deps.PublicURL, Now: deps.Now})
	}}, change...)...)
	d.member = d.hire(staff.Viewer)
	d.there.Says("email", strings.ToUpper(d.member.Email))
	return d
}

// agree begins in the browser b and returns where the provider sends it back to.
func (d *door) agree(b *browser, to string) string {
	b.Helper()
	a := b.get("/signin/oidc?return=" + url.QueryEscape(to)).is(http.StatusSeeOther)
	return d.there.Agree(a.header.Get("Location")).RequestURI()
}

func (d *door) signIns() (n int) {
	d.Helper()
	d.must(d.sql.QueryRow(d.Context(), `select count(*) from sign_ins`).Scan(&n))
	return n
}

func TestSingleSignOn(t *testing.T) {
	d := newDoor(t)
	b := d.browser()
	b.get("/signin?return=%2Ftemplates%3Fq%3Dmoon").is(200).has("Sign in with single sign-on", `href="/signin/oidc?return=%2Ftemplates%3Fq%3Dmoon"`)
	back := d.agree(b, "/templates?q=moon")
	here, _ := url.Parse(d.server.URL)
	planted := b.client.Jar.Cookies(here)
	b.get(back).to("/templates?q=moon")
	b.get("/account").is(200).has("this browser", d.member.Name)
	b.get("/signin/oidc?return=%2Fshops").to("/shops")

	thief := d.browser()
	thief.client.Jar.SetCookies(here, planted)
	thief.get("/").to("/signin") // the token is a new one

	var subject string
	d.must(d.sql.QueryRow(t.Context(), `select after->>'subject' from audit 
		where action = 'staff.single_sign_on' and actor like $1::text || '%' and object_kind = 'staff' and object_id = $2`,
		"staff:"+strconv.FormatInt(d.member.ID, 10), strconv.FormatInt(d.member.ID, 10)).Scan(&subject))
	if subject != "subject-1" {
		t.Errorf("audited subject %q", subject)
	}

	// It is a sign-in like any other: it can be ended from another browser.
	other := d.browser()
	other.signIn(d.member.Email)
	other.post("/account/revoke", nil).to("/account")
	b.get("/").to("/signin")
}

func TestSingleSignOnReturnsOnlyToThisSite(t *testing.T) {
	d := newDoor(t)
	for to, want := range map[string]string{"https://evil.example/": "/", "//evil.example": "/", "/signin/oidc": "/", "/shops": "/shops"} {
		b := d.browser()
		b.get(d.agree(b, to)).to(want)
	}
}

// Whoever is refused does not learn whether there is an account.
func TestSingleSignOnTellsNothing(t *testing.T) {
	d := newDoor(t)
	off := d.hire(staff.Viewer)
	d.exec(`update staff set disabled_at = now() where id = $1`, off.ID)
	var first string
	for name, who := range map[string][2]any{"unknown": {"nobody@example.com", true}, "disabled": {off.Email, true},
		"not verified": {d.member.Email, false}, "verified says nothing": {d.member.Email, nil}, "no address": {nil, true}, "empty": {"", true}} {
		d.there.Says("email", who[0])
		d.there.Says("email_verified", who[1])
		b := d.browser()
		a := b.get(d.agree(b, "/")).is(http.StatusUnprocessableEntity).has("Single sign-on refused the sign-in", "ask an administrator", `action="/signin"`).hasNot("code=")
		if first == "" {
			first = a.text()
		}
		if a.text() != first {
			t.Errorf("%s: the answer differs:\n%s\n%s", name, a.text(), first)
		}
		b.get("/").to("/signin")
	}
	if n := d.signIns(); n != 0 {
		t.Errorf("%d sign-ins", n)
	}
}

func TestSingleSignOnAttempts(t *testing.T) {
	const ended = "This sign-in attempt has expired"
	for name, play := range map[string]func(d *door, b *browser) answer{
		"no attempt":      func(_ *door, b *browser) answer { return b.get("/signin/oidc/callback?state=x&code=y") },
		"nothing at all":  func(_ *door, b *browser) answer { return b.get("/signin/oidc/callback") },
		"another state":   func(d *door, b *browser) answer { return b.get(d.agree(b, "/") + "x&state=x") },
		"empty state":     func(d *door, b *browser) answer { d.agree(b, "/"); return b.get("/signin/oidc/callback?state=&code=x") },
		"another browser": func(d *door, b *browser) answer { return b.get(d.agree(d.browser(), "/")) },
		"too late": func(d *door, b *browser) answer {
			back := d.agree(b, "/")
			d.wait(staff.AttemptLife + time.Second)
			return b.get(back)
		},
		"begun anew": func(d *door, b *browser) answer {
			back := d.agree(b, "/")
			d.agree(b, "/")
			return b.get(back)
		},
		"wrong nonce": func(d *door, b *browser) answer { d.there.Says("nonce", "other"); return b.get(d.agree(b, "/")) },
		"expired token": func(d *door, b *browser) answer {
			d.there.Says("exp", d.now().Add(-time.Second).Unix())
			return b.get(d.agree(b, "/"))
		},
		"forged": func(d *door, b *browser) answer { d.there.Rotate(false); return b.get(d.agree(b, "/")) },
		"made-up code": func(d *door, b *browser) answer {
			u, _ := url.Parse(d.agree(b, "/"))
			return b.get("/signin/oidc/callback?code=guess&state=" + u.Query().Get("state"))
		},
		"replayed after a failure": func(d *door, b *browser) answer {
			back := d.agree(b, "/")
			d.there.Down("/token", true)
			b.get(back).is(http.StatusServiceUnavailable).has("does not answer")
			d.there.Down("/token", false)
			return b.get(back)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t)
			b := d.browser()
			play(d, b).is(http.StatusUnprocessableEntity).has(ended).hasNot("guess")
			if n := d.signIns(); n != 0 {
				t.Errorf("%d sign-ins", n)
			}
			b.get("/").to("/signin")
		})
	}
}

func TestSingleSignOnReplayedAfterSuccess(t *testing.T) {
	d := newDoor(t)
	b := d.browser()
	back := d.agree(b, "/")
	b.get(back).to("/")
	b.get(back).is(http.StatusUnprocessableEntity)
	if n := d.signIns(); n != 1 {
		t.Errorf("%d sign-ins, want one", n)
	}
	b.get("/").is(200)
}

func TestSingleSignOnRefusedThere(t *testing.T) {
	d := newDoor(t)
	b := d.browser()
	u, _ := url.Parse(d.agree(b, "/"))
	b.get("/signin/oidc/callback?error=access_denied&error_description=No+Way&state=" + u.Query().Get("state")).is(422).
		has("Single sign-on refused the sign-in").hasNot("No Way")
}

func TestSingleSignOnWhileTheProviderIsDown(t *testing.T) {
	d := newDoor(t)
	d.there.Down("", true)
	b := d.browser()
	b.get("/signin").is(200).has("Sign in with single sign-on")
	a := b.get("/signin/oidc?return=%2Fshops").is(http.StatusServiceUnavailable).has("identity provider does not answer", `value="/shops"`)
	if a.header.Get("Retry-After") == "" {
		t.Error("nothing says when to try again")
	}
	b.post("/signin", url.Values{"email": {d.member.Email}, "password": {password}}).to("/") // the other door stays open
	d.there.Down("", false)
	d.wait(2 * time.Second)
	other := d.browser()
	other.get(d.agree(other, "/")).to("/")
}

func TestSingleSignOnIsThrottled(t *testing.T) {
	d := newDoor(t, func(deps *Deps) { deps.Access.Throttle = shell.NewThrottle(3, time.Minute, deps.Now) })
	b := d.browser()
	for range 3 {
		b.get("/signin/oidc").is(http.StatusSeeOther)
		b.get("/signin/oidc/callback?state=x&code=y").is(422)
	}
	for _, path := range []string{"/signin/oidc", "/signin/oidc/callback?state=x&code=y"} {
		if a := b.get(path).is(http.StatusTooManyRequests).has("Too many attempts"); a.header.Get("Retry-After") == "" {
			t.Errorf("%s: nothing says when to try again", path)
		}
	}
	d.wait(61 * time.Second)
	b.get(d.agree(b, "/")).to("/")
}

// Colleagues behind one address sign in as they like.
func TestSingleSignOnOfColleagues(t *testing.T) {
	d := newDoor(t, func(deps *Deps) { deps.Access.Throttle = shell.NewThrottle(3, time.Minute, deps.Now) })
	for range 6 {
		b := d.browser()
		b.get(d.agree(b, "/")).to("/")
	}
}

func TestWithoutSingleSignOn(t *testing.T) {
	b := newRig(t).browser()
	b.get("/signin").is(200).hasNot("single sign-on", "/signin/oidc")
	b.get("/signin/oidc").is(http.StatusNotFound)
	b.get("/signin/oidc/callback?state=&code=x").is(http.StatusNotFound)
}

// The log says why single sign-on was refused, and nothing about the person.
func TestSingleSignOnRefusalsAreLogged(t *testing.T) {
	for want, play := range map[string]func(*door, *browser){
		"no member of staff has the e-mail address":                        func(d *door, b *browser) { d.there.Says("email", "guest@example.com"); b.get(d.agree(b, "/")).is(422) },
		"the identity provider names no e-mail address":                    func(d *door, b *browser) { d.there.Says("email", nil); b.get(d.agree(b, "/")).is(422) },
		"the identity provider has not verified the e-mail address":        func(d *door, b *browser) { d.there.Says("email_verified", false); b.get(d.agree(b, "/")).is(422) },
		"the identity provider sent no code: access_denied":                func(d *door, b *browser) { d.refusedThere(b, "access_denied") },
		"the identity provider sent no code: unknown reason":               func(d *door, b *browser) { d.refusedThere(b, "guest@example.com") },
		"this attempt to sign in has ended; begin again: the id_token has": func(d *door, b *browser) { d.there.Says("nonce", "other"); b.get(d.agree(b, "/")).is(422) },
	} {
		var log bytes.Buffer
		d := newDoor(t, func(deps *Deps) { deps.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		play(d, d.browser())
		if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, "guest@") || strings.Contains(got, d.member.Email) {
			t.Errorf("the log says %s, want %q and nobody's address", got, want)
		}
	}
}

// refusedThere comes back from the provider with an error.
func (d *door) refusedThere(b *browser, code string) {
	u, err := url.Parse(d.agree(b, "/"))
	d.must(err)
	b.get("/signin/oidc/callback?error=" + url.QueryEscape(code) + "&state=" + u.Query().Get("state")).is(422)
}
