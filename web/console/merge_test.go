package console

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// shown fills a form with what the page at path shows, and with what is typed.
func shown(a answer, names []string, typed ...string) url.Values {
	form := url.Values{}
	for _, name := range names {
		form.Set("was_"+name, a.field("was_"+name))
		form.Set(name, a.field("was_"+name))
	}
	for i := 0; i < len(typed); i += 2 {
		form.Set(typed[i], typed[i+1])
	}
	return form
}

// Two people who change different things do not undo each other; who changes
// the same thing is told what it is now, and may insist.
func TestTwoPeopleEditOneUser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name, email, opt_outs) values (7, 'Ann', 'ann@example.com', 0)`)
	b := g.as(staff.Marketer)
	fields := []string{"name", "email", "phone", "locale", "timezone", "quiet_from", "quiet_to", "off_app", "off_email", "off_sms", "off_webpush", "off_webhook"}
	page := b.get("/users/7/edit").is(200)
	b.post("/users/7/edit", shown(page, fields, "email", "ann@new.example", "off", "sms")).to("/users/7")
	b.post("/users/7/edit", shown(page, fields, "phone", "+8613800138000")).to("/users/7")
	if n := g.number(`select count(*) from users where email = 'ann@new.example' and phone = '+8613800138000' and opt_outs = 4`); n != 1 {
		t.Fatal("the second form undid the first")
	}
	mine := shown(page, fields, "email", "ann@mine.example", "name", "Anne")
	page = b.post("/users/7/edit", mine).is(http.StatusConflict).has("somebody has changed this to “ann@new.example” meanwhile", `value="ann@mine.example"`, `value="Anne"`)
	again := shown(page, fields, "email", "ann@mine.example", "name", "Anne", "off", "sms")
	b.post("/users/7/edit", again).to("/users/7")
	if n := g.number(`select count(*) from users where email = 'ann@mine.example' and name = 'Anne' and opt_outs = 4`); n != 1 {
		t.Fatal("who insists is not heard")
	}
}

func TestTwoPeopleEditOneMember(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	g.shop(10)
	g.shop(11)
	b.post("/staff", memberTyped("ada@example.com", "marketer")).to("/staff/2")
	fields := []string{"email", "name", "role", "shops", "disabled"}
	page := b.get("/staff/2").is(200)
	b.post("/staff/2", shown(page, fields, "role", "viewer", "disabled", "1")).to("/staff")
	b.post("/staff/2", shown(page, fields, "name", "Ada Okafor")).to("/staff")
	b.get("/staff/2").is(200).has("Ada Okafor", `name="disabled" value="1" checked`, `name="was_role" value="viewer"`)
	b.post("/staff/2", shown(page, fields, "role", "operator")).is(http.StatusConflict).has("somebody has changed this to “Viewer” meanwhile")
}

func TestTwoPeopleEditOneShop(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := g.as(staff.Marketer)
	fields := []string{"name", "timezone"}
	page := b.get("/shops/10").is(200)
	b.post("/shops/10", shown(page, fields, "name", "Tea")).to("/shops")
	b.post("/shops/10", shown(page, fields, "timezone", "UTC")).to("/shops")
	b.get("/shops/10").is(200).has(`value="Tea"`, `<option value="UTC" selected>`)
	b.post("/shops/10", shown(page, fields, "name", "Coffee")).is(http.StatusConflict).has("somebody has changed this to “Tea” meanwhile", `value="Coffee"`)
}

func TestTwoPeopleEditOneCampaign(t *testing.T) {
	g := newRig(t)
	mine, theirs := g.as(staff.Marketer), g.as(staff.Marketer)
	page := mine.post("/campaigns", campaignForm()).is(http.StatusSeeOther).header.Get("Location") + "/edit"
	theirs.post(page, campaignForm("version", "1", "name", "Theirs")).is(http.StatusSeeOther)
	form := campaignForm("version", "1", "name", "Mine")
	a := mine.post(page, form).is(http.StatusConflict).has("Somebody was faster", "The marketer changed this", "Theirs", "Mine", "Take mine", "Take theirs")
	form.Set("version", a.field("version"))
	form.Set("again", "1")
	mine.post(page, form).is(200).has(`value="Mine"`, fmt.Sprintf(`name="version" value=%q`, a.field("version")))
	form.Del("again")
	mine.post(page, form).is(http.StatusSeeOther)
	if n := g.number(`select count(*) from campaigns where name = 'Mine'`); n != 1 {
		t.Error("mine is not stored")
	}
}

func TestCampaignsAndCouponsAsFiles(t *testing.T) {
	g := newRig(t)
	d, other := g.published(10, 2*time.Hour), g.published(11, 2*time.Hour)
	b, limited := g.as(staff.Marketer), g.as(staff.Viewer, 11)
	g.wrote("=Autumn", 10, true, 7, 8)
	g.wrote("Winter", 11, true, 7)
	if rows := rowsOf(b.get("/campaigns.csv?q=autumn").is(200)); len(rows) != 2 || rows[1][3] != "'=Autumn" || rows[1][5] != "app" {
		t.Errorf("%q", rows)
	}
	if rows := rowsOf(limited.get("/campaigns.csv").is(200)); len(rows) != 2 || rows[1][3] != "Winter" {
		t.Errorf("%q", rows)
	}
	b.get("/campaigns?q=autumn").is(200).has(`href="/campaigns.csv?q=autumn"`)
	for range shell.ExportPage + 3 {
		g.gives(d, 7)
	}
	g.gives(other, 7)
	if rows := rowsOf(b.get("/coupons.csv?q=7&state=unused").is(200)); len(rows) != shell.ExportPage+5 || rows[1][4] != "7" {
		t.Errorf("%d rows %q", len(rows), rows[1])
	}
	if rows := rowsOf(limited.get("/coupons.csv?q=7").is(200)); len(rows) != 2 {
		t.Errorf("%q", rows)
	}
	b.get("/coupons.csv").to("/coupons")
	b.get("/coupons?q=7").is(200).has(`href="/coupons.csv?q=7"`)
}

// A template's page tells what was before and after, and leads to what went wrong.
func TestHistoryShowsBeforeAndAfter(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, 48*time.Hour)
	b := g.as(staff.Marketer)
	form := g.typedForm(48 * time.Hour)
	form.Set("version", b.get(shell.TemplateURL(d.ID)+"/edit").field("version"))
	form.Set("name", "Moon cake evening")
	b.post(shell.TemplateURL(d.ID)+"/edit", form).to(shell.TemplateURL(d.ID))
	b.get(shell.TemplateURL(d.ID)).is(200).has("What changed", "Before", "After", "Moon cake night", "Moon cake evening")
	if n := g.number(`select count(*) from audit where action = 'template.edit'`); n != 1 {
		t.Errorf("%d records", n)
	}
}
