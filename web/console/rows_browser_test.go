package console_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// The enter key in a field requests the estimate; it removes no condition.
func TestEnterKeepsTheConditionsInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'Gold', 'rules', '{"all":[{"field":"attribute","name":"tier","op":"is","values":["gold"]}]}', 'staff:9 Zoë')`)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	for _, path := range []string{"/segments/new", "/segments/41/edit"} {
		b.Open(g.Server.URL + path)
		if path == "/segments/new" {
			b.Press("#segment", "Condition")
			consoletest.Within(t, "the condition", func() bool { return consoletest.Evaluate[bool](b, `!!document.getElementById("f-r.0.name")`) })
		}
		for _, field := range []string{"f-name", "f-r.0.name", "f-r.0.value"} {
			consoletest.Within(t, field, func() bool {
				return consoletest.Evaluate[bool](b, fmt.Sprintf(`!!document.getElementById(%q) && document.readyState === "complete"`, field))
			})
			consoletest.Evaluate[chromedp.Void](b, fmt.Sprintf(`(() => { const e = document.getElementById(%q); e.focus(); e.value = e.value || "x"; })()`, field))
			b.Replaced("#segment", func() { b.Types(kb.Enter) })
			if there := `!!document.getElementById("f-r.0.name")`; !consoletest.Evaluate[bool](b, there) {
				t.Logf("no condition after enter in %s: %s", field, consoletest.Evaluate[string](b, `document.readyState + " " + location.href + " " + document.getElementById("segment")?.outerHTML`))
				consoletest.Within(t, "the condition after enter in "+field+" of "+path, func() bool { return consoletest.Evaluate[bool](b, there) })
			}
		}
		b.Accessible(path)
	}
}

// Controls in a row can be used with a mouse, although the whole row is a link.
func TestControlsOfRowsCanBeHitInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 60)
	g.Fire(d, 12, consoletest.Takes)
	g.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at) values ($1, 1001, 1, 'claim', now(), now() + interval '1 day')`, d.ID)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Admin))
	for _, width := range []int64{1280, 390} {
		b.Do(chromedp.EmulateViewport(width, 800))
		for _, path := range []string{"/templates", "/coupons", "/deliveries", "/shops", "/staff"} {
			b.Open(g.Server.URL + path)
			b.Sees("#results, main", "")
			if lost := consoletest.Evaluate[string](b, `[...document.querySelectorAll("tr[data-row] :is(input, button, select, a:not(.row-link))")].filter(e => e.checkVisibility()).filter(e => {
				e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect();
				return !e.contains(document.elementFromPoint(r.x + Math.min(r.width / 2, 8), r.y + r.height / 2)); }).map(e => e.outerHTML).join("\n")`); lost != "" {
				t.Errorf("%s at %d: the row's link covers\n%s", path, width, lost)
			}
		}
		b.Open(g.Server.URL + "/templates")
		b.Sees("h1", "Drops")
		b.Do(chromedp.Click(chromedp.CSS(`tr[data-row] .tick input`)))
		if !consoletest.Evaluate[bool](b, `document.querySelector("tr[data-row] .tick input").checked && location.pathname === "/templates"`) {
			t.Errorf("a click on the box at %d does not tick it", width)
		}
	}
}

// An object that cannot be deleted now offers no button that would delete it.
func TestUsedSegmentOffersNoDelete(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into segments (id, name, kind, rule, created_by) overriding system value values (41, 'Gold', 'rules', '{"all":[]}', 'staff:9 Zoë')`)
	b := g.As(staff.Marketer)
	b.Get("/segments/41/delete").Is(200).Has("This cannot be undone", `type="submit"`)
	b.Post("/campaigns", consoletest.CampaignForm("audience", "segment_id:41")).Is(303)
	g.Exec(`update campaigns set state = 'scheduled'`)
	b.Get("/segments/41/delete").Is(200).Has("uses it, so it cannot be deleted now").HasNot("This cannot be undone", "is-danger")
	b.Post("/segments/41/delete", url.Values{}).Is(303)
}
