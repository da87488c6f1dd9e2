package drops_test

import (
	"net/url"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// The page of a drop that staff closed shows when it ended, and that the remaining coupons are not
// for sale.
func TestPageOfADropThatWasClosedEarly(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	b := g.As(staff.Admin)
	page := shell.TemplateURL(d.ID)
	b.Get(page).Is(200).Has("can still be claimed", "Closing").HasNot("Ended")
	g.Wait(70 * time.Minute)
	b.Post(page+"/close", url.Values{"reason": {"the truck is late"}}).To(page)
	ended, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
	g.Must(err)
	at := func(when time.Time) string { return g.Languages.Default().DateTime(when, consoletest.Berlin(t)) }
	b.Get(page+"?tab=coupons").Is(200).Has("Ended "+at(*ended.EndedAt), "planned: "+at(d.ClosesAt)).
		HasNot("can still be claimed", "lists of customers", "Give to a list", "Closing "+at(d.ClosesAt))
	b.Get(page+"?tab=claims").Is(200).Has("can no longer be claimed").HasNot("can still be claimed", "lists of customers", "Give to a list")
	b.Get(page+"?tab=live").Is(200).Has("Ended", at(*ended.EndedAt)).HasNot(at(d.ClosesAt))
}

// The remaining stock of a drop that ended in time can still be given away by staff.
func TestPageOfADropThatEnded(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	b := g.As(staff.Admin)
	page := shell.TemplateURL(d.ID)
	g.Wait(3 * time.Hour)
	b.Get(page).Is(200).Has("Ended "+g.Languages.Default().DateTime(d.ClosesAt, consoletest.Berlin(t)), "can only be granted to lists of customers now", "Give to a list").
		HasNot("planned:", "can still be claimed")
	if n, err := g.Templates.CloseEnded(t.Context(), 10); n != 0 || err != nil { // by the database's clock it runs
		t.Fatal(n, err)
	}
}

func TestPageOfADropThatWasCancelled(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, time.Hour)
	b := g.As(staff.Admin)
	page := shell.TemplateURL(d.ID)
	b.Post(page+"/cancel", url.Values{"reason": {"rain"}}).To(page)
	cancelled, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
	g.Must(err)
	b.Get(page+"?tab=claims").Is(200).Has("can no longer be claimed").HasNot("can still be claimed", "Give to a list")
	b.Get(page+"?tab=coupons").Is(200).Has("Closing", "Cancelled "+g.Languages.Default().DateTime(*cancelled.EndedAt, consoletest.Berlin(t))).HasNot("can still be claimed", "Give to a list")
}

// The page shows when and over which channels owners are notified of the expiry.
func TestNoticePlanOnThePage(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, time.Hour)
	b := g.As(staff.Viewer)
	page := shell.TemplateURL(d.ID)
	b.Get(page).Is(200).Has("Notify owners before expiry Never").HasNot("Notification channels")
	spec := d.Spec.WithNotices(template.NoticeDaysOf(3, 1, 0), template.ParseChannels("app", "email"))
	_, err := g.Templates.Edit(t.Context(), staff.System(), d.ID, template.Edition{Version: d.Version, Spec: spec})
	g.Must(err)
	b.Get(page).Is(200).Has("Notify owners before expiry 3 days before, 1 day before, on the last day", "Notification channels App, E-mail")
	b.Header.Set("Accept-Language", "zh-CN")
	b.Get(page).Is(200).Has("到期前提醒持有人 提前 3 天，提前 1 天，最后一天")
}
