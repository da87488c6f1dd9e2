package access_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// Without scripts: the answer does not say whether a member has the address, and requests are
// limited for each network and for each address.
func TestForgotPasswordPage(t *testing.T) {
	g := consoletest.New(t, func(d *console.Deps) {
		d.Access.Throttle, d.Access.Guesses = shell.NewThrottle(8, time.Minute, d.Now), shell.NewThrottle(2, time.Minute, d.Now)
	})
	g.From()
	m := g.Hire(staff.Marketer)
	b := g.At("203.0.113.9")
	b.Get("/signin").Is(200).Has("/signin/forgot", "Forgot your password?")
	b.Get("/signin/forgot").Is(200).Has("Forgot your password?", "autofocus")
	b.Post("/signin/forgot", url.Values{"email": {" "}}).Is(422).Has("aria-invalid")
	b.Post("/signin/forgot", url.Values{"email": {m.Email}}).Is(200).Has("Look into your mail", m.Email)
	if n := g.Number(`select count(*) from password_mails where staff_id = $1`, m.ID); n != 1 {
		t.Fatalf("%d requests", n)
	}
	b.Post("/signin/forgot", url.Values{"email": {"nobody@example.com"}}).Is(200).Has("Look into your mail", "nobody@example.com")
	g.Exec(`delete from password_mails`)
	for range 3 { // of which one is stored
		b.Post("/signin/forgot", url.Values{"email": {m.Email}}).Is(200).Has("Look into your mail", m.Email)
		g.Exec(`update password_mails set requested_at = now() - interval '1 hour', locale = 'first'`)
	}
	if n := g.Number(`select count(*) from password_mails where locale = 'first'`); n != 1 {
		t.Errorf("%d requests", n)
	}
	for range 3 {
		b.Post("/signin/forgot", url.Values{"email": {"nobody@example.com"}}).Is(200)
	}
	b.Post("/signin/forgot", url.Values{"email": {m.Email}}).Is(http.StatusTooManyRequests).Has("Too many")
	g.At("198.51.100.9").Get("/password?token=x").Is(404).Has("/signin/forgot")
}

func TestForgotPasswordIsOff(t *testing.T) {
	d := consoletest.NewSignOn(t)
	d.Staff.PasswordsOff = true
	b := d.Browser()
	b.Get("/signin").Is(200).HasNot("/signin/forgot")
	b.Get("/signin/forgot").Is(http.StatusForbidden)
	b.Post("/signin/forgot", url.Values{"email": {"a@example.com"}}).Is(http.StatusForbidden)
}
