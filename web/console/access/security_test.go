package access_test

import (
	"html"
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

// demanding makes the console demand second factors of operators and admins.
func demanding(d *console.Deps) { d.Staff.FixedPolicy = staff.Required }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func passcode(code string) url.Values { return url.Values{"passcode": {code}} }

func TestSignInInTwoSteps(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Admin)
	first := g.Browser()
	first.SignIn(m.Email)
	secret, recovery := first.Enrol()
	first.Get("/account/security").Is(200).HasNot(recovery[0]) // shown once

	b := g.Browser()
	b.Get("/signin/second").To("/signin")
	b.Post("/signin/second", passcode("123456")).To("/signin")
	b.Try(m.Email, consoletest.Password, "/shops?x=1").To("/signin/second")
	b.Get("/").To("/signin") // half signed in is not signed in
	b.Get("/account/security").To("/signin?return=%2Faccount%2Fsecurity")
	b.Get("/signin/second").Is(200).Has(m.Email, "Use a recovery code").HasNot("data-passkey-ask")
	b.Post("/signin/second", passcode("")).Is(422).Has(`id="f-passcode-error"`)
	b.Post("/signin/second", passcode("000000")).Is(422).Has("is wrong or was already used")
	// The code of the enrolment has been used.
	b.Post("/signin/second", passcode(g.Code(secret))).Is(422).Has("already used")
	g.Wait(30 * time.Second)
	b.Post("/signin/second", passcode(g.Code(secret))).To("/shops?x=1")
	b.Get("/").Is(200)
	b.Get("/signin/second").To("/")

	c := g.Browser()
	c.Try(m.Email, consoletest.Password, "/").To("/signin/second")
	c.Post("/signin/second", passcode(g.Code(secret))).Is(422) // once, wherever
	c.Get("/signin/second?with=recovery").Is(200).Has("Recovery code")
	c.Post("/signin/second?with=recovery", passcode(strings.ToUpper(recovery[3]))).To("/")
	c.Get("/account/security").Is(200).Has("9 of ten codes are left")
	d := g.Browser()
	d.Try(m.Email, consoletest.Password, "/").To("/signin/second")
	d.Post("/signin/second", passcode(recovery[3])).Is(422)

	if n := g.Number(`select count(*) from audit where action = 'staff.sign_in' and after->>'second_factor' in ('totp', 'recovery_code')`); n != 2 {
		t.Errorf("%d sign-ins with a second factor in the audit log", n)
	}
	if n := g.Number(`select count(*) from sign_ins`); n != 3 {
		t.Errorf("%d sign-ins", n)
	}
}

// The first step ends by itself, and with the password that was given.
func TestHalfSignInEnds(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Viewer)
	first := g.Browser()
	first.SignIn(m.Email)
	secret, _ := first.Enrol()
	for name, happen := range map[string]func(){
		"too late":     func() { g.Wait(staff.HalfLife) },
		"new password": func() { g.Exec(`update staff set password_hash = password_hash || 'x' where id = $1`, m.ID) },
		"disabled":     func() { g.Exec(`update staff set disabled_at = now() where id = $1`, m.ID) },
	} {
		hash, _ := consoletest.QuickPasswords{}.Hash(t.Context(), consoletest.Password)
		g.Exec(`update staff set disabled_at = null, password_hash = $2 where id = $1`, m.ID, hash)
		b := g.Browser()
		b.Try(m.Email, consoletest.Password, "/shops").To("/signin/second")
		happen()
		g.Wait(30 * time.Second)
		if a := b.Post("/signin/second", passcode(g.Code(secret))); a.Header.Get("Location") != "/signin?return=%2Fshops" {
			t.Errorf("%s: %d to %q", name, a.Status, a.Header.Get("Location"))
		}
		b.Get("/").To("/signin")
	}
}

