package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// shown fills a form with the values that the page at path shows, and with the typed values.
func shown(a consoletest.Answer, names []string, typed ...string) url.Values {
	form := url.Values{}
	for _, name := range names {
		form.Set("was_"+name, a.Field("was_"+name))
		form.Set(name, a.Field("was_"+name))
	}
	for i := 0; i < len(typed); i += 2 {
		form.Set(typed[i], typed[i+1])
	}
	return form
}

// Two members who change different fields do not undo each other's changes. A concurrent change of
// the same field is shown with its stored value, and can be overwritten.
func TestTwoPeopleEditOneUser(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, name, email, opt_outs) values (7, 'Ann', 'ann@example.com', 0)`)
	b := g.As(staff.Marketer)
	fields := []string{"name", "email", "phone", "locale", "timezone", "quiet_from", "quiet_to", "off_app", "off_email", "off_sms", "off_webpush", "off_webhook"}
	page := b.Get("/users/7/edit").Is(200)
	b.Post("/users/7/edit", shown(page, fields, "email", "ann@new.example", "off", "sms")).To("/users/7")
	b.Post("/users/7/edit", shown(page, fields, "phone", "+8613800138000")).To("/users/7")
	if n := g.Number(`select count(*) from users where email = 'ann@new.example' and phone = '+8613800138000' and opt_outs = 4`); n != 1 {
		t.Fatal("the second form undid the first")
	}
	mine := shown(page, fields, "email", "ann@mine.example", "name", "Anne")
	page = b.Post("/users/7/edit", mine).Is(http.StatusConflict).Has("was changed to “ann@new.example” in the meantime", `value="ann@mine.example"`, `value="Anne"`)
	again := shown(page, fields, "email", "ann@mine.example", "name", "Anne", "off", "sms")
	b.Post("/users/7/edit", again).To("/users/7")
	if n := g.Number(`select count(*) from users where email = 'ann@mine.example' and name = 'Anne' and opt_outs = 4`); n != 1 {
		t.Fatal("who insists is not heard")
	}
}

func TestTwoPeopleEditOneMember(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	g.Shop(10)
	g.Shop(11)
	b.Post("/staff", consoletest.MemberTyped("ada@example.com", "marketer")).To("/staff/2")
	fields := []string{"email", "name", "role", "shops", "disabled"}
	page := b.Get("/staff/2").Is(200)
	b.Post("/staff/2", shown(page, fields, "role", "viewer", "disabled", "1")).To("/staff")
	b.Post("/staff/2", shown(page, fields, "name", "Ada Okafor")).To("/staff")
	b.Get("/staff/2").Is(200).Has("Ada Okafor", `name="disabled" value="1" checked`, `name="was_role" value="viewer"`)
	b.Post("/staff/2", shown(page, fields, "role", "operator")).Is(http.StatusConflict).Has("was changed to “Viewer” in the meantime")
}

func TestTwoPeopleEditOneShop(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := g.As(staff.Marketer)
	fields := []string{"name", "timezone"}
	page := b.Get("/shops/10").Is(200)
	b.Post("/shops/10", shown(page, fields, "name", "Tea")).To("/shops")
	b.Post("/shops/10", shown(page, fields, "timezone", "UTC")).To("/shops")
	b.Get("/shops/10").Is(200).Has(`value="Tea"`, `<option value="UTC" selected>`)
	b.Post("/shops/10", shown(page, fields, "name", "Coffee")).Is(http.StatusConflict).Has("was changed to “Tea” in the meantime", `value="Coffee"`)
}

func TestTwoPeopleEditOneCampaign(t *testing.T) {
	g := consoletest.New(t)
	mine, theirs := g.As(staff.Marketer), g.As(staff.Marketer)
	page := mine.Post("/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther).Header.Get("Location") + "/edit"
	theirs.Post(page, consoletest.CampaignForm("version", "1", "name", "Theirs")).Is(http.StatusSeeOther)
	form := consoletest.CampaignForm("version", "1", "name", "Mine")
	a := mine.Post(page, form).Is(http.StatusConflict).Has("This was changed in the meantime", "The marketer changed this", "Theirs", "Mine", "Use mine", "Use theirs")
	form.Set("version", a.Field("version"))
	form.Set("again", "1")
	mine.Post(page, form).Is(200).Has(`value="Mine"`, fmt.Sprintf(`name="version" value=%q`, a.Field("version")))
	form.Del("again")
	mine.Post(page, form).Is(http.StatusSeeOther)
	if n := g.Number(`select count(*) from campaigns where name = 'Mine'`); n != 1 {
		t.Error("mine is not stored")
	}
}

func TestCampaignsAndCouponsAsFiles(t *testing.T) {
	g := consoletest.New(t)
	d, other := g.Published(10, 2*time.Hour), g.Published(11, 2*time.Hour)
	b, limited := g.As(staff.Marketer), g.As(staff.Viewer, 11)
	g.Wrote("=Autumn", 10, true, 7, 8)
	g.Wrote("Winter", 11, true, 7)
	if rows := consoletest.RowsOf(b.Get("/campaigns.csv?q=autumn").Is(200)); len(rows) != 2 || rows[1][3] != "'=Autumn" || rows[1][5] != "app" {
		t.Errorf("%q", rows)
	}
	if rows := consoletest.RowsOf(limited.Get("/campaigns.csv").Is(200)); len(rows) != 2 || rows[1][3] != "Winter" {
		t.Errorf("%q", rows)
	}
	b.Get("/campaigns?q=autumn").Is(200).Has(`href="/campaigns.csv?q=autumn"`)
	for range shell.ExportPage + 3 {
		g.Gives(d, 7)
	}
	g.Gives(other, 7)
	if rows := consoletest.RowsOf(b.Get("/coupons.csv?q=7&state=unused").Is(200)); len(rows) != shell.ExportPage+5 || rows[1][4] != "7" {
		t.Errorf("%d rows %q", len(rows), rows[1])
	}
	if rows := consoletest.RowsOf(limited.Get("/coupons.csv?q=7").Is(200)); len(rows) != 2 {
		t.Errorf("%q", rows)
	}
	b.Get("/coupons.csv").To("/coupons")
	b.Get("/coupons?q=7").Is(200).Has(`href="/coupons.csv?q=7"`)
}

// A template's page shows the values before and after each change, and links to
// failures.
func TestHistoryShowsBeforeAndAfter(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, 48*time.Hour)
	b := g.As(staff.Marketer)
	form := g.TypedForm(48 * time.Hour)
	form.Set("version", b.Get(shell.TemplateURL(d.ID)+"/edit").Field("version"))
	form.Set("name", "Moon cake evening")
	b.Post(shell.TemplateURL(d.ID)+"/edit", form).To(shell.TemplateURL(d.ID))
	b.Get(shell.TemplateURL(d.ID)).Is(200).Has("What changed", "Before", "After", "Moon cake night", "Moon cake evening")
	if n := g.Number(`select count(*) from audit where action = 'template.edit'`); n != 1 {
		t.Errorf("%d records", n)
	}
}
