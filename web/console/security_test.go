package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// demanding makes the console demand second factors of operators and admins.
func demanding(d *Deps) { d.Staff.FixedPolicy = staff.Required }

// shownSecret is the secret that the page shows for an authenticator app.
func (a answer) shownSecret() string {
	a.Helper()
	m := regexp.MustCompile(`data-copy="([A-Z2-7 ]+)"`).FindStringSubmatch(a.body)
	if m == nil {
		a.Fatalf("%s: no secret in\n%s", a.what, a.text())
	}
	return strings.ReplaceAll(m[1], " ", "")
}

var recoveryForm = regexp.MustCompile(`<code>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})</code>`)

// enrol adds an authenticator app and returns its secret and the recovery codes.
func (b *browser) enrol() (secret string, recovery []string) {
	b.Helper()
	secret = b.get("/account/security/app").is(200).shownSecret()
	b.post("/account/security/app", url.Values{"name": {"phone"}, "passcode": {b.code(secret)}}).to("/account/security")
	for _, m := range recoveryForm.FindAllStringSubmatch(b.get("/account/security").is(200).has("phone").body, -1) {
		recovery = append(recovery, m[1])
	}
	if len(recovery) != staff.RecoveryCodes {
		b.Fatalf("%d recovery codes are shown", len(recovery))
	}
	return secret, recovery
}

// code is what an authenticator app shows now.
func (g *rig) code(secret string) string {
	g.Helper()
	code, err := totp.GenerateCode(secret, g.now())
	g.must(err)
	return code
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func passcode(code string) url.Values { return url.Values{"passcode": {code}} }

func TestSignInInTwoSteps(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Admin)
	first := g.browser()
	first.signIn(m.Email)
	secret, recovery := first.enrol()
	first.get("/account/security").is(200).hasNot(recovery[0]) // shown once

	b := g.browser()
	b.get("/signin/second").to("/signin")
	b.post("/signin/second", passcode("123456")).to("/signin")
	b.try(m.Email, password, "/shops?x=1").to("/signin/second")
	b.get("/").to("/signin") // half signed in is not signed in
	b.get("/account/security").to("/signin?return=%2Faccount%2Fsecurity")
	b.get("/signin/second").is(200).has(m.Email, "Use a recovery code").hasNot("data-passkey-ask")
	b.post("/signin/second", passcode("")).is(422).has(`id="f-passcode-error"`)
	b.post("/signin/second", passcode("000000")).is(422).has("is not right")
	// The code of the enrolment has been used.
	b.post("/signin/second", passcode(g.code(secret))).is(422).has("already used")
	g.wait(30 * time.Second)
	b.post("/signin/second", passcode(g.code(secret))).to("/shops?x=1")
	b.get("/").is(200)
	b.get("/signin/second").to("/")

	c := g.browser()
	c.try(m.Email, password, "/").to("/signin/second")
	c.post("/signin/second", passcode(g.code(secret))).is(422) // once, wherever
	c.get("/signin/second?with=recovery").is(200).has("Recovery code")
	c.post("/signin/second?with=recovery", passcode(strings.ToUpper(recovery[3]))).to("/")
	c.get("/account/security").is(200).has("9 of ten codes are left")
	d := g.browser()
	d.try(m.Email, password, "/").to("/signin/second")
	d.post("/signin/second", passcode(recovery[3])).is(422)

	if n := g.number(`select count(*) from audit where action = 'staff.sign_in' and after->>'second_factor' in ('totp', 'recovery_code')`); n != 2 {
		t.Errorf("%d sign-ins with a second factor in the audit log", n)
	}
	if n := g.number(`select count(*) from sign_ins`); n != 3 {
		t.Errorf("%d sign-ins", n)
	}
}

// The first step ends by itself, and with the password that was given.
func TestHalfSignInEnds(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Viewer)
	first := g.browser()
	first.signIn(m.Email)
	secret, _ := first.enrol()
	for name, happen := range map[string]func(){
		"too late":     func() { g.wait(staff.HalfLife) },
		"new password": func() { g.exec(`update staff set password_hash = password_hash || 'x' where id = $1`, m.ID) },
		"disabled":     func() { g.exec(`update staff set disabled_at = now() where id = $1`, m.ID) },
	} {
		hash, _ := quick{}.Hash(t.Context(), password)
		g.exec(`update staff set disabled_at = null, password_hash = $2 where id = $1`, m.ID, hash)
		b := g.browser()
		b.try(m.Email, password, "/shops").to("/signin/second")
		happen()
		g.wait(30 * time.Second)
		if a := b.post("/signin/second", passcode(g.code(secret))); a.header.Get("Location") != "/signin?return=%2Fshops" {
			t.Errorf("%s: %d to %q", name, a.status, a.header.Get("Location"))
		}
		b.get("/").to("/signin")
	}
}

