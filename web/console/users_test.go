package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// wrote stores a campaign of the shop that reached the users, or is on its way
// to them, and returns its id.
func (g *rig) wrote(name string, shop int64, done bool, users ...uint64) (id int64) {
	g.Helper()
	due := roaring64.New()
	due.AddMany(users)
	raw, err := due.ToBytes()
	g.must(err)
	var sent []byte
	if done {
		sent = raw
	}
	g.must(g.sql.QueryRow(g.Context(), `insert into campaigns (shop_number, name, channel, content, audience, starts_at, ends_at, state, creator, created_by, started_at)
		values ($1, $2, 0, '{"variants": [{"percent": 100, "texts": {"": {"title": "Hello", "body": "Come"}}}]}', '{"kind": "all"}', now(), now() + interval '1 hour', 'running', 'x', 'x', clock_timestamp()) returning id`,
		shop, name).Scan(&id))
	g.exec(`insert into batches (kind, owner_id, channel, from_user, to_user, state, due_at, worthless_after, due, due_count, sent, started_at)
		values ('campaign', $1, 0, $2, $3, 'running', now(), now() + interval '1 hour', $4, $5, $6, now())`, id, due.Minimum(), due.Maximum(), raw, due.GetCardinality(), sent)
	return id
}

func TestUserPage(t *testing.T) {
	g := newRig(t)
	d, other := g.published(10, 2*time.Hour), g.published(11, 2*time.Hour)
	g.exec(`insert into users (id, name, email, timezone, locale, opt_outs, quiet_from, quiet_to, attributes) values (1001, 'Grace <b>', 'grace@example.com', 'Asia/Tokyo', 'zh-CN', $1, 0, 1439,
		'{"tier": "gold <i>", "orders": 41, "year": 2024, "member": true}')`, int16(delivery.SMS.Bit()))
	g.exec(`insert into campaign_limits (shop_number, per_day, per_week) values (10, 2, 3), (11, 1, 0)`)
	g.book(d, 1001, delivery.App, 5, 60)
	var coupons []int64
	for range 11 {
		coupons = append(coupons, g.gives(d, 1001))
	}
	elsewhere := g.gives(other, 1001)
	first, second := g.wrote("Autumn <u>", 10, true, 7, 1001), g.wrote("On its way", 10, false, 1001)
	hidden := g.wrote("Rye loaf", 11, true, 1001)
	g.wrote("Not for her", 10, true, 1000, 1002)

	page := g.as(staff.Marketer).get("/users/1001").is(200)
	page.has("Grace &lt;b&gt;", "grace@example.com", "opted out", "not set up", "简体中文", "Asia/Tokyo", "00:00 – 23:59",
		"gold &lt;i&gt;", "orders 41", "year 2024", "member yes", `href="/audit?kind=user&amp;id=1001"`,
		"Moon cake night", `href="/templates/1/users/1001"`,
		fmt.Sprintf(`href="/coupons/%d"`, elsewhere), fmt.Sprintf(`href="/coupons/%d"`, coupons[10]), `href="/coupons?by=user&amp;q=1001"`, "¥10 off",
		"Autumn &lt;u&gt;", fmt.Sprintf(`href="/campaigns/%d/recipients?user=1001"`, first), fmt.Sprintf(`href="/campaigns/%d"`, second), "being delivered",
		"1 of 2 in 24 hours", "1 of 3 in 7 days", "Shop 11 limit reached 1 of 1 in 24 hours")
	page.hasNot("Grace <b>", "gold <i>", "Autumn <u>", "Not for her", "at least", fmt.Sprintf(`href="/coupons/%d"`, coupons[0]))

	// Who is in charge of one shop sees what concerns it, and who may not
	// change users is not offered it.
	g.as(staff.Viewer, 10).get("/users/1001").is(200).has("Autumn", fmt.Sprintf(`href="/coupons/%d"`, coupons[1]), "1 of 2 in 24 hours").
		hasNot(fmt.Sprintf("/campaigns/%d", hidden), fmt.Sprintf(`href="/coupons/%d"`, elsewhere), "Shop 11", "/users/1001/edit", "Rye loaf")

	// Explaining leads to what became of the message.
	g.as(staff.Viewer).get(fmt.Sprintf("/campaigns/%d/recipients?user=1001", first)).is(200).has("1001", "delivered")
}

func TestUserPageOfNobody(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Viewer)
	b.get("/users/42").is(200).has("No profile data", "This user has no coupons.", "No campaign has been sent", "No recent campaign message", "Nothing is reserved.", "None. Attributes come from", "no address").
		hasNot("/audit?kind=user")
	for _, path := range []string{"/users/0", "/users/042", "/users/x", "/users/99999999999999999999"} {
		b.get(path).is(http.StatusNotFound)
	}
}