func TestSecondFactorsAreThrottled(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Access.Guesses = shell.NewThrottle(4, time.Minute, d.Now) })
	m := g.Hire(staff.Viewer)
	first := g.Browser()
	first.SignIn(m.Email)
	secret, _ := first.Enrol()
	g.Wait(time.Hour)
	b := g.Browser()
	b.Try(m.Email, consoletest.Password, "/").To("/signin/second")
	for range 4 {
		b.Post("/signin/second", passcode("000000")).Is(422)
	}
	a := b.Post("/signin/second", passcode(g.Code(secret))).Is(http.StatusTooManyRequests).Has("Too many attempts")
	if a.Header.Get("Retry-After") == "" {
		t.Error("nothing says when to come again")
	}
	g.Wait(time.Minute)
	b.Post("/signin/second", passcode(g.Code(secret))).To("/")
}

// A member who must have a second factor adds it before anything else.
func TestMustEnrol(t *testing.T) {
	g := consoletest.New(t, demanding)
	for _, role := range []staff.Role{staff.Viewer, staff.Marketer} {
		g.As(role).Get("/").Is(200)
	}
	m := g.Hire(staff.Operator)
	b := g.Browser()
	b.Try(m.Email, consoletest.Password, "/channels").To("/channels")
	b.Get("/channels").To("/account/security?return=%2Fchannels")
	b.Get("/live?of=/channels").Is(http.StatusForbidden)
	b.Get("/monitor/queues").To("/account/security?return=%2Fmonitor%2Fqueues")
	b.Post("/account/password", url.Values{}).To("/account/security")
	for _, rt := range g.Routes() {
		if rt.Open || rt.Enrolling || strings.HasSuffix(rt.Pattern, "/live") {
			continue
		}
		if a := b.Do(rt.Method, consoletest.SamplePath(rt.Pattern, "1"), consoletest.FormFor(rt.Method)); !strings.HasPrefix(a.Header.Get("Location"), "/account/security") {
			t.Errorf("%s: %d to %q", a.What, a.Status, a.Header.Get("Location"))
		}
	}
	page := b.Get("/account/security?return=%2Fchannels").Is(200).Has("Your role needs a second factor", "Sign out").HasNot("nav-link")
	if !strings.Contains(html.UnescapeString(page.Body), `href="/account/security/app?return=%2Fchannels"`) {
		t.Error("the way back is lost")
	}
	secret := b.Get("/account/security/app?return=%2Fchannels").Is(200).HasNot("nav-link").ShownSecret()
	b.Post("/account/security/app?return=%2Fchannels", url.Values{"name": {""}, "passcode": {"12"}}).Is(422).Has("Enter a name", "six digits")
	b.Post("/account/security/app?return=%2Fchannels", url.Values{"name": {"x"}, "passcode": {"000000"}}).Is(422).Has("is not what the app shows now")
	b.Post("/account/security/app?return=%2Fchannels", url.Values{"name": {"x"}, "passcode": {g.Code(secret)}}).To("/account/security?return=%2Fchannels")
	b.Get("/account/security?return=%2Fchannels").Is(200).Has("Your recovery codes", `href="/channels"`, "nav-link")
	b.Get("/channels").Is(200)
	id := strings.Split(b.Get("/account/security").Is(200).Body, "/account/security/")[1]
	b.Post("/account/security/"+strings.Split(id, "/")[0]+"/remove", nil).Is(http.StatusConflict).Has("Add another one before you remove the last")
}

// Signing in elsewhere, the provider is responsible.
func TestSingleSignOnNeedsNoSecondFactorHere(t *testing.T) {
	d := consoletest.NewSignOn(t, demanding)
	d.Exec(`update staff set role = 'operator' where id = $1`, d.Member.ID)
	b := d.Browser()
	b.Get(d.Agree(b, "/channels")).To("/channels")
	b.Get("/channels").Is(200)
}

