package access_test

import (
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

// Pages that give access require a new authentication ten minutes after the sign-in.
func TestConfirmThatItIsYou(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	other := g.Hire(staff.Viewer)
	d := g.Published(10, 2*time.Hour)
	b.Get("/keys/new").Is(200)
	g.Wait(staff.ConfirmedFor)
	b.Get("/keys").Is(200)
	b.Get("/keys/new").To("/confirm?return=%2Fkeys%2Fnew")
	b.Get("/staff/new").To("/confirm?return=%2Fstaff%2Fnew")
	b.Get("/staff/" + itoa(other.ID)).Is(200)
	b.Get("/account/security/app").To("/confirm?return=%2Faccount%2Fsecurity%2Fapp")
	b.Get(shell.TemplateURL(d.ID) + "/codes.csv?batch=1").To("/confirm?return=" + url.QueryEscape(shell.TemplateURL(d.ID)+"/codes"))
	b.Header.Set("HX-Request", "true")
	b.Header.Set("HX-Current-URL", g.Server.URL+"/staff/2")
	if a := b.Get("/staff/2/reset-second-factors").Is(200); a.Header.Get("HX-Redirect") != "/confirm?return=%2Fstaff%2F2" {
		t.Errorf("a dialog leads to %q", a.Header.Get("HX-Redirect"))
	}
	b.Header = http.Header{}

	b.Get("/confirm?return=https://evil.example").Is(200).Has(`name="confirm_return" value="/"`)
	b.Get("/confirm?return=%2Fkeys%2Fnew").Is(200).Has("Confirm that it is you", `value="/keys/new"`)
	form := url.Values{"confirm_return": {"/keys/new"}, "confirm_with": {"password"}}
	b.Post("/confirm", form).Is(422).Has(`id="f-confirm_password-error"`)
	form.Set("confirm_password", "guess")
	b.Post("/confirm", form).Is(422).Has("This is not your password.").HasNot("guess")
	b.Get("/keys/new").To("/confirm?return=%2Fkeys%2Fnew")
	form.Set("confirm_password", consoletest.Password)
	b.Post("/confirm", form).To("/keys/new")
	b.Get("/keys/new").Is(200)
	b.Get("/confirm?return=%2Fshops").To("/shops")
	if n := g.Number(`select count(*) from audit where action = 'staff.confirm' and after->>'confirmed_by' = 'password'`); n != 1 {
		t.Errorf("%d records", n)
	}
}

// TestConfirmingWhatLeavesTheHouse: changing the destinations of messages and events, exports and
// limits need a new authentication too.
func TestConfirmingWhatLeavesTheHouse(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	g.Shop(10)
	g.Wait(staff.ConfirmedFor)
	for path, back := range map[string]string{"/providers/new": "/providers/new", "/webhooks/new": "/webhooks/new", "/channels/sms/rate": "/channels/sms/rate", "/shops/10/limits": "/shops/10/limits",
		"/users.csv": "/users", "/suppressions.csv": "/suppressions", "/staff.csv": "/staff", "/keys.csv": "/keys", "/audit.csv": "/audit", "/dead-letters.csv": "/dead-letters",
		"/deliveries/1/recipients.csv": "/deliveries/1", "/campaigns/1/recipients.csv": "/campaigns/1", "/providers/1/edit": "/providers/1/edit", "/webhooks/1/rotate": "/webhooks/1/rotate"} {
		b.Get(path).To("/confirm?return=" + url.QueryEscape(back))
	}
	for _, path := range []string{"/providers", "/webhooks", "/alerts/destinations", "/alerts/destinations/1/remove", "/providers/1/delete", "/channels/sms/rate", "/shops/10/limits"} {
		b.Post(path, url.Values{"name": {"typed"}}).Is(200).Has("Confirm that it is you", `name="name" value="typed"`)
	}
}

// A form that needs a confirmation is not lost: the confirmation page contains
// it, and the browser sends it again.
func TestConfirmingKeepsTheForm(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	g.Wait(staff.ConfirmedFor)
	typed := url.Values{"name": {`till "north"`}, "scopes": {"read", "payment"}, "request_key": {"k1"}}
	page := b.Post("/keys", typed).Is(200).Has("Confirm that it is you", `name="confirm_to" value="/keys"`, `name="name" value="till &#34;north&#34;"`,
		`name="scopes" value="read"`, `name="scopes" value="payment"`)
	if g.Number(`select count(*) from api_keys`) != 0 {
		t.Fatal("the key was made")
	}
	again := url.Values{"confirm_to": {page.Field("confirm_to")}, "confirm_with": {"password"}, "confirm_password": {"guess"}}
	for name, values := range typed {
		again[name] = values
	}
	b.Post("/confirm", again).Is(422).Has(`name="scopes" value="payment"`).HasNot("guess")
	again.Set("confirm_password", consoletest.Password)
	a := b.Post("/confirm", again).Is(http.StatusTemporaryRedirect)
	if a.Header.Get("Location") != "/keys" {
		t.Fatalf("leads to %q", a.Header.Get("Location"))
	}
	b.Post("/keys", again).To("/keys") // as the browser does
	if g.Number(`select count(*) from api_keys where name = 'till "north"' and cardinality(scopes) = 2`) != 1 {
		t.Error("the key is not what was typed")
	}
	again.Set("confirm_to", "https://evil.example/")
	again.Set("confirm_password", consoletest.Password)
	b.Post("/confirm", again).To("/")
}

func TestConfirmWithACode(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Access.Guesses = shell.NewThrottle(3, time.Minute, d.Now) })
	b := g.As(staff.Admin)
	secret, recovery := b.Enrol()
	confirm := func(code string) consoletest.Answer {
		return b.Post("/confirm", url.Values{"confirm_code": {code}, "confirm_return": {"/keys/new"}})
	}
	g.Wait(staff.ConfirmedFor)
	b.Get("/confirm").Is(200).Has("Use your password instead").HasNot(`type="password"`)
	b.Post("/confirm", url.Values{"confirm_other": {"1"}, "confirm_return": {"/keys/new"}}).Is(200).Has(`type="password"`, "Use a code or a passkey instead")
	code := g.Code(secret)
	confirm(code).To("/keys/new")
	b.Get("/keys/new").Is(200)
	g.Wait(staff.ConfirmedFor)
	confirm(code).Is(422).Has("already used")
	confirm(recovery[0]).To("/keys/new")
	g.Wait(staff.ConfirmedFor)
	for range 3 {
		confirm(recovery[0]).Is(422)
	}
	confirm(recovery[1]).Is(http.StatusTooManyRequests)
}

