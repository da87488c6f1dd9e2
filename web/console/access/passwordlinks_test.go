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

func setting(link, to string) url.Values {
	u, _ := url.Parse(link)
	return url.Values{"token": {u.Query().Get("token")}, "password": {to}}
}

// An admin invites a member, who chooses the password and is signed in. The link works once, and
// only its holder can set the password.
func TestInvitation(t *testing.T) {
	g := consoletest.New(t)
	admin := g.As(staff.Admin)
	admin.Get("/staff/new").Is(200).Has("Invite").HasNot(`type="password"`)
	admin.Post("/staff", url.Values{"email": {"noor@example.com"}, "name": {"Noor"}, "role": {"viewer"}}).To("/staff/2")
	link := admin.LinkShown("/staff/2")
	admin.Get("/staff/2").Is(200).HasNot("It is shown only once.", link).Has("Noor has no password yet.", "Create an invitation link")
	admin.Get("/staff").Is(200).Has("Invited", "link valid until")
	g.Browser().Try("noor@example.com", "", "/").Is(422)

	noor := g.Browser()
	noor.Get(link).Is(200).Has("Welcome to Dropbell.", "noor@example.com")
	noor.Post("/password", setting(link, "noor@example.com")).Is(422).Has("must not be made of the e-mail address").HasNot(`value="noor@example.com!"`)
	noor.Post("/password", setting(link, consoletest.Password)).To("/")
	noor.Get("/account").Is(200).Has("Noor", "This browser")
	for _, again := range []consoletest.Answer{noor.Get(link), noor.Post("/password", setting(link, "another long password"))} {
		again.Is(404).Has("This link was used, has expired, or was replaced by a newer one.")
	}
	g.Browser().SignIn("noor@example.com")
	admin.Get("/staff").Is(200).HasNot("Invited")
	admin.Get("/audit?kind=staff&id=2").Is(200).Has("gave access to", "set the password by a link:").HasNot(consoletest.Password)
}

// A member who forgot the password gets a link. Until the link is used nothing changes; then every
// sign-in of the member ends. A second factor stays.
func TestPasswordReset(t *testing.T) {
	g := consoletest.New(t)
	admin, m := g.As(staff.Admin), g.Hire(staff.Marketer)
	b := g.Browser()
	b.SignIn(m.Email)
	page := consoletest.MemberPage(m.ID)
	admin.Get(page).Is(200).Has("Create a reset link")
	admin.Post(page+"/password-link", nil).To(page)
	first := admin.LinkShown(page)
	admin.Post(page+"/password-link", nil).To(page)
	link := admin.LinkShown(page)
	g.Browser().Get(first).Is(404)
	b.Get("/").Is(200)

	_, recovery := b.Enrol()
	other := g.Browser()
	other.Get(link).Is(200).Has("Every open sign-in ends.")
	other.Post("/password", setting(link, "a new long password")).To("/signin/second")
	b.Get("/").To("/signin")
	other.Get("/").To("/signin") // the link alone is no sign-in
	other.Post("/signin/second", passcode(recovery[0])).To("/")
	g.Browser().Try(m.Email, consoletest.Password, "/").Is(422)

	admin.Post("/staff/99/password-link", nil).Is(404)
	g.Exec(`update staff set disabled_at = now() where id = $1`, m.ID)
	admin.Post(page+"/password-link", nil).Is(http.StatusConflict).Has("This member is disabled.")
	g.As(staff.Operator).Post(page+"/password-link", nil).Is(http.StatusForbidden)
}

func TestPasswordLinkOfAnyText(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Access.Throttle = shell.NewThrottle(5, time.Minute, d.Now) })
	g.From()
	b := g.At("203.0.113.9")
	for _, path := range []string{"/password", "/password?token=", "/password?token=" + strings.Repeat("x", 5000), "/password?token=%F0%9F%94%94"} {
		b.Get(path).Is(404).Has("Ask an admin for a new link.")
	}
	b.Post("/password", url.Values{"token": {"x"}, "password": {consoletest.Password}}).Is(404)
	b.Get("/password?token=x").Is(http.StatusTooManyRequests)
	g.At("198.51.100.9").Get("/password?token=x").Is(404)
}

// With single sign-on only, no page has a password field, no password is accepted, and sign-ins
// made with a password end.
func TestSingleSignOnOnly(t *testing.T) {
	d := consoletest.NewSignOn(t)
	old := d.Browser()
	old.SignIn(d.Member.Email)
	admin := d.Hire(staff.Admin)
	_, token, err := d.Staff.NewPasswordLink(t.Context(), staff.System(), d.Member.ID)
	d.Must(err)
	d.Staff.PasswordsOff = true
	d.AccessChanged()

	old.Get("/").To("/signin")
	b := d.Browser()
	b.Get("/signin").Is(200).Has("Sign in with single sign-on").HasNot(`type="password"`, `name="email"`)
	b.Post("/signin", url.Values{"email": {d.Member.Email}, "password": {consoletest.Password}}).Is(http.StatusForbidden).Has("Passwords are switched off")
	b.Get("/password?token=" + token).Is(http.StatusForbidden)
	b.Post("/password", url.Values{"token": {token}, "password": {consoletest.Password}}).Is(http.StatusForbidden)

	d.There.Says("email", admin.Email)
	d.There.Says("auth_time", d.Now().Unix())
	b.Get(d.Agree(b, "/")).To("/")
	b.Get("/account").Is(200).HasNot(`type="password"`)
	b.Post("/account/password", url.Values{"old_password": {consoletest.Password}, "password": {"a new long password"}}).Is(http.StatusForbidden)
	b.Get(consoletest.MemberPage(d.Member.ID)).Is(200).HasNot("Password link")
	b.Post(consoletest.MemberPage(d.Member.ID)+"/password-link", nil).Is(http.StatusForbidden)
	b.Post("/staff", url.Values{"email": {"noor@example.com"}, "name": {"Noor"}, "role": {"viewer"}}).To("/staff")
	b.Get("/staff").Is(200).Has("Noor can sign in with single sign-on now.").HasNot("Invited")
	if n := d.Number(`select count(*) from password_links where staff_id <> $1`, d.Member.ID); n != 0 {
		t.Errorf("%d links were made", n)
	}
	other := d.Browser()
	back := d.Agree(other, "/")
	d.There.Down("/token", true)
	other.Get(back).Is(http.StatusServiceUnavailable).Has("The identity provider does not answer.").HasNot("password")
}

func TestInvitationExpires(t *testing.T) {
	g := consoletest.New(t)
	admin := g.As(staff.Admin)
	admin.Post("/staff", url.Values{"email": {"noor@example.com"}, "name": {"Noor"}, "role": {"viewer"}}).To("/staff/2")
	link := admin.LinkShown("/staff/2")
	g.Exec(`update password_links set expires_at = $1`, time.Now())
	g.Browser().Get(link).Is(404)
	admin.Get("/staff").Is(200).Has("Invitation expired")
	admin.Post("/staff/2/password-link", nil).To("/staff/2")
	g.Browser().Get(admin.LinkShown("/staff/2")).Is(200)
}