func TestSecondFactorsAreThrottled(t *testing.T) {
	g := newRig(t, func(d *Deps) { d.Access.Guesses = shell.NewThrottle(4, time.Minute, d.Now) })
	m := g.hire(staff.Viewer)
	first := g.browser()
	first.signIn(m.Email)
	secret, _ := first.enrol()
	g.wait(time.Hour)
	b := g.browser()
	b.try(m.Email, password, "/").to("/signin/second")
	for range 4 {
		b.post("/signin/second", passcode("000000")).is(422)
	}
	a := b.post("/signin/second", passcode(g.code(secret))).is(http.StatusTooManyRequests).has("Too many attempts")
	if a.header.Get("Retry-After") == "" {
		t.Error("nothing says when to come again")
	}
	g.wait(time.Minute)
	b.post("/signin/second", passcode(g.code(secret))).to("/")
}

// A member who must have a second factor adds one before anything else.
func TestMustEnrol(t *testing.T) {
	g := newRig(t, demanding)
	for _, role := range []staff.Role{staff.Viewer, staff.Marketer} {
		g.as(role).get("/").is(200)
	}
	m := g.hire(staff.Operator)
	b := g.browser()
	b.try(m.Email, password, "/channels").to("/channels")
	b.get("/channels").to("/account/security?return=%2Fchannels")
	b.get("/live?of=/channels").is(http.StatusForbidden)
	b.get("/monitor/queues").to("/account/security?return=%2Fmonitor%2Fqueues")
	b.post("/account/password", url.Values{}).to("/account/security")
	for _, rt := range g.table {
		if rt.Open || rt.Enrolling || strings.HasSuffix(rt.Pattern, "/live") {
			continue
		}
		if a := b.do(rt.Method, samplePath(rt.Pattern, "1"), formFor(rt.Method)); !strings.HasPrefix(a.header.Get("Location"), "/account/security") {
			t.Errorf("%s: %d to %q", a.what, a.status, a.header.Get("Location"))
		}
	}
	page := b.get("/account/security?return=%2Fchannels").is(200).has("Your role needs a second factor", "Sign out").hasNot("nav-link")
	if !strings.Contains(html.UnescapeString(page.body), `href="/account/security/app?return=%2Fchannels"`) {
		t.Error("the way back is lost")
	}
	secret := b.get("/account/security/app?return=%2Fchannels").is(200).hasNot("nav-link").shownSecret()
	b.post("/account/security/app?return=%2Fchannels", url.Values{"name": {""}, "passcode": {"12"}}).is(422).has("is required", "six digits")
	b.post("/account/security/app?return=%2Fchannels", url.Values{"name": {"x"}, "passcode": {"000000"}}).is(422).has("is not what the app shows now")
	b.post("/account/security/app?return=%2Fchannels", url.Values{"name": {"x"}, "passcode": {g.code(secret)}}).to("/account/security?return=%2Fchannels")
	b.get("/account/security?return=%2Fchannels").is(200).has("Your recovery codes", `href="/channels"`, "nav-link")
	b.get("/channels").is(200)
	id := strings.Split(b.get("/account/security").is(200).body, "/account/security/")[1]
	b.post("/account/security/"+strings.Split(id, "/")[0]+"/remove", nil).is(http.StatusConflict).has("Add another one before you remove the last")
}

// Signing in elsewhere, the provider is responsible.
func TestSingleSignOnNeedsNoSecondFactorHere(t *testing.T) {
	d := newDoor(t, demanding)
	d.exec(`update staff set role = 'operator' where id = $1`, d.member.ID)
	b := d.browser()
	b.get(d.agree(b, "/channels")).to("/channels")
	b.get("/channels").is(200)
}

