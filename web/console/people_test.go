package console

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

func TestStaffPages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	b.post("/staff", url.Values{"email": {"not an address"}, "role": {"king"}, "shops": {"ten"}}).is(422).
		has("must be a positive number", `value="not an address"`)
	b.post("/staff", url.Values{"email": {"not an address"}, "role": {"king"}}).is(422).
		has("must be an e-mail address", "choose one")
	b.post("/staff", memberTyped("Ada@Example.com", "marketer")).is(422).has("there is no such shop")
	g.shop(10)
	g.shop(11)
	b.post("/staff", memberTyped("Ada@Example.com", "marketer")).to("/staff/2")
	link := b.linkShown("/staff/2")
	b.get("/staff").is(200).has("ada@example.com", "10, 11")
	b.post("/staff", memberTyped("ada@example.com", "viewer")).is(422).has("Somebody with this e-mail address exists already.")

	ada := g.browser()
	ada.post("/password", setting(link, password)).to("/")
	ada.get("/").is(200)
	form := memberTyped("ada@example.com", "viewer")
	form.Set("shops", "")
	b.post("/staff/2", form).to("/staff")
	ada.get("/templates/new").is(http.StatusForbidden) // the new role holds at once
	form.Set("disabled", "1")
	b.post("/staff/2", form).to("/staff")
	ada.get("/").to("/signin")
	b.get("/staff/2").is(200).has(`name="disabled" value="1" checked`)
	b.get("/staff/99").is(404).has("There is no such staff member.")
	b.get("/audit?kind=staff&id=2").is(200).has("changed", "gave access to", "Marketer", "10, 11").hasNot(password)
}

func TestLastAdminStays(t *testing.T) {
	g := newRig(t)
	admin := g.hire(staff.Admin)
	b := g.browser()
	b.signIn(admin.Email)
	form := url.Values{"email": {admin.Email}, "name": {"A"}, "role": {"viewer"}}
	b.post("/staff/1", form).is(http.StatusConflict).has("An admin of all shops who can sign in must remain.")
	form.Set("role", "admin")
	form.Set("disabled", "1")
	b.post("/staff/1", form).is(http.StatusConflict)
	b.get("/staff").is(200)
	g.hire(staff.Admin)
	form.Set("role", "viewer")
	form.Del("disabled")
	b.post("/staff/1", form).to("/staff")
	b.get("/staff").is(http.StatusForbidden)
}

func TestKeyPages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	b.get("/keys").is(200).has("No keys yet")
	b.post("/keys", url.Values{"scopes": {"everything"}, "expires_at": {"2020-01-01"}}).is(422).has("is required", "choose at least one", "must lie in the future")
	b.post("/keys", url.Values{"name": {"x"}, "scopes": {"read"}, "expires_at": {"soon"}}).is(422).has("is not a date")
	b.post("/keys", url.Values{"name": {"checkout <b>"}, "scopes": {"payment", "read"}}).to("/keys")
	var kept string
	g.must(g.sql.QueryRow(t.Context(), `select string_agg(encode(data, 'escape'), '') from sessions`).Scan(&kept))
	a := b.get("/keys").is(200)
	secret := html.UnescapeString(between(a.body, "<code>"+staff.KeyPrefix, "</code>"))
	if len(secret) < 20 || !strings.Contains(a.body, "checkout &lt;b&gt;") {
		t.Fatalf("secret %q in %s", secret, a.text())
	}
	secret = staff.KeyPrefix + secret
	if strings.Contains(kept, secret) {
		t.Error("the secret lies in the session")
	}
	k, err := postgres.NewStaff(g.db).Key(t.Context(), staff.HashSecret(secret))
	g.must(err)
	if !k.Usable(g.now()) || !k.Has(staff.ScopePayment) || k.Has(staff.ScopeAdmin) {
		t.Errorf("key %+v", k)
	}
	b.get("/keys").is(200).has("checkout").hasNot(secret, "Copy it now")
	if n := g.number(`select count(*) from api_keys`); n != 1 {
		t.Errorf("%d keys", n)
	}
	b.get("/audit").is(200).has("checkout").hasNot(secret)
	b.get("/keys/1/revoke").is(200).has("Revoke the key “checkout")
	b.get("/keys/2/revoke").is(404)
	b.post("/keys/1/revoke", url.Values{"reason": {"left"}}).to("/keys")
	b.get("/keys").is(200).has("revoked")
	k, err = postgres.NewStaff(g.db).Key(t.Context(), staff.HashSecret(secret))
	g.must(err)
	if k.Usable(g.now()) {
		t.Error("a revoked key is usable")
	}
}

// Sending the form twice, one after the other or at once, makes one key.
func TestKeyFormSentTwice(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	form := url.Values{"name": {"checkout"}, "request_key": {b.get("/keys/new").is(200).field("request_key")}}
	again := b.post("/keys", form).is(422) // no scope
	form.Set("scopes", "read")
	form.Set("request_key", again.field("request_key"))
	b.post("/keys", form).to("/keys")
	b.post("/keys", form).to("/keys")
	b.get("/keys").is(200).has("Copy it now", "The form was sent twice, and one key was made.")
	if n := g.number(`select count(*) from api_keys`); n != 1 {
		t.Errorf("%d keys", n)
	}
	form.Set("request_key", b.get("/keys/new").is(200).field("request_key"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { b.post("/keys", form).to("/keys") })
	}
	all.Wait()
	if n := g.number(`select count(*) from api_keys`); n != 2 {
		t.Errorf("%d keys", n)
	}
	g.as(staff.Admin).post("/keys", form).to("/keys") // a form of somebody else's is another
	if n := g.number(`select count(*) from api_keys`); n != 3 {
		t.Errorf("%d keys", n)
	}
}

func TestAuditPage(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	b.get("/audit?kind=shop").is(200).has("Nothing fits")
	g.draft(10, time.Hour)
	for i := range shell.PageSize + 2 {
		g.exec(`insert into audit (actor, action, object_kind, object_id, before, after) values ('staff:7 Zoë', 'custom.thing', 'gadget', $1::int::text, '{"a":1,"same":true}', '{"a":2,"same":true}')`, i)
	}
	a := b.get("/audit?actor=staff:7").is(200).has("Zoë", "custom.thing", "gadget 26", ">1<", ">2<").hasNot("same", "gadget 1<")
	b.get(strings.ReplaceAll(between(a.body[strings.Index(a.body, `class="pager"`):], `href="`, `"`), "&amp;", "&")).is(200).has("gadget 0").hasNot("gadget 26")
	b.get("/audit?actor=staff:70").is(200).has("Nothing fits")
	b.get("/audit?before=x&id=%25").is(200)
}
