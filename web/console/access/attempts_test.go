package access_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func guarded(network, here, all int) func(*console.Deps) {
	return func(d *console.Deps) {
		d.Access.Throttle, d.Access.Guesses = shell.NewThrottle(network, 10*time.Second, d.Now), shell.NewThrottle(here, 10*time.Minute, d.Now)
		d.Access.AllGuesses = shell.NewThrottle(all, time.Minute, d.Now)
	}
}

// An attacker who guesses from one address locks the owner out from that address only.
func TestGuessingKeepsNobodyOut(t *testing.T) {
	g := consoletest.New(t, guarded(5, 20, 100))
	g.From()
	m := g.Hire(staff.Viewer)
	thief, guessed := g.At("192.0.2.66"), 0
	for range 400 {
		if thief.Try(m.Email, "guess", "/").Status == http.StatusUnprocessableEntity {
			guessed++
		}
		g.Wait(10 * time.Second)
	}
	if guessed > 30 {
		t.Errorf("%d guesses in an hour from one address", guessed)
	}
	g.At("192.0.2.1").Try(m.Email, consoletest.Password, "/").To("/")
}

// Guesses from all networks together are bounded for an account, also for an account that does not
// exist. Its owner can sign in from known addresses.
func TestAnAccountIsBoundedEverywhere(t *testing.T) {
	g := consoletest.New(t, guarded(5, 20, 10))
	g.From()
	m := g.Hire(staff.Viewer)
	g.At("2001:db8:1:2::1").Try(m.Email, consoletest.Password, "/").To("/")
	for _, email := range []string{m.Email, "nobody@example.com"} {
		guessed := 0
		for i := range 30 {
			if g.At("192.0.2."+string(rune('0'+i/10))+string(rune('0'+i%10))).Try(email, "guess", "/").Status == http.StatusUnprocessableEntity {
				guessed++
			}
		}
		if guessed != 10 {
			t.Errorf("%d guesses for %s", guessed, email)
		}
	}
	g.At("192.0.2.200").Try(m.Email, consoletest.Password, "/").Is(http.StatusTooManyRequests)
	g.At("2001:db8:1:2::99").Try(m.Email, consoletest.Password, "/").To("/")
	g.Exec(`update sign_ins set created_at = created_at - interval '31 days'`)
	g.At("2001:db8:1:2::99").Try(m.Email, consoletest.Password, "/").Is(http.StatusTooManyRequests)
	g.Wait(61 * time.Second)
	g.At("192.0.2.200").Try(m.Email, consoletest.Password, "/").To("/")
}

// Sign-ins of colleagues behind one address do not count as guesses.
func TestColleaguesBehindOneAddress(t *testing.T) {
	g := consoletest.New(t, guarded(5, 20, 100))
	for range 8 {
		g.Browser().Try(g.Hire(staff.Viewer).Email, consoletest.Password, "/").To("/")
	}
	m := g.Hire(staff.Viewer)
	for range 5 {
		g.Browser().Try(m.Email, "wrong", "/").Is(http.StatusUnprocessableEntity)
	}
	g.Browser().Try(m.Email, consoletest.Password, "/").Is(http.StatusTooManyRequests)
}

// comparing counts how many passwords are compared.
type comparing struct {
	consoletest.QuickPasswords
	n *int
}

func (c comparing) Matches(ctx context.Context, p, hash string) (bool, error) {
	*c.n++
	return c.QuickPasswords.Matches(ctx, p, hash)
}

// Members who sign in and out, and accounts that are being guessed, are in the audit log once.
// Other typed names are not.
func TestSignInsAreRecorded(t *testing.T) {
	n := 0
	g := consoletest.New(t, guarded(3, 20, 100), func(d *console.Deps) { d.Staff.Passwords = comparing{n: &n} })
	admin := g.As(staff.Admin)
	m := g.Hire(staff.Viewer)
	b := g.Browser()
	b.SignIn(m.Email)
	b.Post("/signout", nil).To("/signin")
	n = 0
	for range 10 {
		b.Try(m.Email, "guess", "/")
		b.Try("stranger@example.com", "guess", "/")
	}
	g.Console.Close() // waits for what is being recorded
	if n != 3 {
		t.Errorf("%d passwords were compared", n)
	}
	for action, want := range map[string]int{"staff.sign_in": 1, "staff.sign_out": 1, "staff.sign_in_slowed": 1} {
		var got int
		g.Must(g.SQL.QueryRow(t.Context(), `select count(*) from audit where action = $1 and object_id = $2`, action, fmt.Sprint(m.ID)).Scan(&got))
		if got != want {
			t.Errorf("%s is recorded %d times", action, got)
		}
	}
	admin.Get("/audit?kind=staff").Is(200).Has("signed in:", "signed out:", "slowed down attempts to sign in as").HasNot("stranger@")
	admin.Get("/").Is(200).HasNot("signed in:")
}

// An admin sees where a member is signed in and can end it.
func TestSignAMemberOut(t *testing.T) {
	g := consoletest.New(t)
	admin, m := g.As(staff.Admin), g.Hire(staff.Viewer)
	page := "/staff/2"
	admin.Get(page).Is(200).Has("Signed in nowhere.").HasNot("Sign out everywhere")
	b := g.Browser()
	b.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0")
	b.SignIn(m.Email)
	admin.Get(page).Is(200).Has("Firefox, Linux", "127.0.0.1", "Sign out everywhere", "since", "last used")
	admin.Post(page+"/signout", nil).To(page)
	b.Get("/").To("/signin")
	admin.Get(page).Is(200).Has("1 sign-in has been ended.", "Signed in nowhere.")
	admin.Get("/audit?kind=staff&action=staff.revoke_sign_in").Is(200).Has("ended sign-ins of")
	admin.Post("/staff/99/signout", nil).Is(http.StatusNotFound)
	g.As(staff.Operator).Post(page+"/signout", nil).Is(http.StatusForbidden)
}
