package audience_test

import (
	"net/http"
	"net/url"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// Viewers and staff of some shops see contacts masked on every page. Members who may change users
// of a shop can show the contacts of one user, which is recorded.
func TestContactsAreForStaffOfAllShops(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, name, email, phone, attributes, opt_outs) values (7, 'Ann', 'mia@example.com', '+8613800138042', '{"second":"mia.two@example.org"}', 2)`)
	g.Exec(`insert into audit (actor, action, object_kind, object_id, after) values ('staff:1 Ada', 'channel.test', 'channel', 'email', '{"to":"mia@example.com"}')`)
	whole, viewer, limited := g.As(staff.Marketer), g.As(staff.Viewer), g.As(staff.Marketer, 10)
	secret := []string{"mia@", "mia.two", "138001380"}
	whole.Get("/users?q=7").Is(200).Has("mia@example.com", "+8613800138042")
	whole.Get("/users/7").Is(200).Has("mia@example.com", "mia.two@example.org").HasNot("Show contacts")
	for who, b := range map[string]*consoletest.Browser{"viewer": viewer, "limited": limited} {
		t.Run(who, func(t *testing.T) {
			for _, page := range []string{"/users?q=7", "/users?q=Ann", "/users/7", "/audit", "/audit.csv"} {
				b.Get(page).Is(200).HasNot(secret...)
			}
			b.Get("/users?q=7").Is(200).Has("m…@e…", "…42")
			// A contact cannot be guessed letter by letter: only a complete contact finds its user.
			b.Get("/users?q=mia@example").Is(200).HasNot("m…@e…")
			b.Get("/users?q=%2B86138001380").Is(200).HasNot("…42")
			b.Get("/users?q=mia@example.com").Is(200).Has("m…@e…")
			b.Get("/users?q=%2B8613800138042").Is(200).Has("…42")
		})
	}
	viewer.Get("/users/7").Is(200).Has("Contacts are masked").HasNot("Show contacts")
	viewer.Post("/users/7/contacts", url.Values{}).Is(http.StatusForbidden)
	limited.Get("/users.csv?q=Ann").Is(200).Has("m…@e…").HasNot(secret...)
	if n := g.Number(`select count(*) from audit where action = 'user.show_contacts'`); n != 0 {
		t.Errorf("%d looks are recorded before any", n)
	}
	limited.Get("/users/7").Is(200).Has("Show contacts")
	limited.Do("POST", "/users/7/contacts", url.Values{}).Is(200).Has("mia@example.com", "+8613800138042")
	if n := g.Number(`select count(*) from audit where action = 'user.show_contacts' and object_id = '7' and actor like 'staff:%'`); n != 1 {
		t.Errorf("%d looks are recorded", n)
	}
	limited.Get("/users/7").Is(200).HasNot(secret...)
}

// Staff of some shops can turn channels off, and can change no other field of a user.
func TestStaffOfSomeShopsAddOptOuts(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, name, email, opt_outs) values (7, 'Ann', 'mia@example.com', 2)`)
	limited := g.As(staff.Marketer, 10)
	limited.Get("/users/7/edit").Is(200).Has("you can turn channels off", "disabled").HasNot("mia@", `name="email"`, `name="name"`)
	limited.Post("/users/7/edit", url.Values{"off": {"sms"}, "email": {"other@example.com"}, "name": {"Bob"}, "timezone": {"UTC"}}).To("/users/7")
	if n := g.Number(`select count(*) from users where id = 7 and name = 'Ann' and email = 'mia@example.com' and timezone = '' and opt_outs = 2 | 4`); n != 1 {
		t.Error("the user was changed otherwise")
	}
	limited.Post("/users/7/edit", url.Values{}).To("/users/7")
	if n := g.Number(`select opt_outs from users where id = 7`); n != 6 {
		t.Errorf("opt-outs were removed: %d", n)
	}
	if n := g.Number(`select count(*) from audit where action = 'user.edit' and after @> '{"fields":["opt_outs"]}'`); n != 1 {
		t.Errorf("%d changes are recorded", n)
	}
	limited.Get("/users/import").Is(http.StatusForbidden)
	limited.Get("/users").Is(200).HasNot(`href="/users/import"`)
	g.As(staff.Marketer).Get("/users").Is(200).Has(`href="/users/import"`)
}