func TestSecondFactorsOfOnesOwn(t *testing.T) {
	g := newRig(t)
	b, other := g.as(staff.Viewer), g.as(staff.Viewer)
	b.get("/account").is(200).has(`href="/account/security"`)
	b.get("/account/security").is(200).has("No second factor yet").hasNot("Make new codes")
	_, old := b.enrol()
	id := g.number(`select id from second_factors`)
	path := "/account/security/" + itoa(id)
	for _, rest := range []string{"/rename", "/remove"} {
		other.post(path+rest, url.Values{"name": {"mine"}}).is(http.StatusNotFound)
	}
	b.post(path+"/rename", url.Values{"name": {" "}}).is(422).has("is required")
	b.post(path+"/rename", url.Values{"name": {"tablet <b>"}}).to("/account/security")
	b.get("/account/security").is(200).has("tablet &lt;b&gt;", "10 of ten codes are left")
	b.post("/account/security/recovery-codes", nil).to("/account/security")
	b.get("/account/security").is(200).has("Your recovery codes").hasNot(old[0])
	b.get(path + "/remove").is(200).has("It is the last one")
	b.post(path+"/remove", nil).to("/account/security")
	if n := g.number(`select (select count(*) from second_factors) + (select count(*) from recovery_codes)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	g.as(staff.Viewer).post("/account/security/recovery-codes", nil).is(http.StatusNotFound)
}

func TestAdminsResetSecondFactors(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Operator)
	b := g.browser()
	b.signIn(m.Email)
	_, recovery := b.enrol()
	admin := g.as(staff.Admin)
	page := "/staff/" + itoa(m.ID)
	admin.get(page).is(200).has("1 second factor.", page+"/reset-second-factors")
	admin.get(page + "/reset-second-factors").is(200).has("Every browser is signed out at once.")
	admin.post(page+"/reset-second-factors", nil).to(page)
	admin.get(page).is(200).has("1 second factor has been removed.", "0 second factors.")
	b.get("/").to("/signin")
	b.try(m.Email, password, "/").to("/")
	if n := g.number(`select count(*) from audit where action = 'staff.reset_second_factors' and object_id = $1`, itoa(m.ID)); n != 1 {
		t.Errorf("%d records", n)
	}
	b.get("/account/security").is(200).hasNot(recovery[0])
	admin.get("/audit").is(200).has("reset the second factors of", "added a second factor to", "Authenticator app")
}

// An admin demands second factors, from then on of everybody who is signed in.
func TestPolicyIsAnAdminsChoice(t *testing.T) {
	g := newRig(t, func(d *Deps) { d.Staff.FixedPolicy = "" })
	g.exec(`update console_settings set second_factor = 'optional'`)
	admin, operator := g.as(staff.Admin), g.as(staff.Operator)
	operator.get("/").is(200)
	admin.get("/staff").is(200).has("Second factor required for")
	admin.post("/staff/second-factors", url.Values{"second_factor": {"always"}}).is(422)
	operator.post("/staff/second-factors", url.Values{"second_factor": {"required"}}).is(http.StatusForbidden)
	admin.post("/staff/second-factors", url.Values{"second_factor": {"required"}}).to("/staff")
	operator.get("/").to("/account/security")
	admin.get("/staff").to("/account/security?return=%2Fstaff")
	if n := g.number(`select count(*) from audit where action = 'staff.second_factor_policy' and after->>'second_factor_policy' = 'required'`); n != 1 {
		t.Errorf("%d records", n)
	}
	fixed := newRig(t).as(staff.Admin)
	fixed.get("/staff").is(200).has("CONSOLE_SECOND_FACTOR decides this")
	fixed.post("/staff/second-factors", url.Values{"second_factor": {"required"}}).is(http.StatusConflict)
}

// The first admin of a new installation, made from the environment, is led to
// a second factor and not locked out.
func TestFirstAdminIsLedToEnrolment(t *testing.T) {
	g := newRig(t, func(d *Deps) { d.Staff.FixedPolicy = "" })
	if created, err := g.Staff.EnsureFirstAdmin(t.Context(), "root@example.com", password); err != nil || !created {
		t.Fatal(created, err)
	}
	b := g.browser()
	b.signIn("root@example.com")
	b.get("/").to("/account/security")
	b.enrol()
	b.get("/").is(200)
}