func TestSecondFactorsOfOnesOwn(t *testing.T) {
	g := consoletest.New(t)
	b, other := g.As(staff.Viewer), g.As(staff.Viewer)
	b.Get("/account").Is(200).Has(`href="/account/security"`)
	b.Get("/account/security").Is(200).Has("No second factor yet").HasNot("Make new codes")
	_, old := b.Enrol()
	id := g.Number(`select id from second_factors`)
	path := "/account/security/" + itoa(id)
	for _, rest := range []string{"/rename", "/remove"} {
		other.Post(path+rest, url.Values{"name": {"mine"}}).Is(http.StatusNotFound)
	}
	b.Post(path+"/rename", url.Values{"name": {" "}}).Is(422).Has("Enter a name")
	b.Post(path+"/rename", url.Values{"name": {"tablet <b>"}}).To("/account/security")
	b.Get("/account/security").Is(200).Has("tablet &lt;b&gt;", "10 of ten codes are left")
	b.Post("/account/security/recovery-codes", nil).To("/account/security")
	b.Get("/account/security").Is(200).Has("Your recovery codes").HasNot(old[0])
	b.Get(path + "/remove").Is(200).Has("It is the last one")
	b.Post(path+"/remove", nil).To("/account/security")
	if n := g.Number(`select (select count(*) from second_factors) + (select count(*) from recovery_codes)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	g.As(staff.Viewer).Post("/account/security/recovery-codes", nil).Is(http.StatusNotFound)
}

func TestAdminsResetSecondFactors(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Operator)
	b := g.Browser()
	b.SignIn(m.Email)
	_, recovery := b.Enrol()
	admin := g.As(staff.Admin)
	page := "/staff/" + itoa(m.ID)
	admin.Get(page).Is(200).Has("1 second factor.", page+"/reset-second-factors")
	admin.Get(page + "/reset-second-factors").Is(200).Has("Every browser is signed out at once.")
	admin.Post(page+"/reset-second-factors", nil).To(page)
	admin.Get(page).Is(200).Has("1 second factor has been removed.", "0 second factors.")
	b.Get("/").To("/signin")
	b.Try(m.Email, consoletest.Password, "/").To("/")
	if n := g.Number(`select count(*) from audit where action = 'staff.reset_second_factors' and object_id = $1`, itoa(m.ID)); n != 1 {
		t.Errorf("%d records", n)
	}
	b.Get("/account/security").Is(200).HasNot(recovery[0])
	admin.Get("/audit").Is(200).Has("reset the second factors of", "added a second factor to", "Authenticator app")
}

// An admin makes second factors mandatory; from then on all signed-in members need a second factor.
func TestPolicyIsAnAdminsChoice(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Staff.FixedPolicy = "" })
	g.Exec(`update console_settings set second_factor = 'optional'`)
	admin, operator := g.As(staff.Admin), g.As(staff.Operator)
	operator.Get("/").Is(200)
	admin.Get("/staff").Is(200).Has("Second factor required for")
	admin.Post("/staff/second-factors", url.Values{"second_factor": {"always"}}).Is(422)
	operator.Post("/staff/second-factors", url.Values{"second_factor": {"required"}}).Is(http.StatusForbidden)
	admin.Post("/staff/second-factors", url.Values{"second_factor": {"required"}}).To("/staff")
	operator.Get("/").To("/account/security")
	admin.Get("/staff").To("/account/security?return=%2Fstaff")
	if n := g.Number(`select count(*) from audit where action = 'staff.second_factor_policy' and after->>'second_factor_policy' = 'required'`); n != 1 {
		t.Errorf("%d records", n)
	}
	fixed := consoletest.New(t).As(staff.Admin)
	fixed.Get("/staff").Is(200).Has("CONSOLE_SECOND_FACTOR decides this")
	fixed.Post("/staff/second-factors", url.Values{"second_factor": {"required"}}).Is(http.StatusConflict)
}

// The first admin of a new installation, made from the environment, is led to add a second factor
// and is not locked out.
func TestFirstAdminIsLedToEnrolment(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) { d.Staff.FixedPolicy = "" })
	if created, err := g.Staff.EnsureFirstAdmin(t.Context(), "root@example.com", consoletest.Password); err != nil || !created {
		t.Fatal(created, err)
	}
	b := g.Browser()
	b.SignIn("root@example.com")
	b.Get("/").To("/account/security")
	b.Enrol()
	b.Get("/").Is(200)
}
