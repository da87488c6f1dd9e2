package console

import (
	"net/url"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// The review of a published template says what saving does to its reminders.
func TestReviewOfAPublishedTemplate(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 60, 5)
	b := g.as(staff.Marketer)
	page := b.get(templateURL(d.ID) + "/edit").is(200).has("so changes take effect at once").hasNot("Users see it only after")
	form := url.Values{"template": {page.field("template")}, "version": {page.field("version")}}
	for name, value := range valuesOf(d) {
		form.Set(name, value)
	}
	b.post("/templates/preview", form).is(200).hasNot("This moves the opening")
	opens, _ := shell.TypedTime(g.now().Add(30*time.Minute), berlin(t))
	form.Set("opens_at", opens)
	b.post("/templates/preview", form).is(200).has("This moves the opening", "2 reminders are booked", "1 reminder would be in the past: it is sent at once", "are reminded again")
	g.as(staff.Marketer, 11).post("/templates/preview", form).is(200).hasNot("2 reminders are booked")
	b.get("/templates/new").is(200).has("Users see it only after it is published.")
}

// Whoever has no profile can have reserved all the same.
func TestNumberWithoutAProfileIsOffered(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name) values (1001, 'Ada Lovelace')`)
	b := g.as(staff.Viewer)
	b.get("/users?q=777777").is(200).has(`href="/users/777777"`, "There is no profile with the number 777777").hasNot("Nobody found")
	b.get("/users?q=1001").is(200).has("Ada Lovelace").hasNot("There is no profile")
	b.get("/users?q=nobody").is(200).has("Nobody found").hasNot("There is no profile")
}

// What somebody in charge of some shops is told is no claim about the others.
func TestPagesOfWhoHasSomeShops(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 60)
	g.fire(d, 12, takes)
	b, all := g.as(staff.Marketer, 11), g.as(staff.Marketer)
	all.get("/users/1001").is(200).has("Moon cake night", "1 unread", "This user has no coupons.")
	b.get("/users/1001").is(200).has("Nothing is reserved in your shops.", "This user has no coupons of your shops.", "0 unread").hasNot("Moon cake night")
	all.get("/shops").is(200).has("/shops/new")
	b.get("/shops").is(200).hasNot("/shops/new")
	b.get("/templates/new").is(200).hasNot("/shops/new")
}

// A number that is too large is told what is the most.
func TestLargeNumbersAreToldTheMost(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	b := g.as(staff.Admin)
	const large = "999999999999"
	b.post(templateURL(d.ID)+"/stock", url.Values{"stock": {"2147483648"}, "version": {"2"}}).is(422).has("1,000,000,000").hasNot("whole number")
	b.post("/channels/sms/rate", url.Values{"rate_per_second": {large}}).is(422).has("1,000,000").hasNot("whole number")
	b.post("/campaigns", campaignForm("rate_per_second", large)).is(422).has("1,000,000").hasNot("whole number")
	b.post("/shops/10/limits", url.Values{"approval_above": {large}}).is(422).has("must be at most 2,147,483,646")
	if template.MaxStock != 1_000_000_000 {
		t.Error("the most is another")
	}
}
