package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// What gives access away asks once more who is there, ten minutes after the
// sign-in.
func TestConfirmThatItIsYou(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	other := g.hire(staff.Viewer)
	d := g.published(10, 2*time.Hour)
	b.get("/keys/new").is(200)
	g.wait(staff.ConfirmedFor)
	b.get("/keys").is(200)
	b.get("/keys/new").to("/confirm?return=%2Fkeys%2Fnew")
	b.get("/staff/new").to("/confirm?return=%2Fstaff%2Fnew")
	b.get("/staff/" + itoa(other.ID)).is(200)
	b.get("/account/security/app").to("/confirm?return=%2Faccount%2Fsecurity%2Fapp")
	b.get(templateURL(d.ID) + "/codes.csv?batch=1").to("/confirm?return=" + url.QueryEscape(templateURL(d.ID)+"/codes"))
	b.header.Set("HX-Request", "true")
	b.header.Set("HX-Current-URL", g.server.URL+"/staff/2")
	if a := b.get("/staff/2/reset-second-factors").is(200); a.header.Get("HX-Redirect") != "/confirm?return=%2Fstaff%2F2" {
		t.Errorf("a dialog leads to %q", a.header.Get("HX-Redirect"))
	}
	b.header = http.Header{}

	b.get("/confirm?return=https://evil.example").is(200).has(`name="confirm_return" value="/"`)
	b.get("/confirm?return=%2Fkeys%2Fnew").is(200).has("Confirm that it is you", `value="/keys/new"`)
	form := url.Values{"confirm_return": {"/keys/new"}, "confirm_with": {"password"}}
	b.post("/confirm", form).is(422).has(`id="f-confirm_password-error"`)
	form.Set("confirm_password", "guess")
	b.post("/confirm", form).is(422).has("This is not your password.").hasNot("guess")
	b.get("/keys/new").to("/confirm?return=%2Fkeys%2Fnew")
	form.Set("confirm_password", password)
	b.post("/confirm", form).to("/keys/new")
	b.get("/keys/new").is(200)
	b.get("/confirm?return=%2Fshops").to("/shops")
	if n := g.number(`select count(*) from audit where action = 'staff.confirm' and after->>'confirmed_by' = 'password'`); n != 1 {
		t.Errorf("%d records", n)
	}
}

// A form that comes too late is not lost: it waits in the page that asks, and
// the browser sends it again.
func TestConfirmingKeepsTheForm(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	g.wait(staff.ConfirmedFor)
	typed := url.Values{"name": {`till "north"`}, "scopes": {"read", "payment"}, "request_key": {"k1"}}
	page := b.post("/keys", typed).is(200).has("Confirm that it is you", `name="confirm_to" value="/keys"`, `name="name" value="till &#34;north&#34;"`,
		`name="scopes" value="read"`, `name="scopes" value="payment"`)
	if g.number(`select count(*) from api_keys`) != 0 {
		t.Fatal("the key was made")
	}
	again := url.Values{"confirm_to": {page.field("confirm_to")}, "confirm_with": {"password"}, "confirm_password": {"guess"}}
	for name, values := range typed {
		again[name] = values
	}
	b.post("/confirm", again).is(422).has(`name="scopes" value="payment"`).hasNot("guess")
	again.Set("confirm_password", password)
	a := b.post("/confirm", again).is(http.StatusTemporaryRedirect)
	if a.header.Get("Location") != "/keys" {
		t.Fatalf("leads to %q", a.header.Get("Location"))
	}
	b.post("/keys", again).to("/keys") // as the browser does
	if g.number(`select count(*) from api_keys where name = 'till "north"' and cardinality(scopes) = 2`) != 1 {
		t.Error("the key is not what was typed")
	}
	again.Set("confirm_to", "https://evil.example/")
	again.Set("confirm_password", password)
	b.post("/confirm", again).to("/")
}

func TestConfirmWithACode(t *testing.T) {
	g := newRig(t, func(d *Deps) { d.Access.Guesses = shell.NewThrottle(3, time.Minute, d.Now) })
	b := g.as(staff.Admin)
	secret, recovery := b.enrol()
	confirm := func(code string) answer {
		return b.post("/confirm", url.Values{"confirm_code": {code}, "confirm_return": {"/keys/new"}})
	}
	g.wait(staff.ConfirmedFor)
	b.get("/confirm").is(200).has("Use your password instead").hasNot(`type="password"`)
	b.post("/confirm", url.Values{"confirm_other": {"1"}, "confirm_return": {"/keys/new"}}).is(200).has(`type="password"`, "Use a code or a passkey instead")
	code := g.code(secret)
	confirm(code).to("/keys/new")
	b.get("/keys/new").is(200)
	g.wait(staff.ConfirmedFor)
	confirm(code).is(422).has("already used")
	confirm(recovery[0]).to("/keys/new")
	g.wait(staff.ConfirmedFor)
	for range 3 {
		confirm(recovery[0]).is(422)
	}
	confirm(recovery[1]).is(http.StatusTooManyRequests)
}

// Who came by the identity provider goes there once more; that it vouches for
// the same person as before, unasked, is not enough.
func TestConfirmWithSingleSignOn(t *testing.T) {
	d := newDoor(t)
	d.exec(`update staff set role = 'admin' where id = $1`, d.member.ID)
	b := d.browser()
	b.get(d.agree(b, "/keys/new")).to("/keys/new")
	b.get("/keys/new").to("/confirm?return=%2Fkeys%2Fnew") // the provider did not say when
	b.get("/confirm?return=%2Fkeys%2Fnew").is(200).has("Confirm with single sign-on").hasNot(`type="password"`)
	form := url.Values{"confirm_with": {"password"}, "confirm_password": {password}}
	b.post("/confirm", form).is(422) // this member has no password here

	again := func() string {
		to := b.get("/confirm/oidc?return=%2Fkeys%2Fnew").is(http.StatusSeeOther).header.Get("Location")
		if u, _ := url.Parse(to); u.Query().Get("prompt") != "login" || u.Query().Get("max_age") != "0" {
			t.Errorf("the provider is asked by %s", to)
		}
		return d.there.Agree(to).RequestURI()
	}
	d.there.Says("auth_time", d.now().Add(-time.Hour).Unix())
	b.get(again()).is(422).has("does not say that it asked you")
	d.there.Says("auth_time", 0)
	b.get(again()).is(422)
	d.there.Says("auth_time", nil)
	d.there.Says("email", "somebody@example.com")
	b.get(again()).is(422).has("confirmed another person")
	d.there.Says("email", d.member.Email)
	b.get("/keys/new").to("/confirm?return=%2Fkeys%2Fnew")
	back := again()
	b.get(back).to("/keys/new")
	b.get("/keys/new").is(200)
	b.get(back).is(422) // an attempt serves once

	d.wait(staff.ConfirmedFor)
	d.there.Down("", true)
	if a := b.get("/confirm/oidc"); a.status != http.StatusServiceUnavailable && !strings.HasPrefix(a.header.Get("Location"), d.there.Issuer()) {
		t.Errorf("%d", a.status)
	}
	other := d.browser()
	other.signIn(d.member.Email)
	other.get("/confirm/oidc").is(http.StatusNotFound) // came by password
}
