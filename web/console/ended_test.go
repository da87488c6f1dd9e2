package console

import (
	"net/url"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// The page of a drop that staff closed says when it ended, and that nobody
// gets what is left.
func TestPageOfADropThatWasClosedEarly(t *testing.T) {
	g := newRig(t)
	d := g.published(10, time.Hour)
	b := g.as(staff.Admin)
	page := templateURL(d.ID)
	b.get(page).is(200).has("can still be claimed", "Closing").hasNot("Ended")
	g.wait(70 * time.Minute)
	b.post(page+"/close", url.Values{"reason": {"the truck is late"}}).to(page)
	ended, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
	g.must(err)
	at := func(when time.Time) string { return g.Languages.Default().DateTime(when, berlin(t)) }
	b.get(page).is(200).has("Ended "+at(*ended.EndedAt), "planned: "+at(d.ClosesAt), "can no longer be claimed").
		hasNot("can still be claimed", "lists of users", "Give to a list", "Closing "+at(d.ClosesAt))
	b.get(page+"/cockpit").is(200).has("Ended", at(*ended.EndedAt)).hasNot(at(d.ClosesAt))
}

// What is left of a drop that ended in time can still be given away by staff.
func TestPageOfADropThatEnded(t *testing.T) {
	g := newRig(t)
	d := g.published(10, time.Hour)
	b := g.as(staff.Admin)
	page := templateURL(d.ID)
	g.wait(3 * time.Hour)
	b.get(page).is(200).has("Ended "+g.Languages.Default().DateTime(d.ClosesAt, berlin(t)), "can only be granted to lists of users now", "Give to a list").
		hasNot("planned:", "can still be claimed")
	if n, err := g.Templates.CloseEnded(t.Context(), 10); n != 0 || err != nil { // by the database's clock it runs
		t.Fatal(n, err)
	}
}

func TestPageOfADropThatWasCancelled(t *testing.T) {
	g := newRig(t)
	d := g.published(10, time.Hour)
	b := g.as(staff.Admin)
	page := templateURL(d.ID)
	b.post(page+"/cancel", url.Values{"reason": {"rain"}}).to(page)
	b.get(page).is(200).has("can no longer be claimed", "Closing", "Cancelled "+g.Languages.Default().DateTime(g.now(), berlin(t))[:8]).hasNot("can still be claimed", "Give to a list")
}

// The page tells when owners are told of the expiry, and how.
func TestNoticePlanOnThePage(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, time.Hour)
	b := g.as(staff.Viewer)
	page := templateURL(d.ID)
	b.get(page).is(200).has("Notify owners before expiry Never").hasNot("Notification channels")
	spec := d.Spec.WithNotices(template.NoticeDaysOf(3, 1, 0), template.ParseChannels("app", "email"))
	_, err := g.Templates.Edit(t.Context(), staff.System(), d.ID, template.Edition{Version: d.Version, Spec: spec})
	g.must(err)
	b.get(page).is(200).has("Notify owners before expiry 3 days before, 1 day before, on the last day", "Notification channels App, E-mail")
	b.header.Set("Accept-Language", "zh-CN")
	b.get(page).is(200).has("到期前提醒持有人 提前 3 天，提前 1 天，最后一天")
}
