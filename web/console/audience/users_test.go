package audience_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/consoletest"
)

func TestUserPage(t *testing.T) {
	g := consoletest.New(t)
	d, other := g.Published(10, 2*time.Hour), g.Published(11, 2*time.Hour)
	g.Exec(`insert into users (id, name, email, timezone, locale, opt_outs, quiet_from, quiet_to, attributes) values (1001, 'Grace <b>', 'grace@example.com', 'Asia/Tokyo', 'zh-CN', $1, 0, 1439,
		'{"tier": "gold <i>", "orders": 41, "year": 2024, "member": true}')`, int16(delivery.SMS.Bit()))
	g.Exec(`insert into campaign_limits (shop_number, per_day, per_week) values (10, 2, 3), (11, 1, 0)`)
	g.Book(d, 1001, delivery.App, 5, 60)
	var coupons []int64
	for range 11 {
		coupons = append(coupons, g.Gives(d, 1001))
	}
	elsewhere := g.Gives(other, 1001)
	first, second := g.Wrote("Autumn <u>", 10, true, 7, 1001), g.Wrote("On its way", 10, false, 1001)
	hidden := g.Wrote("Rye loaf", 11, true, 1001)
	g.Wrote("Not for her", 10, true, 1000, 1002)

	page := g.As(staff.Marketer).Get("/users/1001").Is(200)
	page.Has("Grace &lt;b&gt;", "grace@example.com", "Opted out", "Not set up", "简体中文", "Asia/Tokyo", "00:00 – 23:59",
		"gold &lt;i&gt;", "orders 41", "year 2024", "member yes", `href="/audit?kind=user&amp;id=1001"`,
		"Moon cake night", `href="/templates/1/users/1001"`,
		fmt.Sprintf(`href="/coupons/%d"`, elsewhere), fmt.Sprintf(`href="/coupons/%d"`, coupons[10]), `href="/coupons?by=user&amp;q=1001"`, "¥10 off",
		"Autumn &lt;u&gt;", fmt.Sprintf(`href="/campaigns/%d/recipients?user=1001"`, first), fmt.Sprintf(`href="/campaigns/%d"`, second), "On the way",
		"1 of 2 in 24 hours", "1 of 3 in 7 days", "Shop 11 Limit reached 1 of 1 in 24 hours")
	page.HasNot("Grace <b>", "gold <i>", "Autumn <u>", "Not for her", "at least")
	for n, id := range map[int]int64{0: coupons[0], 2: coupons[10]} { // the timeline begins with the seven newest, and the list has the ten newest
		if got := strings.Count(page.Body, fmt.Sprintf(`href="/coupons/%d"`, id)); got != n {
			t.Errorf("coupon %d is linked %d times, want %d", id, got, n)
		}
	}

	// A member limited to one shop sees the data of that shop. A member who may not change users is
	// not offered the form.
	g.As(staff.Viewer, 10).Get("/users/1001").Is(200).Has("Autumn", fmt.Sprintf(`href="/coupons/%d"`, coupons[1]), "1 of 2 in 24 hours").
		HasNot(fmt.Sprintf("/campaigns/%d", hidden), fmt.Sprintf(`href="/coupons/%d"`, elsewhere), "Shop 11", "/users/1001/edit", "Rye loaf")

	// Explaining links to the outcome of the message.
	g.As(staff.Viewer).Get(fmt.Sprintf("/campaigns/%d/recipients?user=1001", first)).Is(200).Has("1001", "Sent")
}

func TestUserPageOfNobody(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	b.Get("/users/42").Is(200).Has("No profile data", "This customer has no coupons.", "No campaign has been sent", "No recent campaign message", "Nothing is reserved.", "None. Attributes come from", "No address").
		HasNot("/audit?kind=user")
	for _, path := range []string{"/users/0", "/users/042", "/users/x", "/users/99999999999999999999"} {
		b.Get(path).Is(http.StatusNotFound)
	}
}

// All ticked templates are loaded with one query, also deleted templates and templates that the
// actor may not see.
func TestManyTickedTemplates(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Draft(11, 2*time.Hour)
	g.Exec(`insert into templates (shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state)
		select 10, 'n' || n, 'amount_off', 1, 'CNY', 'shop', 10, 1, date_trunc('second', now()) + interval '1 hour', date_trunc('second', now()) + interval '2 hours', 1, 'claim', 'durable', 'published' from generate_series(1, 900) n`)
	path := "/templates/bulk?step=pause&id=999999"
	for id := d.ID; id < d.ID+800; id++ {
		path += fmt.Sprintf("&id=%d", id)
	}
	g.As(staff.Marketer, 10).Get(path).Is(200).Has("801", "799")
}