// A member who signed in with the identity provider confirms there; an answer
// without a new authentication is not enough.
func TestConfirmWithSingleSignOn(t *testing.T) {
	d := consoletest.NewSignOn(t)
	d.Exec(`update staff set role = 'admin' where id = $1`, d.Member.ID)
	b := d.Browser()
	b.Get(d.Agree(b, "/keys/new")).To("/keys/new")
	b.Get("/keys/new").To("/confirm?return=%2Fkeys%2Fnew") // the provider did not say when
	b.Get("/confirm?return=%2Fkeys%2Fnew").Is(200).Has("Confirm with single sign-on").HasNot(`type="password"`)
	form := url.Values{"confirm_with": {"password"}, "confirm_password": {consoletest.Password}}
	b.Post("/confirm", form).Is(422) // this member has no password here

	again := func() string {
		to := b.Get("/confirm/oidc?return=%2Fkeys%2Fnew").Is(http.StatusSeeOther).Header.Get("Location")
		if u, _ := url.Parse(to); u.Query().Get("prompt") != "login" || u.Query().Get("max_age") != "0" {
			t.Errorf("the provider is asked by %s", to)
		}
		return d.There.Agree(to).RequestURI()
	}
	d.There.Says("auth_time", d.Now().Add(-time.Hour).Unix())
	b.Get(again()).Is(422).Has("does not say that it asked you")
	d.There.Says("auth_time", 0)
	b.Get(again()).Is(422)
	d.There.Says("auth_time", nil)
	d.There.Says("sub", "subject-2") // another person, also with the member's address
	b.Get(again()).Is(422).Has("confirmed another person")
	d.There.Says("sub", "subject-1")
	b.Get("/keys/new").To("/confirm?return=%2Fkeys%2Fnew")
	back := again()
	b.Get(back).To("/keys/new")
	b.Get("/keys/new").Is(200)
	b.Get(back).Is(422) // an attempt serves once

	d.Wait(staff.ConfirmedFor)
	d.There.Down("", true)
	if a := b.Get("/confirm/oidc"); a.Status != http.StatusServiceUnavailable && !strings.HasPrefix(a.Header.Get("Location"), d.There.Issuer()) {
		t.Errorf("%d", a.Status)
	}
	other := d.Browser()
	other.SignIn(d.Member.Email)
	other.Get("/confirm/oidc").Is(http.StatusNotFound) // came by password
}
