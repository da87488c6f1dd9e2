package console_test

import (
	"fmt"
	"html"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// The page of a busy customer is at most three screens of a phone high: a summary, the newest lines of the timeline, and closed
// parts. A press shows older lines in place, each day under one heading; without scripts the same link leads to them.
func TestPageOfABusyCustomerInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 150*time.Minute)
	g.Exec(`insert into users (id, name, email, phone, attributes) values (1001, 'Ada Lovelace', 'ada@example.com', '+8613800138000', '{"tier": "gold", "branch": "Harbour"}')`)
	g.Book(d, 1001, delivery.App, 5, 60)
	for range 11 {
		g.Gives(d, 1001)
	}
	g.Exec(`insert into orders (shop_number, order_id, user_id, currency, amount, ordered_at) select 10, 'P-' || n, 1001, 'CNY', 12000, now() - n * interval '5 hours' from generate_series(1, 40) n`)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
	b.Open(g.Server.URL + "/users/1001")
	b.Sees(".worth", "Next reminder", "in 1 h", "App · ", d.Name, "Coupons used", "of 11 received", "Orders", "40", "¥4,800")
	if high := consoletest.Evaluate[int](b, `document.documentElement.scrollHeight`); high > 2532 {
		t.Errorf("the page is %d pixels high", high)
	}
	lines := func() int { return consoletest.Evaluate[int](b, `document.querySelectorAll("#timeline .step").length`) }
	if n := lines(); n != 7 {
		t.Errorf("%d lines of the timeline are shown at first", n)
	}
	b.Accessible("a busy customer")
	b.Tappable("a busy customer")
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("#timeline-more").focus()`)
	b.Click("#timeline-more")
	consoletest.Within(t, "older lines", func() bool { return lines() == 27 })
	consoletest.Within(t, "the focus on the link to still older lines", func() bool {
		return consoletest.Evaluate[bool](b, `document.activeElement.id === "timeline-more"`)
	})
	if consoletest.Evaluate[bool](b, `(() => { const days = [...document.querySelectorAll(".timeline-day")].map(e => e.textContent); return days.length !== new Set(days).size; })()`) {
		t.Error("a day has two headings")
	}
	m := g.As(staff.Marketer)
	first := m.Get("/users/1001").Is(200)
	older := html.UnescapeString(consoletest.Between(first.Body, `id="timeline-more" href="`, `"`))
	m.Get(older).Is(200).Has("Show the newest", "P-10", "Show 20 more")
}

// Every kind of control has the same ring while it has the focus: two pixels, with a contrast of three to one, in both themes.
func TestRingOfTheFocusInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	for _, theme := range []string{"light", "dark"} {
		b.Open(g.Server.URL + "/shops")
		wrong := consoletest.Evaluate[string](b, fmt.Sprintf(`(() => {
			document.documentElement.dataset.theme = %q;
			const main = document.querySelector("main"), light = (colour) => {
				const [r, g, b] = colour.match(/[\d.]+/g).map((v) => v / 255).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
				return .2126 * r + .7152 * g + .0722 * b;
			};
			main.innerHTML = '<a href="/">a</a><button class="button">b</button><button class="button is-primary">b</button><input value="i"><input type="checkbox"><input type="radio"><input type="file">' +
				'<select><option>o</option></select><textarea></textarea><details><summary>s</summary></details>';
			return [...main.querySelectorAll("a, button, input, select, textarea, summary")].map((e) => {
				e.focus();
				const ring = getComputedStyle(e), [x, y] = [light(ring.outlineColor), light(getComputedStyle(document.body).backgroundColor)];
				const contrast = (Math.max(x, y) + .05) / (Math.min(x, y) + .05);
				return ring.outlineStyle === "solid" && parseFloat(ring.outlineWidth) >= 2 && contrast >= 3 ? "" : e.outerHTML + " " + ring.outline + " " + contrast;
			}).join("");
		})()`, theme))
		if wrong != "" {
			t.Errorf("%s: %s", theme, wrong)
		}
	}
}

// The drop that is open, or else the next one, leads the first page: it is the first and the largest.
func TestDropThatLeadsTheFirstPageInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	later, next := g.Published(10, 5*time.Hour), g.Published(10, 2*time.Hour)
	sold := g.Published(10, 3*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	leads := func(id int64, what string) {
		t.Helper()
		b.Open(g.Server.URL + "/")
		if first := consoletest.Evaluate[string](b, `document.querySelector(".today-drops > li").id`); first != fmt.Sprintf("drop-%d", id) {
			t.Errorf("%s does not lead, but %s", what, first)
		}
	}
	leads(next.ID, "the next drop")
	if !consoletest.Evaluate[bool](b, `(() => {
		const size = (e, of) => parseFloat(getComputedStyle(e.querySelector(of)).fontSize), [lead, ...others] = document.querySelectorAll(".today-drops > li");
		return others.length === 2 && others.every((e) => size(lead, ".drop-line") >= 1.3 * size(e, ".drop-line") && size(lead, ".drop-when strong") >= 1.8 * size(e, ".drop-when strong"));
	})()`) {
		t.Error("the first drop is no larger than the others")
	}
	g.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 hour', issued = stock where id = $1`, sold.ID)
	leads(next.ID, "the next drop beside one that is sold out")
	g.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '10 minutes' where id = $1`, later.ID)
	leads(later.ID, "the open drop")
}
