package console

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

func guarded(network, here, all int) func(*Deps) {
	return func(d *Deps) {
		d.Access.Throttle, d.Access.Guesses = shell.NewThrottle(network, 10*time.Second, d.Now), shell.NewThrottle(here, 10*time.Minute, d.Now)
		d.Access.AllGuesses = shell.NewThrottle(all, time.Minute, d.Now)
	}
}

// Who guesses from one address keeps the owner out of nothing but that address.
func TestGuessingKeepsNobodyOut(t *testing.T) {
	g := newRig(t, guarded(5, 20, 100))
	g.from()
	m := g.hire(staff.Viewer)
	thief, guessed := g.at("192.0.2.66"), 0
	for range 400 {
		if thief.try(m.Email, "guess", "/").status == http.StatusUnprocessableEntity {
			guessed++
		}
		g.wait(10 * time.Second)
	}
	if guessed > 30 {
		t.Errorf("%d guesses in an hour from one address", guessed)
	}
	g.at("192.0.2.1").try(m.Email, password, "/").to("/")
}

// Guessing from everywhere is bounded for an account, of nobody too, and its
// owner comes in from where they have been lately.
func TestAnAccountIsBoundedEverywhere(t *testing.T) {
	g := newRig(t, guarded(5, 20, 10))
	g.from()
	m := g.hire(staff.Viewer)
	g.at("2001:db8:1:2::1").try(m.Email, password, "/").to("/")
	for _, email := range []string{m.Email, "nobody@example.com"} {
		guessed := 0
		for i := range 30 {
			if g.at("192.0.2."+string(rune('0'+i/10))+string(rune('0'+i%10))).try(email, "guess", "/").status == http.StatusUnprocessableEntity {
				guessed++
			}
		}
		if guessed != 10 {
			t.Errorf("%d guesses for %s", guessed, email)
		}
	}
	g.at("192.0.2.200").try(m.Email, password, "/").is(http.StatusTooManyRequests)
	g.at("2001:db8:1:2::99").try(m.Email, password, "/").to("/")
	g.exec(`update sign_ins set created_at = created_at - interval '31 days'`)
	g.at("2001:db8:1:2::99").try(m.Email, password, "/").is(http.StatusTooManyRequests)
	g.wait(61 * time.Second)
	g.at("192.0.2.200").try(m.Email, password, "/").to("/")
}

// Colleagues behind one address are not guessing.
func TestColleaguesBehindOneAddress(t *testing.T) {
	g := newRig(t, guarded(5, 20, 100))
	for range 8 {
		g.browser().try(g.hire(staff.Viewer).Email, password, "/").to("/")
	}
	m := g.hire(staff.Viewer)
	for range 5 {
		g.browser().try(m.Email, "wrong", "/").is(http.StatusUnprocessableEntity)
	}
	g.browser().try(m.Email, password, "/").is(http.StatusTooManyRequests)
}

// comparing counts how many passwords are compared.
type comparing struct {
	quick
	n *int
}

func (c comparing) Matches(ctx context.Context, p, hash string) (bool, error) {
	*c.n++
	return c.quick.Matches(ctx, p, hash)
}

// Who signs in and out, and whose account is being guessed, is in the audit
// log, once; what is typed of others is not.
func TestSignInsAreRecorded(t *testing.T) {
	n := 0
	g := newRig(t, guarded(3, 20, 100), func(d *Deps) { d.Staff.Passwords = comparing{n: &n} })
	admin := g.as(staff.Admin)
	m := g.hire(staff.Viewer)
	b := g.browser()
	b.signIn(m.Email)
	b.post("/signout", nil).to("/signin")
	n = 0
	for range 10 {
		b.try(m.Email, "guess", "/")
		b.try("stranger@example.com", "guess", "/")
	}
	g.Console.Close() // waits for what is being recorded
	if n != 3 {
		t.Errorf("%d passwords were compared", n)
	}
	for action, want := range map[string]int{"staff.sign_in": 1, "staff.sign_out": 1, "staff.sign_in_slowed": 1} {
		var got int
		g.must(g.sql.QueryRow(t.Context(), `select count(*) from audit where action = $1 and object_id = $2`, action, fmt.Sprint(m.ID)).Scan(&got))
		if got != want {
			t.Errorf("%s is recorded %d times", action, got)
		}
	}
	admin.get("/audit?kind=staff").is(200).has("signed in:", "signed out:", "slowed down attempts to sign in as").hasNot("stranger@")
	admin.get("/").is(200).hasNot("signed in:")
}

// An admin sees where a member is signed in and can end it.
func TestSignAMemberOut(t *testing.T) {
	g := newRig(t)
	admin, m := g.as(staff.Admin), g.hire(staff.Viewer)
	page := "/staff/2"
	admin.get(page).is(200).has("Signed in nowhere.").hasNot("Sign out everywhere")
	b := g.browser()
	b.header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0")
	b.signIn(m.Email)
	admin.get(page).is(200).has("Firefox, Linux", "127.0.0.1", "Sign out everywhere", "since", "last used")
	admin.post(page+"/signout", nil).to(page)
	b.get("/").to("/signin")
	admin.get(page).is(200).has("1 sign-in has been ended.", "Signed in nowhere.")
	admin.get("/audit?kind=staff&action=staff.revoke_sign_in").is(200).has("ended sign-ins of")
	admin.post("/staff/99/signout", nil).is(http.StatusNotFound)
	g.as(staff.Operator).post(page+"/signout", nil).is(http.StatusForbidden)
}
