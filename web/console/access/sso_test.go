package access_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestSingleSignOn(t *testing.T) {
	d := consoletest.NewSignOn(t)
	b := d.Browser()
	b.Get("/signin?return=%2Ftemplates%3Fq%3Dmoon").Is(200).Has("Sign in with single sign-on", `href="/signin/oidc?return=%2Ftemplates%3Fq%3Dmoon"`)
	back := d.Agree(b, "/templates?q=moon")
	here, _ := url.Parse(d.Server.URL)
	planted := b.Client.Jar.Cookies(here)
	b.Get(back).To("/templates?q=moon")
	b.Get("/account").Is(200).Has("This browser", d.Member.Name)
	b.Get("/signin/oidc?return=%2Fshops").To("/shops")

	thief := d.Browser()
	thief.Client.Jar.SetCookies(here, planted)
	thief.Get("/").To("/signin") // the token is a new one

	var subject string
	d.Must(d.SQL.QueryRow(t.Context(), `select after->>'subject' from audit 
		where action = 'staff.single_sign_on' and actor like $1::text || '%' and object_kind = 'staff' and object_id = $2`,
		"staff:"+strconv.FormatInt(d.Member.ID, 10), strconv.FormatInt(d.Member.ID, 10)).Scan(&subject))
	if subject != "subject-1" {
		t.Errorf("audited subject %q", subject)
	}

	// It is a sign-in like any other: it can be ended from another browser.
	other := d.Browser()
	other.SignIn(d.Member.Email)
	other.Post("/account/revoke", nil).To("/account")
	b.Get("/").To("/signin")
}

func TestSingleSignOnReturnsOnlyToThisSite(t *testing.T) {
	d := consoletest.NewSignOn(t)
	for to, want := range map[string]string{"https://evil.example/": "/", "//evil.example": "/", "/signin/oidc": "/", "/shops": "/shops"} {
		b := d.Browser()
		b.Get(d.Agree(b, to)).To(want)
	}
}

// A refusal does not reveal whether there is an account.
func TestSingleSignOnTellsNothing(t *testing.T) {
	d := consoletest.NewSignOn(t)
	off := d.Hire(staff.Viewer)
	d.Exec(`update staff set disabled_at = now() where id = $1`, off.ID)
	var first string
	for name, who := range map[string][2]any{"unknown": {"nobody@example.com", true}, "disabled": {off.Email, true},
		"not verified": {d.Member.Email, false}, "verified says nothing": {d.Member.Email, nil}, "no address": {nil, true}, "empty": {"", true}} {
		d.There.Says("email", who[0])
		d.There.Says("email_verified", who[1])
		b := d.Browser()
		a := b.Get(d.Agree(b, "/")).Is(http.StatusUnprocessableEntity).Has("Single sign-on refused the sign-in", "ask an administrator", `action="/signin"`).HasNot("code=")
		if first == "" {
			first = a.Text()
		}
		if a.Text() != first {
			t.Errorf("%s: the answer differs:\n%s\n%s", name, a.Text(), first)
		}
		b.Get("/").To("/signin")
	}
	if n := d.SignIns(); n != 0 {
		t.Errorf("%d sign-ins", n)
	}
}

