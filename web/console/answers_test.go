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
	b.post(shell.TemplateURL(d.ID)+"/stock", url.Values{"stock": {"2147483648"}, "version": {"2"}}).is(422).has("1,000,000,000").hasNot("whole number")
	b.post("/channels/sms/rate", url.Values{"rate_per_second": {large}}).is(422).has("1,000,000").hasNot("whole number")
	b.post("/campaigns", campaignForm("rate_per_second", large)).is(422).has("1,000,000").hasNot("whole number")
	b.post("/shops/10/limits", url.Values{"approval_above": {large}}).is(422).has("must be at most 2,147,483,646")
	if template.MaxStock != 1_000_000_000 {
		t.Error("the most is another")
	}
}
