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

func memberTyped(email, role string) url.Values {
	return url.Values{"email": {email}, "name": {"Ada"}, "role": {role}, "shops": {"10, 11"}}
}

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
	b.post("/staff", memberTyped("ada@example.com", "viewer")).is(422).has("This e-mail address is already in use.")

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
	b.post("/staff/1", form).is(http.StatusConflict).has("At least one admin of all shops who can sign in must remain.")
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

func TestChannelPages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Operator)
	b.get("/channels").is(200).has("SMTP server", "ready", "not configured", "WEBHOOK_URL")
	b.get("/channels/email/pause").is(200).has("Pause E-mail?", "Reason")
	b.post("/channels/email/pause", url.Values{"reason": {"provider is down"}}).to("/channels")
	b.get("/channels").is(200).has("E-mail is paused.", "provider is down", "/channels/email/resume")
	b.post("/channels/email/resume", nil).to("/channels")
	b.get("/channels").is(200).has("E-mail is resumed.").hasNot("provider is down")
	b.get("/channels/pigeon/pause").is(404)
	b.get("/audit?kind=channel").is(200).has("paused", "resumed", "channel email")
	g.as(staff.Marketer).get("/channels").is(200).hasNot("/channels/email/pause")
}

func TestDeadMessagePages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Operator)
	b.get("/dead-messages").is(200).has("Nothing is stuck")
	g.exec(`insert into dead_messages (message_id, topic, handler, reason, payload)
		values ('m1', 'users.changed.v1', 'cache', 'it <b>broke</b>', '{"from_user":"1"}'), ('m2', 't', 'h', 'r', '\xff00')`)
	b.get("/dead-messages").is(200).has("users.changed.v1", "it &lt;b&gt;broke", "&#34;from_user&#34;: &#34;1&#34;")
	b.get("/dead-messages/1/requeue").is(200).has("Send this message again?")
	b.post("/dead-messages/1/requeue", nil).to("/dead-messages")
	b.post("/dead-messages/1/requeue", nil).is(http.StatusConflict).has("has already been dealt with")
	b.post("/dead-messages/2/requeue", nil).is(http.StatusConflict)
	b.post("/dead-messages/2/discard", nil).to("/dead-messages")
	b.get("/dead-messages").is(200).has("The message has been discarded.", "Nothing is stuck")
	g.as(staff.Marketer).get("/dead-messages").is(http.StatusForbidden)
}

func TestShopPages(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	b.get("/shops").is(200).has("No shops yet")
	b.post("/shops", url.Values{"shop_number": {"0"}, "timezone": {"Moon/Base"}}).is(422).has("must be a positive number", "is required", "choose a time zone")
	b.post("/shops", url.Values{"shop_number": {"10"}, "name": {"Tea"}, "timezone": {"Local"}}).is(422)
	b.post("/shops", url.Values{"shop_number": {"10"}, "name": {"Tea"}, "timezone": {"Asia/Kathmandu"}}).to("/shops")
	b.post("/shops", url.Values{"shop_number": {"10"}, "name": {"Again"}, "timezone": {"UTC"}}).is(422).has("exists already")
	b.get("/shops/10").is(200).has(`value="Tea"`, `<option value="Asia/Kathmandu" selected>`)
	b.post("/shops/10", url.Values{"shop_number": {"77"}, "name": {"Tea house"}, "timezone": {"Asia/Kathmandu"}}).to("/shops")
	b.get("/shops").is(200).has("Tea house").hasNot("<code>77</code>")
	b.get("/audit?kind=shop&id=10").is(200).has("Tea house", ">Tea<")
	for _, name := range []string{"Tea\u202ehouse", "Tea\ahouse"} {
		b.post("/shops/10", url.Values{"name": {name}, "timezone": {"UTC"}}).is(422).has("contains characters that cannot be stored")
	}
	b.post("/shops/10", url.Values{"name": {"Tea\nhouse"}, "timezone": {"UTC"}}).is(422).has("must be one line")
	b.post("/shops/10", url.Values{"name": {" Tea house "}, "timezone": {"UTC"}}).to("/shops")
	b.get("/shops/10").is(200).has(`value="Tea house"`)
}

func TestAuditPage(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	b.get("/audit?kind=shop").is(200).has("No matches")
	g.draft(10, time.Hour)
	for i := range shell.PageSize + 2 {
		g.exec(`insert into audit (actor, action, object_kind, object_id, before, after) values ('staff:7 Zoë', 'custom.thing', 'gadget', $1::int::text, '{"a":1,"same":true}', '{"a":2,"same":true}')`, i)
	}
	a := b.get("/audit?actor=staff:7").is(200).has("Zoë", "custom.thing", "gadget 26", ">1<", ">2<").hasNot("same", "gadget 1<")
	b.get(strings.ReplaceAll(between(a.body[strings.Index(a.body, `class="pager"`):], `href="`, `"`), "&amp;", "&")).is(200).has("gadget 0").hasNot("gadget 26")
	b.get("/audit?actor=staff:70").is(200).has("No matches")
	b.get("/audit?before=x&id=%25").is(200)
}
