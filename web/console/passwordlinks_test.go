package console

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// linkShown returns the path of the link that a member's page shows once.
func (b *browser) linkShown(page string) string {
	b.Helper()
	a := b.get(page).is(200).has("It is shown only once.")
	link := html.UnescapeString(between(a.body, "<code>", "</code>"))
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, b.PublicURL+"/password?token=") {
		b.Fatalf("the link %q, %v", link, err)
	}
	return u.RequestURI()
}

func setting(link, to string) url.Values {
	u, _ := url.Parse(link)
	return url.Values{"token": {u.Query().Get("token")}, "password": {to}}
}

// An admin invites a colleague, who chooses the password and is signed in; the
// link serves once, and nobody but its holder ever has the password.
func TestInvitation(t *testing.T) {
	g := newRig(t)
	admin := g.as(staff.Admin)
	admin.get("/staff/new").is(200).has("Invite").hasNot(`type="password"`)
	admin.post("/staff", url.Values{"email": {"noor@example.com"}, "name": {"Noor"}, "role": {"viewer"}}).to("/staff/2")
	link := admin.linkShown("/staff/2")
	admin.get("/staff/2").is(200).hasNot("It is shown only once.", link).has("Noor has no password yet.", "Create an invitation link")
	admin.get("/staff").is(200).has("invited", "link valid until")
	g.browser().try("noor@example.com", "", "/").is(422)

	noor := g.browser()
	noor.get(link).is(200).has("Welcome to Dropbell.", "noor@example.com")
	noor.post("/password", setting(link, "noor@example.com")).is(422).has("must not be made of the e-mail address").hasNot(`value="noor@example.com!"`)
	noor.post("/password", setting(link, password)).to("/")
	noor.get("/account").is(200).has("Noor", "this browser")
	for _, again := range []answer{noor.get(link), noor.post("/password", setting(link, "another long password"))} {
		again.is(404).has("This link was used, has expired, or was replaced by a newer one.")
	}
	g.browser().signIn("noor@example.com")
	admin.get("/staff").is(200).hasNot("invited")
	admin.get("/audit?kind=staff&id=2").is(200).has("gave access to", "set the password by a link:").hasNot(password)
}

// A member who forgot the password gets a link; until it is used nothing
// changes, then every sign-in of the member ends. A second factor stays.
func TestPasswordReset(t *testing.T) {
	g := newRig(t)
	admin, m := g.as(staff.Admin), g.hire(staff.Marketer)
	b := g.browser()
	b.signIn(m.Email)
	page := memberPage(m.ID)
	admin.get(page).is(200).has("Create a reset link")
	admin.post(page+"/password-link", nil).to(page)
	first := admin.linkShown(page)
	admin.post(page+"/password-link", nil).to(page)
	link := admin.linkShown(page)
	g.browser().get(first).is(404)
	b.get("/").is(200)

	_, recovery := b.enrol()
	other := g.browser()
	other.get(link).is(200).has("Every open sign-in ends.")
	other.post("/password", setting(link, "a new long password")).to("/signin/second")
	b.get("/").to("/signin")
	other.get("/").to("/signin") // the link alone signs nobody in
	other.post("/signin/second", passcode(recovery[0])).to("/")
	g.browser().try(m.Email, password, "/").is(422)

	admin.post("/staff/99/password-link", nil).is(404)
	g.exec(`update staff set disabled_at = now() where id = $1`, m.ID)
	admin.post(page+"/password-link", nil).is(http.StatusConflict).has("This member is disabled.")
	g.as(staff.Operator).post(page+"/password-link", nil).is(http.StatusForbidden)
}

func TestPasswordLinkOfAnyText(t *testing.T) {
	g := newRig(t, func(d *Deps) { d.Access.Throttle = shell.NewThrottle(5, time.Minute, d.Now) })
	g.from()
	b := g.at("203.0.113.9")
	for _, path := range []string{"/password", "/password?token=", "/password?token=" + strings.Repeat("x", 5000), "/password?token=%F0%9F%94%94"} {
		b.get(path).is(404).has("Ask an admin for a new link.")
	}
	b.post("/password", url.Values{"token": {"x"}, "password": {password}}).is(404)
	b.get("/password?token=x").is(http.StatusTooManyRequests)
	g.at("198.51.100.9").get("/password?token=x").is(404)
}

// With single sign-on only nothing on any page asks for a password, none is
// accepted, and sign-ins made with one end.
func TestSingleSignOnOnly(t *testing.T) {
	d := newDoor(t)
	old := d.browser()
	old.signIn(d.member.Email)
	admin := d.hire(staff.Admin)
	_, token, err := d.Staff.NewPasswordLink(t.Context(), staff.System(), d.member.ID)
	d.must(err)
	d.Console.Staff.PasswordsOff = true
	d.AccessChanged()

	old.get("/").to("/signin")
	b := d.browser()
	b.get("/signin").is(200).has("Sign in with single sign-on").hasNot(`type="password"`, `name="email"`)
	b.post("/signin", url.Values{"email": {d.member.Email}, "password": {password}}).is(http.StatusForbidden).has("Passwords are switched off")
	b.get("/password?token=" + token).is(http.StatusForbidden)
	b.post("/password", url.Values{"token": {token}, "password": {password}}).is(http.StatusForbidden)

	d.there.Says("email", admin.Email)
	d.there.Says("auth_time", d.Now().Unix())
	b.get(d.agree(b, "/")).to("/")
	b.get("/account").is(200).hasNot(`type="password"`)
	b.post("/account/password", url.Values{"old_password": {password}, "password": {"a new long password"}}).is(http.StatusForbidden)
	b.get(memberPage(d.member.ID)).is(200).hasNot("Password link")
	b.post(memberPage(d.member.ID)+"/password-link", nil).is(http.StatusForbidden)
	b.post("/staff", url.Values{"email": {"noor@example.com"}, "name": {"Noor"}, "role": {"viewer"}}).to("/staff")
	b.get("/staff").is(200).has("Noor can sign in with single sign-on now.").hasNot("invited")
	if n := d.number(`select count(*) from password_links where staff_id <> $1`, d.member.ID); n != 0 {
		t.Errorf("%d links were made", n)
	}
	other := d.browser()
	back := d.agree(other, "/")
	d.there.Down("/token", true)
	other.get(back).is(http.StatusServiceUnavailable).has("The identity provider does not answer.").hasNot("password")
}

func TestInvitationExpires(t *testing.T) {
	g := newRig(t)
	admin := g.as(staff.Admin)
	admin.post("/staff", url.Values{"email": {"noor@example.com"}, "name": {"Noor"}, "role": {"viewer"}}).to("/staff/2")
	link := admin.linkShown("/staff/2")
	g.exec(`update password_links set expires_at = $1`, time.Now())
	g.browser().get(link).is(404)
	admin.get("/staff").is(200).has("invitation expired")
	admin.post("/staff/2/password-link", nil).to("/staff/2")
	g.browser().get(admin.linkShown("/staff/2")).is(200)
}
