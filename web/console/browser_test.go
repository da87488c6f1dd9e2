package console

import (
	"context"
	_ "embed"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/views/stories"
)

// chosenStories are all of them, or, for who works on a page, those whose name
// begins as DROPBELL_TEST_STORIES says.
func chosenStories(t *testing.T) []stories.Story {
	only := os.Getenv("DROPBELL_TEST_STORIES")
	if only == "" {
		return stories.All()
	}
	list := slices.DeleteFunc(stories.All(), func(s stories.Story) bool { return !strings.HasPrefix(s.Name, only) })
	t.Logf("DROPBELL_TEST_STORIES: only %d stories", len(list))
	if len(list) == 0 {
		t.Fatal("no story begins like that")
	}
	return list
}

// Every page in every state: nothing blocked and nothing inaccessible in
// either theme and language, nothing wider than a phone in either language.
// Contrast depends on the theme and width on the language, so not every theme
// is looked at in every language, nor every rule in every look.
func TestEveryPageInTheBrowser(t *testing.T) {
	book, err := stories.NewBook()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(book.Handler())
	t.Cleanup(server.Close)
	const perTab = 60
	for _, look := range []struct {
		stories.Look
		rules  func(b *tab, what string)
		narrow bool
	}{
		{stories.Look{Theme: "light", Locale: "en"}, (*tab).accessible, true},
		{stories.Look{Theme: "dark", Locale: "zh-CN"}, (*tab).dressed, true},
	} {
		for i, some := range slices.Collect(slices.Chunk(chosenStories(t), perTab)) {
			t.Run(fmt.Sprint(look.Theme, " ", look.Locale, " ", i), func(t *testing.T) {
				t.Parallel()
				b := newTab(t)
				for _, s := range some {
					what := s.Name + " " + look.Theme + " " + look.Locale
					b.open(server.URL + s.Path(look.Look))
					look.rules(b, what)
					if !look.narrow {
						continue
					}
					b.do(chromedp.EmulateViewport(390, 844))
					b.narrow(what)
					b.do(chromedp.EmulateViewport(320, 700))
					b.narrow(what + " on a small phone")
					b.do(chromedp.EmulateViewport(1280, 800))
				}
			})
		}
	}
}

func TestADropFromBeginningToEnd(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.sees("main", "Welcome to Dropbell")
	b.click("#new")
	b.sees("h1", "New template")
	if evaluate[bool](b, `document.querySelector("#f-percent_off").checkVisibility()`) {
		t.Error("the percentage is asked for although the kind is another")
	}
	b.fill("#f-name", "Moon cake night")
	b.sees("#preview", "Moon cake night")
	b.next("2 · Discount")
	b.click(`input[name=kind][value=percent_off]`)
	b.fill("#f-percent_off", "20")
	b.fill("#f-max_off", "30")
	b.sees("#preview", "20% off", "at most CN¥30")
	b.next("3 · Times")
	opens := g.now().Add(3 * time.Hour)
	b.fill("#f-opens_at", opens.In(berlin(t)).Format("2006-01-02T15:04"))
	b.sees("#preview", "Reminders", "from")
	b.press("form", "Save as draft")
	b.sees("main", "2 things need your attention", "Closing: is required", "Stock: is required")
	b.fill("#f-closes_at", opens.Add(time.Hour).In(berlin(t)).Format("2006-01-02T15:04"))
	b.next("4 · Stock and claiming")
	b.fill("#f-stock", "1000")
	b.press("form", "Save as draft")
	b.sees("main", "The draft of “Moon cake night” has been saved.", "Not published yet")

	b.press("#drop-head", "Publish")
	b.sees("#dialog", "Publish “Moon cake night”?", "Users can see it")
	b.accessible("the dialog")
	b.press("#dialog", "Cancel")
	if evaluate[bool](b, `document.querySelector("#dialog").open`) {
		t.Error("the dialog stays open")
	}
	b.press("#drop-head", "Publish")
	b.fill("#dialog #f-reason", "the shop agreed")
	b.press("#dialog", "Publish")
	b.sees("main", "has been published", "Scheduled", "the shop agreed", "60 min")

	d, err := g.Templates.Template(t.Context(), staff.System(), 1)
	g.must(err)
	g.book(d, 1001, delivery.App, 5, 60)
	b.sees("#slot-12", "1")
	b.sees("#drop-stats", "2")

	b.press("#drop-head", "Move opening")
	b.sees("#dialog", "Move the opening of")
	b.fill("#dialog #f-opens_at", g.now().Add(30*time.Minute).In(berlin(t)).Format("2006-01-02T15:04"))
	b.sees("#blast", "2 reminders are booked.", "1 reminder would be in the past", "earlier than now planned")
	b.fill("#dialog #f-opens_at", g.now().Add(-time.Hour).In(berlin(t)).Format("2006-01-02T15:04"))
	b.press("#dialog .dialog-foot", "Move opening")
	b.sees("#dialog", "must lie in the future")
	b.fill("#dialog #f-opens_at", g.now().Add(50*time.Hour).In(berlin(t)).Format("2006-01-02T15:04"))
	b.press("#dialog .dialog-foot", "Move opening")
	b.sees("main", "now opens on", "moved the opening of")

	b.press("#drop-head", "Cancel drop")
	b.sees("#dialog", "The 2 waiting reminders are not sent.")
	g.exec(`update templates set state = 'closed', version = version + 1`)
	b.press("#dialog", "Cancel drop")
	b.sees("#dialog", "The template is closed. Nothing of it can change any more.")
	g.exec(`update templates set state = 'published', version = version + 1`)
	b.press("#dialog", "Cancel")
	b.press("#drop-head", "Cancel drop")
	b.press("#dialog .dialog-foot", "Cancel drop")
	b.sees("main", "“Moon cake night” is cancelled.", "Cancelled")
}

func TestLivePageInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 4*time.Hour)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(g.server.URL + templateURL(d.ID))
	b.sees("#drop-head", "Scheduled", "Opens in")
	before := b.text("#drop-head .ticker")
	within(t, "a tick of the countdown", func() bool { return b.text("#drop-head .ticker") != before })
	if evaluate[string](b, `document.querySelector("#drop-head time").title`) == "" {
		t.Error("the viewer's own time does not appear")
	}
	g.exec(`insert into bookings values ($1, 12, 0, 77)`, d.ID)
	b.sees("#slot-12", "77")
	b.click("[data-live-switch]")
	b.sees("[data-live-switch]", "Paused")
	within(t, "the end of the stream", func() bool { return g.WatchedParts() == 0 })
	g.exec(`update bookings set booked = 88`)
	b.click("[data-live-switch]")
	b.sees("#slot-12", "88")

	// A slot is being delivered, seen from the outside.
	g.exec(`update slots set state = 'sending', fired_at = due_at where template_id = $1 and slot = 12`, d.ID)
	g.exec(`insert into slot_results (slot_id, channel, reserved) select id, 0, 88 from slots where slot = 12`)
	g.exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_at, worthless_after, due, due_count, sent_count, dead_count)
		select 'reminder', id, template_id, 0, 1, 1000, due_at, opens_at, '', 88, 44, 2 from slots where slot = 12`)
	g.exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason) select id, n, 0, 'dead', 'refused' from batches, generate_series(1, 2) n`)
	b.sees("#slot-12", "Sending", "50%", "2 failed")
	if label := evaluate[string](b, `document.querySelector("#slot-12 .bar").getAttribute("aria-label")`); !strings.Contains(label, "44 delivered (50%), 42 on the way, 2 failed") {
		t.Errorf("the bar says %q", label)
	}
	b.sees("#drop-warnings", "2 reminders could not be delivered")
	b.accessible("the live page")

	b.expected = "htmx: htmx:sse:error"
	g.server.CloseClientConnections()
	g.server.Listener.Close()
	b.sees("main", "The live connection is lost.")
}

func TestRolesInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 4*time.Hour)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(g.server.URL + templateURL(d.ID))
	b.sees("#drop-head", "Scheduled")
	if text := b.text("#drop-head"); strings.Contains(text, "Cancel drop") || strings.Contains(text, "Move opening") {
		t.Errorf("a viewer is offered changes: %s", text)
	}
	if text := b.text(".sidebar"); strings.Contains(text, "API keys") || strings.Contains(text, "Stuck messages") {
		t.Errorf("a viewer is led to %s", text)
	}
	b.open(g.server.URL + "/staff")
	b.sees("main", "Not allowed", "An admin can change that.")
}