// Every ticked template is looked up in one go, also one that is gone or not
// the actor's.
func TestManyTickedTemplates(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.draft(11, 2*time.Hour)
	g.exec(`insert into templates (shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state)
		select 10, 'n' || n, 'amount_off', 1, 'CNY', 'shop', 10, 1, date_trunc('second', now()) + interval '1 hour', date_trunc('second', now()) + interval '2 hours', 1, 'claim', 'durable', 'published' from generate_series(1, 900) n`)
	path := "/templates/bulk?step=pause&id=999999"
	for id := d.ID; id < d.ID+800; id++ {
		path += fmt.Sprintf("&id=%d", id)
	}
	g.as(staff.Marketer, 10).get(path).is(200).has("801", "799")
}

func TestEditUser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name, email, opt_outs, push) values (7, 'Ann', 'ann@example.com', 2, '[{"endpoint":"https://p.example.com/1"}]')`)
	b := g.as(staff.Marketer)
	b.get("/users/7").is(200).has("/users/7/edit", "/users/7/erase")
	b.get("/users/7/edit").is(200).has(`value="ann@example.com"`, "Quiet from")
	form := url.Values{"name": {"Ann"}, "email": {"ann@"}, "phone": {""}, "locale": {"zh-CN"}, "timezone": {""}, "quiet_from": {"22:00"}, "quiet_to": {"08:00"}, "off": {"sms", "nonsense"}}
	b.post("/users/7/edit", form).is(422).has(`value="ann@"`)
	form.Set("email", "ann@example.com")
	b.post("/users/7/edit", form).to("/users/7")
	if n := g.number(`select count(*) from users where id = 7 and locale = 'zh-CN' and quiet_from = 1320 and opt_outs = 4 and email = 'ann@example.com' and push <> '[]'`); n != 1 {
		t.Fatal("the change is not stored, or more than it")
	}
	if n := g.number(`select count(*) from audit where action = 'user.edit' and object_id = '7' and after = '{"fields": ["locale", "opt_outs", "quiet_hours"]}'`); n != 1 {
		t.Fatal("the audit log does not name the fields")
	}
	if n := g.number(`select count(*) from audit where coalesce(after::text, '') like '%ann@%'`); n != 0 {
		t.Fatal("the audit log holds an address")
	}
	form.Set("quiet_to", "")
	b.post("/users/7/edit", form).is(422)
	form.Set("quiet_to", "22:00")
	b.post("/users/7/edit", form).is(422).has("must begin and end at different times")
	b.post("/users/8/edit", url.Values{"name": {"New"}}).to("/users/8")
	viewer := g.as(staff.Viewer)
	viewer.get("/users/7").is(200).hasNot("/users/7/edit")
	viewer.post("/users/7/edit", form).is(http.StatusForbidden)
	viewer.post("/users/7/erase", nil).is(http.StatusForbidden)
	// A person belongs to every shop.
	limited := g.as(staff.Marketer, 10)
	limited.get("/users/7").is(200).has("/users/7/edit").hasNot("/users/7/erase")
	limited.get("/users/7/erase").is(http.StatusForbidden)
	limited.post("/users/7/erase", nil).is(http.StatusForbidden)
	b.get("/users/7/erase").is(200).has("Erase user 7?")
	b.post("/users/7/erase", nil).to("/users/7")
	b.post("/users/7/erase", nil).to("/users/7")
	if n := g.number(`select count(*) from users where id = 7`); n != 0 {
		t.Fatal("the user is still known")
	}
}

func TestUsers(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Marketer)
	d := g.published(10, 2*time.Hour)
	g.exec(`insert into users (id, name, email, phone, locale, timezone) values (1001, 'Ada Lovelace', 'ada@example.com', '+8613800138000', 'zh-CN', 'Asia/Shanghai')`)
	g.book(d, 1001, delivery.Email, 5, 30)
	b.get("/users").is(200).has("Find a user")
	for _, q := range []string{"1001", "ada", "Ada+L", "ada%40exa", "%2B86138"} {
		b.get("/users?q="+q).is(200).has("Ada Lovelace", "/users/1001")
	}
	b.get("/users?q=%EF%BC%91%EF%BC%90%EF%BC%90%EF%BC%91").is(200).has("/users/1001")
	b.get("/users?q=%25").is(200).has("Nobody found")
	b.get("/users?q=" + strings.Repeat("x", 5000)).is(200).has("Nobody found")
	b.get("/users/1001").is(200).has("Ada Lovelace", "Moon cake night", "2 reminders", "stored as "+fmt.Sprint(1<<12|1<<17), "+8613800138000")
	b.get("/users/"+user.ID(7).String()).is(200).has("No profile data for this user", "Nothing is reserved.")
	for _, id := range []string{"0", "-1", "x", "99999999999999999999", "07"} {
		b.get("/users/" + id).is(http.StatusNotFound)
	}
}