func TestSingleSignOnAttempts(t *testing.T) {
	const ended = "This sign-in attempt has expired"
	for name, play := range map[string]func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer{
		"no attempt": func(_ *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			return b.Get("/signin/oidc/callback?state=x&code=y")
		},
		"nothing at all": func(_ *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			return b.Get("/signin/oidc/callback")
		},
		"another state": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			return b.Get(d.Agree(b, "/") + "x&state=x")
		},
		"empty state": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			d.Agree(b, "/")
			return b.Get("/signin/oidc/callback?state=&code=x")
		},
		"another browser": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			return b.Get(d.Agree(d.Browser(), "/"))
		},
		"too late": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			back := d.Agree(b, "/")
			d.Wait(staff.AttemptLife + time.Second)
			return b.Get(back)
		},
		"begun anew": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			back := d.Agree(b, "/")
			d.Agree(b, "/")
			return b.Get(back)
		},
		"wrong nonce": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			d.There.Says("nonce", "other")
			return b.Get(d.Agree(b, "/"))
		},
		"expired token": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			d.There.Says("exp", d.Now().Add(-time.Second).Unix())
			return b.Get(d.Agree(b, "/"))
		},
		"forged": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			d.There.Rotate(false)
			return b.Get(d.Agree(b, "/"))
		},
		"made-up code": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			u, _ := url.Parse(d.Agree(b, "/"))
			return b.Get("/signin/oidc/callback?code=guess&state=" + u.Query().Get("state"))
		},
		"replayed after a failure": func(d *consoletest.SignOn, b *consoletest.Browser) consoletest.Answer {
			back := d.Agree(b, "/")
			d.There.Down("/token", true)
			b.Get(back).Is(http.StatusServiceUnavailable).Has("does not answer")
			d.There.Down("/token", false)
			return b.Get(back)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := consoletest.NewSignOn(t)
			b := d.Browser()
			play(d, b).Is(http.StatusUnprocessableEntity).Has(ended).HasNot("guess")
			if n := d.SignIns(); n != 0 {
				t.Errorf("%d sign-ins", n)
			}
			b.Get("/").To("/signin")
		})
	}
}

func TestSingleSignOnReplayedAfterSuccess(t *testing.T) {
	d := consoletest.NewSignOn(t)
	b := d.Browser()
	back := d.Agree(b, "/")
	b.Get(back).To("/")
	b.Get(back).Is(http.StatusUnprocessableEntity)
	if n := d.SignIns(); n != 1 {
		t.Errorf("%d sign-ins, want one", n)
	}
	b.Get("/").Is(200)
}

func TestSingleSignOnRefusedThere(t *testing.T) {
	d := consoletest.NewSignOn(t)
	b := d.Browser()
	u, _ := url.Parse(d.Agree(b, "/"))
	b.Get("/signin/oidc/callback?error=access_denied&error_description=No+Way&state=" + u.Query().Get("state")).Is(422).
		Has("Single sign-on refused the sign-in").HasNot("No Way")
}

func TestSingleSignOnWhileTheProviderIsDown(t *testing.T) {
	d := consoletest.NewSignOn(t)
	d.There.Down("", true)
	b := d.Browser()
	b.Get("/signin").Is(200).Has("Sign in with single sign-on")
	a := b.Get("/signin/oidc?return=%2Fshops").Is(http.StatusServiceUnavailable).Has("identity provider does not answer", `value="/shops"`)
	if a.Header.Get("Retry-After") == "" {
		t.Error("nothing says when to try again")
	}
	b.Post("/signin", url.Values{"email": {d.Member.Email}, "password": {consoletest.Password}}).To("/") // the other door stays open
	d.There.Down("", false)
	d.Wait(2 * time.Second)
	other := d.Browser()
	other.Get(d.Agree(other, "/")).To("/")
}

func TestSingleSignOnIsThrottled(t *testing.T) {
	d := consoletest.NewSignOn(t, func(deps *console.Deps) { deps.Access.Throttle = shell.NewThrottle(3, time.Minute, deps.Now) })
	b := d.Browser()
	for range 3 {
		b.Get("/signin/oidc").Is(http.StatusSeeOther)
		b.Get("/signin/oidc/callback?state=x&code=y").Is(422)
	}
	for _, path := range []string{"/signin/oidc", "/signin/oidc/callback?state=x&code=y"} {
		if a := b.Get(path).Is(http.StatusTooManyRequests).Has("Too many attempts"); a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: nothing says when to try again", path)
		}
	}
	d.Wait(61 * time.Second)
	b.Get(d.Agree(b, "/")).To("/")
}

