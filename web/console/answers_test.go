package console_test

import (
	"net/url"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// Pages of staff who are limited to shops make no statement about other shops.
func TestPagesOfWhoHasSomeShops(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 60)
	g.Fire(d, 12, consoletest.Takes)
	b, all := g.As(staff.Marketer, 11), g.As(staff.Marketer)
	all.Get("/users/1001").Is(200).Has("Moon cake night", "1 unread", "This customer has no coupons.")
	b.Get("/users/1001").Is(200).Has("Nothing is reserved in your shops.", "This customer has no coupons of your shops.", "0 unread").HasNot("Moon cake night")
	all.Get("/shops").Is(200).Has("/shops/new")
	b.Get("/shops").Is(200).HasNot("/shops/new")
	b.Get("/templates/new").Is(200).HasNot("/shops/new")
}

// The error about a number that is too large names the maximum.
func TestLargeNumbersAreToldTheMost(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	b := g.As(staff.Admin)
	const large = "999999999999"
	b.Post(shell.TemplateURL(d.ID)+"/stock", url.Values{"stock": {"2147483648"}, "version": {"2"}}).Is(422).Has("1,000,000,000").HasNot("whole number")
	b.Post("/channels/sms/rate", url.Values{"rate_per_second": {large}}).Is(422).Has("1,000,000").HasNot("whole number")
	b.Post("/campaigns", consoletest.CampaignForm("rate_per_second", large)).Is(422).Has("1,000,000").HasNot("whole number")
	b.Post("/shops/10/limits", url.Values{"approval_above": {large}}).Is(422).Has("must be at most 2,147,483,646")
	if template.MaxStock != 1_000_000_000 {
		t.Error("the most is another")
	}
}
