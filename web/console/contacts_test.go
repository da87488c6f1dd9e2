package console

import (
	"net/http"
	"net/url"
	"testing"

	"dropbell/domain/staff"
)

// Viewers and staff of some shops see contacts masked, wherever they stand; who
// may change users of a shop shows those of one user, which is recorded.
func TestContactsAreForStaffOfAllShops(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name, email, phone, attributes, opt_outs) values (7, 'Ann', 'mia@example.com', '+8613800138042', '{"second":"mia.two@example.org"}', 2)`)
	g.exec(`insert into audit (actor, action, object_kind, object_id, after) values ('staff:1 Ada', 'channel.test', 'channel', 'email', '{"to":"mia@example.com"}')`)
	whole, viewer, limited := g.as(staff.Marketer), g.as(staff.Viewer), g.as(staff.Marketer, 10)
	secret := []string{"mia@", "mia.two", "138001380"}
	whole.get("/users?q=7").is(200).has("mia@example.com", "+8613800138042")
	whole.get("/users/7").is(200).has("mia@example.com", "mia.two@example.org").hasNot("Show contacts")
	for who, b := range map[string]*browser{"viewer": viewer, "limited": limited} {
		t.Run(who, func(t *testing.T) {
			for _, page := range []string{"/users?q=7", "/users?q=Ann", "/users/7", "/audit", "/audit.csv"} {
				b.get(page).is(200).hasNot(secret...)
			}
			b.get("/users?q=7").is(200).has("m…@e…", "…42")
			// Nobody guesses a contact letter by letter; the whole of one finds its user.
			b.get("/users?q=mia@example").is(200).hasNot("m…@e…")
			b.get("/users?q=%2B86138001380").is(200).hasNot("…42")
			b.get("/users?q=mia@example.com").is(200).has("m…@e…")
			b.get("/users?q=%2B8613800138042").is(200).has("…42")
		})
	}
	viewer.get("/users/7").is(200).has("Contacts are masked").hasNot("Show contacts")
	viewer.post("/users/7/contacts", url.Values{}).is(http.StatusForbidden)
	limited.get("/users.csv?q=Ann").is(200).has("m…@e…").hasNot(secret...)
	if n := g.number(`select count(*) from audit where action = 'user.show_contacts'`); n != 0 {
		t.Errorf("%d looks are recorded before any", n)
	}
	limited.get("/users/7").is(200).has("Show contacts")
	limited.do("POST", "/users/7/contacts", url.Values{}).is(200).has("mia@example.com", "+8613800138042")
	if n := g.number(`select count(*) from audit where action = 'user.show_contacts' and object_id = '7' and actor like 'staff:%'`); n != 1 {
		t.Errorf("%d looks are recorded", n)
	}
	limited.get("/users/7").is(200).hasNot(secret...)
}

// Staff of some shops turn channels off, and change nothing else of a user.
func TestStaffOfSomeShopsAddOptOuts(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name, email, opt_outs) values (7, 'Ann', 'mia@example.com', 2)`)
	limited := g.as(staff.Marketer, 10)
	limited.get("/users/7/edit").is(200).has("you can turn channels off", "disabled").hasNot("mia@", `name="email"`, `name="name"`)
	limited.post("/users/7/edit", url.Values{"off": {"sms"}, "email": {"other@example.com"}, "name": {"Bob"}, "timezone": {"UTC"}}).to("/users/7")
	if n := g.number(`select count(*) from users where id = 7 and name = 'Ann' and email = 'mia@example.com' and timezone = '' and opt_outs = 2 | 4`); n != 1 {
		t.Error("the user was changed otherwise")
	}
	limited.post("/users/7/edit", url.Values{}).to("/users/7")
	if n := g.number(`select opt_outs from users where id = 7`); n != 6 {
		t.Errorf("opt-outs were removed: %d", n)
	}
	if n := g.number(`select count(*) from audit where action = 'user.edit' and after @> '{"fields":["opt_outs"]}'`); n != 1 {
		t.Errorf("%d changes are recorded", n)
	}
	limited.get("/users/import").is(http.StatusForbidden)
	limited.get("/users").is(200).hasNot(`href="/users/import"`)
	g.as(staff.Marketer).get("/users").is(200).has(`href="/users/import"`)
}