// Colleagues behind one address can all sign in with single sign-on.
func TestSingleSignOnOfColleagues(t *testing.T) {
	d := consoletest.NewSignOn(t, func(deps *console.Deps) { deps.Access.Throttle = shell.NewThrottle(3, time.Minute, deps.Now) })
	for range 6 {
		b := d.Browser()
		b.Get(d.Agree(b, "/")).To("/")
	}
}

func TestWithoutSingleSignOn(t *testing.T) {
	b := consoletest.New(t).Browser()
	b.Get("/signin").Is(200).HasNot("single sign-on", "/signin/oidc")
	b.Get("/signin/oidc").Is(http.StatusNotFound)
	b.Get("/signin/oidc/callback?state=&code=x").Is(http.StatusNotFound)
}

// The log contains why single sign-on was refused, and nothing about the person.
func TestSingleSignOnRefusalsAreLogged(t *testing.T) {
	for want, play := range map[string]func(*consoletest.SignOn, *consoletest.Browser){
		"no member of staff has the e-mail address": func(d *consoletest.SignOn, b *consoletest.Browser) {
			d.There.Says("email", "guest@example.com")
			b.Get(d.Agree(b, "/")).Is(422)
		},
		"the identity provider names no e-mail address": func(d *consoletest.SignOn, b *consoletest.Browser) {
			d.There.Says("email", nil)
			b.Get(d.Agree(b, "/")).Is(422)
		},
		"the identity provider has not verified the e-mail address": func(d *consoletest.SignOn, b *consoletest.Browser) {
			d.There.Says("email_verified", false)
			b.Get(d.Agree(b, "/")).Is(422)
		},
		"the identity provider sent no code: access_denied":  func(d *consoletest.SignOn, b *consoletest.Browser) { d.RefusedThere(b, "access_denied") },
		"the identity provider sent no code: unknown reason": func(d *consoletest.SignOn, b *consoletest.Browser) { d.RefusedThere(b, "guest@example.com") },
		"this attempt to sign in has ended; begin again: the id_token has": func(d *consoletest.SignOn, b *consoletest.Browser) {
			d.There.Says("nonce", "other")
			b.Get(d.Agree(b, "/")).Is(422)
		},
	} {
		var log bytes.Buffer
		d := consoletest.NewSignOn(t, func(deps *console.Deps) { deps.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		play(d, d.Browser())
		if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, "guest@") || strings.Contains(got, d.Member.Email) {
			t.Errorf("the log says %s, want %q and nobody's address", got, want)
		}
	}
}

// TestSingleSignOnIsBoundToThePerson: after the first sign-in by address, the provider's id of the
// person counts, whatever the address is then. Another person to whom the provider gives the
// address gets no access.
func TestSingleSignOnIsBoundToThePerson(t *testing.T) {
	d := consoletest.NewSignOn(t)
	in := func(subject, email any) (*consoletest.Browser, string) {
		d.There.Says("sub", subject)
		d.There.Says("email", email)
		b := d.Browser()
		return b, d.Agree(b, "/")
	}
	enters := func(subject, email any) {
		t.Helper()
		b, back := in(subject, email)
		b.Get(back).To("/")
		b.Get("/account").Is(200).Has(d.Member.Name)
	}
	refused := func(subject, email any) {
		t.Helper()
		b, back := in(subject, email)
		b.Get(back).Is(http.StatusUnprocessableEntity)
		b.Get("/").To("/signin")
	}
	other := d.Hire(staff.Admin)
	enters("subject-1", d.Member.Email)
	refused("subject-2", d.Member.Email)   // the address was given to another person
	enters("subject-1", "new@example.com") // the person's address has changed
	enters("subject-1", other.Email)       // also to that of another member
	enters("subject-1", nil)
	if n := d.Number(`select count(*) from staff where sso_subject <> '' and sso_issuer <> ''`); n != 1 {
		t.Errorf("%d links", n)
	}
	admin := d.Browser()
	admin.SignIn(other.Email)
	admin.Post("/staff/"+strconv.FormatInt(d.Member.ID, 10)+"/reset-second-factors", nil)
	enters("subject-2", d.Member.Email)
	refused("subject-1", d.Member.Email)
}
