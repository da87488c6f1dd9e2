package access_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	accessdb "dropbell/adapters/postgres/access"
	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/security"
)

func recording(t *testing.T) *consoletest.Fixture {
	g := consoletest.New(t, func(d *console.Deps) {
		d.Security = security.New(d.Access.Audit.(accessdb.Audit), slog.New(slog.DiscardHandler), d.Now, prometheus.NewRegistry())
	})
	g.From()
	return g
}

// Refused sign-ins, denied requests and changes of access are on the audit page, with the client's
// address and the request id. Nothing that was typed is on the page.
func TestSecurityEventsOnTheAuditPage(t *testing.T) {
	g := recording(t)
	admin, viewer := g.At("203.0.113.1"), g.Hire(staff.Viewer)
	admin.SignIn(g.Hire(staff.Admin).Email)
	thief := g.At("198.51.100.66")
	for range 3 {
		thief.Try(viewer.Email, "not the password", "/").Is(422)
	}
	thief.Get("/password?token=made-up-token").Is(404)
	v := g.At("203.0.113.2")
	v.SignIn(viewer.Email)
	v.Get("/templates/new").Is(http.StatusForbidden)
	_, recovery := v.Enrol()
	half := g.At("198.51.100.67")
	half.Try(viewer.Email, consoletest.Password, "/").To("/signin/second")
	half.Post("/signin/second", passcode("000000")).Is(422)
	v.Post("/confirm", url.Values{"confirm_with": {"password"}, "confirm_password": {"not it either"}}).Is(422)
	admin.Post(consoletest.MemberPage(viewer.ID), url.Values{"email": {viewer.Email}, "name": {"V"}, "role": {"marketer"}}).To("/staff")
	g.Shop(10)
	g.Flush()

	page := admin.Get("/audit?security=1").Is(200)
	page.Has("failed to sign in", "from 198.51.100.66", "used an invalid password link", "sent a request that was denied",
		"GET /templates/new", "failed the second factor", "from 198.51.100.67", "failed to confirm their identity", "From 203.0.113.1").
		HasNot("not the password", "not it either", "made-up-token", recovery[0], "Dropbell saved")
	admin.Get("/audit").Is(200).Has("Dropbell saved")
	admin.Get("/audit?action=security.sign_in_refused").Is(200).Has("Times – 3")
	if n := g.Number(`select count(*) from audit where action = 'staff.change' and address = '203.0.113.1'`); n != 1 {
		t.Errorf("%d entries of the change have its address", n)
	}
	if n := g.Number(`select count(*) from audit where action like 'security.%' and action <> 'security.confirmation_refused' and after::text like '%@%'`); n != 0 {
		t.Errorf("%d refusals keep an address of e-mail", n)
	}
	// Client addresses are for staff of all shops.
	local := g.As(staff.Marketer, 10)
	local.Get("/audit?security=1").Is(200).HasNot("198.51.100.66")
	admin.Get("/audit.csv?security=1").Is(200).Has("198.51.100.66")
}
