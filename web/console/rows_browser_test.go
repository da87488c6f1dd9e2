package console

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

// The enter key in a field asks for the estimate; it takes no condition away.
func TestEnterKeepsTheConditionsInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into segments (id, name, kind, rule, created_by) overriding system value
		values (41, 'Gold', 'rules', '{"all":[{"field":"attribute","name":"tier","op":"is","values":["gold"]}]}', 'staff:9 Zoë')`)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	for _, path := range []string{"/segments/new", "/segments/41/edit"} {
		b.open(g.server.URL + path)
		if path == "/segments/new" {
			b.press("#segment", "Condition")
			within(t, "the condition", func() bool { return evaluate[bool](b, `!!document.getElementById("f-r.0.name")`) })
		}
		for _, field := range []string{"f-name", "f-r.0.name", "f-r.0.value"} {
			within(t, field, func() bool {
				return evaluate[bool](b, fmt.Sprintf(`!!document.getElementById(%q) && document.readyState === "complete"`, field))
			})
			evaluate[chromedp.Void](b, fmt.Sprintf(`(() => { const e = document.getElementById(%q); e.focus(); e.value = e.value || "x"; })()`, field))
			b.replaced("#segment", func() { b.types(kb.Enter) })
			if !evaluate[bool](b, `!!document.getElementById("f-r.0.name")`) {
				t.Fatalf("the condition is gone after enter in %s of %s", field, path)
			}
		}
		b.accessible(path)
	}
}

// What stands in a row can be used with a mouse, although the whole row is a link.
func TestControlsOfRowsCanBeHitInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 60)
	g.fire(d, 12, takes)
	g.exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at) values ($1, 1001, 1, 'claim', now(), now() + interval '1 day')`, d.ID)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Admin))
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.EmulateViewport(width, 800))
		for _, path := range []string{"/templates", "/coupons", "/deliveries", "/shops", "/staff"} {
			b.open(g.server.URL + path)
			b.sees("#results, main", "")
			if lost := evaluate[string](b, `[...document.querySelectorAll("tr[data-row] :is(input, button, select, a:not(.row-link))")].filter(e => e.checkVisibility()).filter(e => {
				e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect();
				return !e.contains(document.elementFromPoint(r.x + Math.min(r.width / 2, 8), r.y + r.height / 2)); }).map(e => e.outerHTML).join("\n")`); lost != "" {
				t.Errorf("%s at %d: the row's link covers\n%s", path, width, lost)
			}
		}
		b.open(g.server.URL + "/templates")
		b.sees("h1", "Templates")
		b.do(chromedp.Click(chromedp.CSS(`tr[data-row] .tick input`)))
		if !evaluate[bool](b, `document.querySelector("tr[data-row] .tick input").checked && location.pathname === "/templates"`) {
			t.Errorf("a click on the box at %d does not tick it", width)
		}
	}
}

// What cannot be deleted now offers no button that would delete it.
func TestUsedSegmentOffersNoDelete(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into segments (id, name, kind, rule, created_by) overriding system value values (41, 'Gold', 'rules', '{"all":[]}', 'staff:9 Zoë')`)
	b := g.as(staff.Marketer)
	b.get("/segments/41/delete").is(200).has("This cannot be undone", `type="submit"`)
	b.post("/campaigns", campaignForm("audience", "segment_id:41")).is(303)
	g.exec(`update campaigns set state = 'scheduled'`)
	b.get("/segments/41/delete").is(200).has("uses it, so it cannot be deleted now").hasNot("This cannot be undone", "is-danger")
	b.post("/segments/41/delete", url.Values{}).is(303)
}
