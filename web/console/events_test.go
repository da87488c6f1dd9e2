package console

import (
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/postgres"
	"dropbell/domain/staff"
	"dropbell/web/security"
)

func recording(t *testing.T) *rig {
	g := newRig(t, func(d *Deps) {
		d.Security = security.New(d.Access.Audit.(postgres.Audit), slog.New(slog.DiscardHandler), d.Now, prometheus.NewRegistry())
	})
	g.from()
	return g
}

// Refused sign-ins, denied requests and changes of access are on the audit
// page, with the address and the id of the request; nothing typed is.
func TestSecurityEventsOnTheAuditPage(t *testing.T) {
	g := recording(t)
	admin, viewer := g.at("203.0.113.1"), g.hire(staff.Viewer)
	admin.signIn(g.hire(staff.Admin).Email)
	thief := g.at("198.51.100.66")
	for range 3 {
		thief.try(viewer.Email, "not the password", "/").is(422)
	}
	thief.get("/password?token=made-up-token").is(404)
	v := g.at("203.0.113.2")
	v.signIn(viewer.Email)
	v.get("/templates/new").is(http.StatusForbidden)
	_, recovery := v.enrol()
	half := g.at("198.51.100.67")
	half.try(viewer.Email, password, "/").to("/signin/second")
	half.post("/signin/second", passcode("000000")).is(422)
	v.post("/confirm", url.Values{"confirm_with": {"password"}, "confirm_password": {"not it either"}}).is(422)
	admin.post(memberPage(viewer.ID), url.Values{"email": {viewer.Email}, "name": {"V"}, "role": {"marketer"}}).to("/staff")
	g.shop(10)
	g.flush()

	page := admin.get("/audit?security=1").is(200)
	page.has("was refused a sign-in", "from 198.51.100.66", "tried a password link that does not count", "was denied a request",
		"GET /templates/new", "was refused at the second factor", "from 198.51.100.67", "could not confirm who they are", "From 203.0.113.1").
		hasNot("not the password", "not it either", "made-up-token", recovery[0], "Dropbell saved")
	admin.get("/audit").is(200).has("Dropbell saved")
	admin.get("/audit?action=security.sign_in_refused").is(200).has("Times – 3")
	if n := g.number(`select count(*) from audit where action = 'staff.change' and address = '203.0.113.1'`); n != 1 {
		t.Errorf("%d entries of the change have its address", n)
	}
	if n := g.number(`select count(*) from audit where action like 'security.%' and action <> 'security.confirmation_refused' and after::text like '%@%'`); n != 0 {
		t.Errorf("%d refusals keep an address of e-mail", n)
	}
	// Client addresses are for staff of all shops.
	local := g.as(staff.Marketer, 10)
	local.get("/audit?security=1").is(200).hasNot("198.51.100.66")
	admin.get("/audit.csv?security=1").is(200).has("198.51.100.66")
}
