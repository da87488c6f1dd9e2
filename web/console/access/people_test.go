package access_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestStaffPages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	b.Post("/staff", url.Values{"email": {"not an address"}, "role": {"king"}, "shops": {"ten"}}).Is(422).
		Has("does not exist; choose one of the shops", `value="not an address"`)
	b.Post("/staff", url.Values{"email": {"not an address"}, "role": {"king"}}).Is(422).
		Has("must be an e-mail address", "choose one")
	b.Post("/staff", consoletest.MemberTyped("Ada@Example.com", "marketer")).Is(422).Has("does not exist; choose one of the shops")
	g.Shop(10)
	g.Shop(11)
	b.Post("/staff", consoletest.MemberTyped("Ada@Example.com", "marketer")).To("/staff/2")
	link := b.LinkShown("/staff/2")
	b.Get("/staff").Is(200).Has("ada@example.com", "Shop 10 (#10), Shop 11 (#11)")
	b.Get("/staff/2").Is(200).Has(`name="shops" value="10" checked`, `name="shops" value="11" checked`, "Shop 10 (#10)")
	b.Post("/staff", consoletest.MemberTyped("ada@example.com", "viewer")).Is(422).Has("This e-mail address is already in use.")

	ada := g.Browser()
	ada.Post("/password", setting(link, consoletest.Password)).To("/")
	ada.Get("/").Is(200)
	form := consoletest.MemberTyped("ada@example.com", "viewer")
	form.Set("shops", "")
	b.Post("/staff/2", form).To("/staff")
	ada.Get("/templates/new").Is(http.StatusForbidden) // the new role holds at once
	form.Set("disabled", "1")
	b.Post("/staff/2", form).To("/staff")
	ada.Get("/").To("/signin")
	b.Get("/staff/2").Is(200).Has(`name="disabled" value="1" checked`)
	b.Get("/staff/99").Is(404).Has("There is no such member.")
	b.Get("/audit?kind=staff&id=2").Is(200).Has("changed", "gave access to", "Marketer", "10, 11").HasNot(consoletest.Password)
}

func TestLastAdminStays(t *testing.T) {
	g := consoletest.New(t)
	admin := g.Hire(staff.Admin)
	b := g.Browser()
	b.SignIn(admin.Email)
	form := url.Values{"email": {admin.Email}, "name": {"A"}, "role": {"viewer"}}
	b.Post("/staff/1", form).Is(http.StatusConflict).Has("At least one admin of all shops who can sign in must remain.")
	form.Set("role", "admin")
	form.Set("disabled", "1")
	b.Post("/staff/1", form).Is(http.StatusConflict)
	b.Get("/staff").Is(200)
	g.Hire(staff.Admin)
	form.Set("role", "viewer")
	form.Del("disabled")
	b.Post("/staff/1", form).To("/staff")
	b.Get("/staff").Is(http.StatusForbidden)
}

func TestKeyPages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	b.Get("/keys").Is(200).Has("No keys yet")
	b.Post("/keys", url.Values{"scopes": {"everything"}, "expires_at": {"2020-01-01"}}).Is(422).Has("Enter a name", "choose at least one", "must lie in the future")
	b.Post("/keys", url.Values{"name": {"x"}, "scopes": {"read"}, "expires_at": {"soon"}}).Is(422).Has("must be a date such as 2026-11-20")
	b.Post("/keys", url.Values{"name": {"checkout <b>"}, "scopes": {"payment", "read"}}).To("/keys")
	var kept string
	g.Must(g.SQL.QueryRow(t.Context(), `select string_agg(encode(data, 'escape'), '') from sessions`).Scan(&kept))
	a := b.Get("/keys").Is(200)
	secret := html.UnescapeString(consoletest.Between(a.Body, "<code>"+staff.KeyPrefix, "</code>"))
	if len(secret) < 20 || !strings.Contains(a.Body, "checkout &lt;b&gt;") {
		t.Fatalf("secret %q in %s", secret, a.Text())
	}
	secret = staff.KeyPrefix + secret
	if strings.Contains(kept, secret) {
		t.Error("the secret lies in the session")
	}
	k, err := g.Stores.Staff.Key(t.Context(), staff.HashSecret(secret))
	g.Must(err)
	if !k.Usable(g.Now()) || !k.Has(staff.ScopePayment) || k.Has(staff.ScopeAdmin) {
		t.Errorf("key %+v", k)
	}
	b.Get("/keys").Is(200).Has("checkout").HasNot(secret, "Copy it now")
	if n := g.Number(`select count(*) from api_keys`); n != 1 {
		t.Errorf("%d keys", n)
	}
	b.Get("/audit").Is(200).Has("checkout").HasNot(secret)
	b.Get("/keys/1/revoke").Is(200).Has("Revoke the key “checkout")
	b.Get("/keys/2/revoke").Is(404)
	b.Post("/keys/1/revoke", url.Values{"reason": {"left"}}).To("/keys")
	b.Get("/keys").Is(200).Has("Revoked")
	k, err = g.Stores.Staff.Key(t.Context(), staff.HashSecret(secret))
	g.Must(err)
	if k.Usable(g.Now()) {
		t.Error("a revoked key is usable")
	}
}

// Sending the form twice, one after the other or at once, makes one key.
func TestKeyFormSentTwice(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	form := url.Values{"name": {"checkout"}, "request_key": {b.Get("/keys/new").Is(200).Field("request_key")}}
	again := b.Post("/keys", form).Is(422) // no scope
	form.Set("scopes", "read")
	form.Set("request_key", again.Field("request_key"))
	b.Post("/keys", form).To("/keys")
	b.Post("/keys", form).To("/keys")
	b.Get("/keys").Is(200).Has("Copy it now", "The form was sent twice, and one key was made.")
	if n := g.Number(`select count(*) from api_keys`); n != 1 {
		t.Errorf("%d keys", n)
	}
	form.Set("request_key", b.Get("/keys/new").Is(200).Field("request_key"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { b.Post("/keys", form).To("/keys") })
	}
	all.Wait()
	if n := g.Number(`select count(*) from api_keys`); n != 2 {
		t.Errorf("%d keys", n)
	}
	g.As(staff.Admin).Post("/keys", form).To("/keys") // another member's form is another form
	if n := g.Number(`select count(*) from api_keys`); n != 3 {
		t.Errorf("%d keys", n)
	}
}

func TestAuditPage(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	b.Get("/audit?kind=shop").Is(200).Has("No matches")
	g.Draft(10, time.Hour)
	for i := range shell.PageSize + 2 {
		g.Exec(`insert into audit (actor, action, object_kind, object_id, before, after) values ('staff:7 Zoë', 'custom.thing', 'gadget', $1::int::text, '{"a":1,"same":true}', '{"a":2,"same":true}')`, i)
	}
	a := b.Get("/audit?actor=staff:7").Is(200).Has("Zoë", "custom.thing", "gadget 26", ">1<", ">2<").HasNot("same", "gadget 1<")
	b.Get(strings.ReplaceAll(consoletest.Between(a.Body[strings.Index(a.Body, `class="pager"`):], `href="`, `"`), "&amp;", "&")).Is(200).Has("gadget 0").HasNot("gadget 26")
	b.Get("/audit?actor=staff:70").Is(200).Has("No matches")
	b.Get("/audit?before=x&id=%25").Is(200)
}