func TestEditUser(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, name, email, opt_outs, push) values (7, 'Ann', 'ann@example.com', 2, '[{"endpoint":"https://p.example.com/1"}]')`)
	b := g.As(staff.Marketer)
	b.Get("/users/7").Is(200).Has("/users/7/edit", "/users/7/erase")
	b.Get("/users/7/edit").Is(200).Has(`value="ann@example.com"`, "Quiet from")
	form := url.Values{"name": {"Ann"}, "email": {"ann@"}, "phone": {""}, "locale": {"zh-CN"}, "timezone": {""}, "quiet_from": {"22:00"}, "quiet_to": {"08:00"}, "off": {"sms", "nonsense"}}
	b.Post("/users/7/edit", form).Is(422).Has(`value="ann@"`)
	form.Set("email", "ann@example.com")
	b.Post("/users/7/edit", form).To("/users/7")
	if n := g.Number(`select count(*) from users where id = 7 and locale = 'zh-CN' and quiet_from = 1320 and opt_outs = 4 and email = 'ann@example.com' and push <> '[]'`); n != 1 {
		t.Fatal("the change is not stored, or more than it")
	}
	if n := g.Number(`select count(*) from audit where action = 'user.edit' and object_id = '7' and after = '{"fields": ["locale", "opt_outs", "quiet_hours"]}'`); n != 1 {
		t.Fatal("the audit log does not name the fields")
	}
	if n := g.Number(`select count(*) from audit where coalesce(after::text, '') like '%ann@%'`); n != 0 {
		t.Fatal("the audit log holds an address")
	}
	form.Set("quiet_to", "")
	b.Post("/users/7/edit", form).Is(422)
	form.Set("quiet_to", "22:00")
	b.Post("/users/7/edit", form).Is(422).Has("must begin and end at different times")
	b.Post("/users/8/edit", url.Values{"name": {"New"}}).To("/users/8")
	viewer := g.As(staff.Viewer)
	viewer.Get("/users/7").Is(200).HasNot("/users/7/edit")
	viewer.Post("/users/7/edit", form).Is(http.StatusForbidden)
	viewer.Post("/users/7/erase", nil).Is(http.StatusForbidden)
	// A user belongs to every shop.
	limited := g.As(staff.Marketer, 10)
	limited.Get("/users/7").Is(200).Has("/users/7/edit").HasNot("/users/7/erase")
	limited.Get("/users/7/erase").Is(http.StatusForbidden)
	limited.Post("/users/7/erase", nil).Is(http.StatusForbidden)
	b.Get("/users/7/erase").Is(200).Has("Erase customer 7?")
	b.Post("/users/7/erase", nil).To("/users/7")
	b.Post("/users/7/erase", nil).To("/users/7")
	if n := g.Number(`select count(*) from users where id = 7`); n != 0 {
		t.Fatal("the user is still known")
	}
}

func TestUsers(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into users (id, name, email, phone, locale, timezone) values (1001, 'Ada Lovelace', 'ada@example.com', '+8613800138000', 'zh-CN', 'Asia/Shanghai')`)
	g.Book(d, 1001, delivery.Email, 5, 30)
	b.Get("/users").Is(200).Has("Recent customers", "Ada Lovelace", "App E-mail – 0 – – –")
	g.Gives(d, 1001)
	g.Exec(`insert into orders (shop_number, order_id, user_id, currency, amount, ordered_at) values (10, 'P-1', 1001, 'CNY', 12000, now() - interval '2 hours')`)
	b.Get("/users").Is(200).Has("Ada Lovelace 1001 App E-mail just now Claimed a coupon Moon cake night", "1 ¥120.00 0 of 1 2 h ago")
	b.Get("/users/1001").Is(200).Has("Revenue ¥120.00", "Orders 1 0 with a coupon", "Coupons used 0 of 1 received", "Last order 2 h ago")
	g.As(staff.Viewer, 11).Get("/users").Is(200).Has("Ada Lovelace").HasNot("¥120", "Moon cake night")
	for _, q := range []string{"1001", "ada", "Ada+L", "ada%40exa", "%2B86138"} {
		b.Get("/users?q="+q).Is(200).Has("Ada Lovelace", "/users/1001")
	}
	b.Get("/users?q=%EF%BC%91%EF%BC%90%EF%BC%90%EF%BC%91").Is(200).Has("/users/1001")
	b.Get("/users?q=%25").Is(200).Has("No customer found")
	b.Get("/users?q=" + strings.Repeat("x", 5000)).Is(200).Has("No customer found")
	b.Get("/users/1001").Is(200).Has("Ada Lovelace", "Moon cake night", "2 reminders", "stored as "+fmt.Sprint(1<<12|1<<17), "+8613800138000")
	b.Get("/users/"+user.ID(7).String()).Is(200).Has("No profile data for this customer", "Nothing is reserved.")
	for _, id := range []string{"0", "-1", "x", "99999999999999999999", "07"} {
		b.Get("/users/" + id).Is(http.StatusNotFound)
	}
}