func TestWithoutScripts(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := newTab(t)
	b.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
	m := g.hire(staff.Marketer)
	b.open(g.server.URL + "/templates/new")
	b.do(chromedp.SendKeys(chromedp.CSS("#f-email"), m.Email), chromedp.SendKeys(chromedp.CSS("#f-password"), password))
	b.click("button.is-wide")
	b.sees("h1", "New template")
	b.sees("form.form", "1 · Basics", "2 · Discount", "3 · Times", "4 · Stock and claiming")
	if evaluate[bool](b, `[...document.querySelectorAll("[data-steps], [data-next], [data-back], #review, [data-fold]")].some(e => e.checkVisibility())`) {
		t.Error("what only scripts can use is shown")
	}
	set := func(selector, value string) {
		b.do(chromedp.SetValue(chromedp.CSS(selector), value))
	}
	opens := g.now().Add(5 * time.Hour).In(berlin(t))
	set("#f-name", "Without scripts")
	set("#f-amount_off", "5")
	set("#f-stock", "10")
	set("#f-opens_at", opens.Format("2006-01-02T15:04"))
	set("#f-closes_at", opens.Add(time.Hour).Format("2006-01-02T15:04"))
	b.click(".form-foot button[type=submit]")
	b.sees("main", "The draft of “Without scripts” has been saved.")
	b.click(`#drop-head a[href$="/publish"]`)
	b.sees("main", "Publish “Without scripts”?")
	b.click(`#confirm button[type=submit]`)
	b.sees("main", "has been published", "Scheduled")
	b.click(`#drop-head a[href$="/move"]`)
	set("#f-opens_at", opens.Add(time.Hour).Format("2006-01-02T15:04"))
	b.click(`noscript button`)
	b.sees("#blast", "1 h later than now planned")
	b.click(`#confirm .dialog-foot button[type=submit]`)
	b.sees("main", "now opens on")
	b.open(g.server.URL + "/templates?q=without")
	b.sees("#results", "Without scripts")
	b.open(g.server.URL + templateURL(1) + "/cancel")
	b.click(`#confirm button[type=submit]`)
	b.sees("main", "“Without scripts” is cancelled.")
}

func TestOnAPhone(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 4*time.Hour)
	g.book(d, 1001, delivery.App, 5)
	b := newTab(t)
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
	b.signIn(g, g.hire(staff.Admin))
	for _, path := range []string{"/", "/templates", templateURL(d.ID), templateURL(d.ID) + "/edit", "/users?q=1001", "/users/1001", "/channels", "/staff", "/keys", "/audit", "/account", "/shops", "/dead-messages"} {
		b.open(g.server.URL + path)
		b.narrow(path)
	}
	b.open(g.server.URL + "/")
	b.click(".tab-more summary")
	b.press(".tab-sheet", "Audit log")
	b.sees("h1", "Audit log")
}

func TestFiltersAndKeyboardInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.draft(10, 4*time.Hour)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("c"))
	b.sees("h1", "Campaigns")
	b.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("t"))
	b.sees("h1", "Templates")
	b.do(chromedp.KeyEvent("/"))
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "nothing like it"))
	b.sees("#results", "No matches")
	within(t, "the search, and only that, in the address", func() bool {
		q := evaluate[string](b, "location.search")
		return strings.HasSuffix(q, "nothing+like+it&sort=ahead") && !strings.Contains(q, "shop=")
	})
	b.press("#results", "Clear filters")
	b.sees("#results", "Moon cake night")
	b.click(".chip:nth-of-type(3) span, .chips label:nth-of-type(3)")
	b.sees("#results", "No matches")
	evaluate[chromedp.Void](b, "history.back()")
	b.sees("#results", "Moon cake night")
	b.do(chromedp.KeyEvent("?"))
	b.sees("#shortcuts", "Keyboard shortcuts", "Campaigns")
}

func TestThemeChangesAtOnce(t *testing.T) {
	g := newRig(t)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(g.server.URL + "/account")
	light := evaluate[string](b, `getComputedStyle(document.body).backgroundColor`)
	b.click(`main [name=theme][value=dark]`)
	within(t, "the dark theme", func() bool {
		return evaluate[string](b, `getComputedStyle(document.body).backgroundColor`) != light && evaluate[string](b, `document.documentElement.dataset.theme`) == "dark"
	})
	within(t, "the stored theme", func() bool {
		var theme string
		g.must(g.sql.QueryRow(t.Context(), `select theme from staff`).Scan(&theme))
		return theme == "dark"
	})
	b.open(g.server.URL + "/")
	if got := evaluate[string](b, `document.documentElement.dataset.theme`); got != "dark" {
		t.Errorf("the next page has the theme %q", got)
	}
}
