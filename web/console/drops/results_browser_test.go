package drops_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// overBars are the texts of the table that lie over a bar, and edge is how far the sum is from the edge of the card.
const overBars = `[...document.querySelectorAll("#drops .mini-bar")].flatMap((bar) => { const b = bar.getBoundingClientRect();
	return [...document.querySelectorAll("#drops tbody :is(span, small, a, strong)")].filter((e) => !e.contains(bar) && [...e.getClientRects()].some((r) =>
		r.width > 1 && r.left < b.right - 1 && r.right > b.left + 1 && r.top < b.bottom - 1 && r.bottom > b.top + 1)).map((e) => e.textContent.trim()); }).join(" | ")`

const edge = `document.querySelector("#drops tfoot th").getBoundingClientRect().left - document.querySelector("#drops").getBoundingClientRect().left`

// On a phone no text of the results lies over a bar, and the sum has the margin of the rows.
func TestResultsOnAPhone(t *testing.T) {
	g := consoletest.New(t)
	for i, d := range []int64{g.Published(10, 3*time.Hour).ID, g.Published(10, 4*time.Hour).ID} {
		g.Exec(`update templates set opens_at = opens_at - interval '9 days', closes_at = closes_at - interval '9 days', stock = 1200, issued = 1100 + $2, returned = 30, hold_out_percent = 0 where id = $1`, d, i)
		g.Exec(`insert into claim_seconds (template_id, second, issued) select id, opens_at + interval '2 hours', 1100 from templates where id = $1`, d)
		g.Exec(`insert into coupon_tallies (template_id, used, discounted) values ($1, 640, 1234567)`, d)
		g.Exec(`update slots set state = 'finished', fired_at = now() - interval '9 days', finished_at = now() - interval '9 days' where template_id = $1`, d)
		g.Exec(`insert into slot_results (slot_id, channel, reserved, sent, skipped, expired, dead, late) select id, 1, 2000, 1804, 96, 60, 40, '{"7": 1804}' from slots where template_id = $1 and slot = 1`, d)
	}
	b := consoletest.NewTab(t)
	b.Do(chromedp.EmulateViewport(390, 844))
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/results?series=issued")
	if over := consoletest.Evaluate[string](b, overBars); over != "" {
		t.Errorf("over a bar lie: %s", over)
	}
	if from := consoletest.Evaluate[float64](b, edge); from < 12 {
		t.Errorf("the sum is %.0f px from the edge", from)
	}
}
