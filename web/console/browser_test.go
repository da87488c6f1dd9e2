package console_test

import (
	"context"
	_ "embed"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestADropFromBeginningToEnd(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Sees("main", "Welcome to Dropbell")
	b.Click("#new")
	b.Sees("h1", "New drop")
	if consoletest.Evaluate[bool](b, `document.querySelector("#f-percent_off").checkVisibility()`) {
		t.Error("the percentage is asked for although the kind is another")
	}
	b.Fill("#f-name", "Moon cake night")
	b.Sees("#preview", "Moon cake night")
	b.Next("2 · Discount")
	b.Click(`input[name=kind][value=percent_off]`)
	b.Fill("#f-percent_off", "20")
	b.Fill("#f-max_off", "30")
	b.Sees("#preview", "20% off", "at most ¥30")
	b.Next("3 · Times")
	opens := g.Now().Add(3 * time.Hour)
	b.Fill("#f-opens_at", opens.In(consoletest.Berlin(t)).Format("2006-01-02T15:04"))
	b.Fill("#f-closes_at", "")
	b.Sees("#preview", "Reminders", "from")
	b.Press("form", "Save as draft")
	b.Sees("main", "2 things need your attention", "Closing: Enter a date and time", "Stock: Enter a number")
	b.Fill("#f-closes_at", opens.Add(time.Hour).In(consoletest.Berlin(t)).Format("2006-01-02T15:04"))
	b.Next("4 · Stock and claiming")
	b.Fill("#f-stock", "1000")
	b.Press("form", "Save as draft")
	b.Sees("main", "The draft of “Moon cake night” has been saved.", "Not published yet")

	b.Press("#drop-head", "Publish")
	b.Sees("#dialog", "Publish “Moon cake night”?", "Customers can see it")
	b.Accessible("the dialog")
	b.Press("#dialog", "Cancel")
	if consoletest.Evaluate[bool](b, `document.querySelector("#dialog").open`) {
		t.Error("the dialog stays open")
	}
	b.Press("#drop-head", "Publish")
	b.Fill("#dialog #f-reason", "the shop agreed")
	b.Press("#dialog", "Publish without looking")
	b.Sees("main", "has been published", "Scheduled", "60 min")
	b.Press(".drop-tabs", "History")
	b.Sees("main", "the shop agreed")
	b.Press(".drop-tabs", "Reminders")
	b.Sees("#slot-12", "60 min")

	d, err := g.Templates.Template(t.Context(), staff.System(), 1)
	g.Must(err)
	g.Book(d, 1001, delivery.App, 5, 60)
	b.Sees("#slot-12", "1")
	b.Sees("#drop-stats", "2")

	b.Press("#drop-head", "Move opening")
	b.Sees("#dialog", "Move the opening of")
	b.Fill("#dialog #f-opens_at", g.Now().Add(30*time.Minute).In(consoletest.Berlin(t)).Format("2006-01-02T15:04"))
	b.Sees("#blast", "2 reminders are reserved.", "1 reminder would be in the past", "earlier than now planned")
	b.Fill("#dialog #f-opens_at", g.Now().Add(-time.Hour).In(consoletest.Berlin(t)).Format("2006-01-02T15:04"))
	// The preview shows the same; the form that is filled in next is the form of the answer.
	b.Replaced("#dialog #confirm", func() { b.Press("#dialog .dialog-foot", "Move opening") })
	b.Sees("#dialog", "must lie in the future")
	b.Fill("#dialog #f-opens_at", g.Now().Add(50*time.Hour).In(consoletest.Berlin(t)).Format("2006-01-02T15:04"))
	b.Press("#dialog .dialog-foot", "Move opening")
	b.Sees("main", "now opens on")

	b.Press("#drop-head", "Cancel drop")
	b.Sees("#dialog", "Waiting reminders, which are not sent: 2.")
	g.Exec(`update templates set state = 'closed', version = version + 1`)
	b.Press("#dialog", "Cancel drop")
	b.Sees("#dialog", "The drop is closed and can no longer be changed.")
	g.Exec(`update templates set state = 'published', version = version + 1`)
	b.Press("#dialog .dialog-foot", "Close")
	b.Press("#drop-head", "Cancel drop")
	b.Press("#dialog .dialog-foot", "Cancel drop")
	b.Sees("main", "“Moon cake night” is cancelled.", "Cancelled")
}

func TestLivePageInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 4*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + shell.TemplateURL(d.ID))
	b.Sees("#drop-head", "Scheduled", "Opens in")
	before := b.Text("#drop-head .ticker")
	consoletest.Within(t, "a tick of the countdown", func() bool { return b.Text("#drop-head .ticker") != before })
	if consoletest.Evaluate[string](b, `document.querySelector("#drop-head time").title`) == "" {
		t.Error("the viewer's own time does not appear")
	}
	g.Exec(`insert into bookings values ($1, 12, 0, 77)`, d.ID)
	b.Sees("#slot-12", "77")
	b.Click("[data-live-switch]")
	b.Sees("[data-live-switch]", "Paused")
	consoletest.Within(t, "the end of the stream", func() bool { return g.Watched() == 0 })
	g.Exec(`update bookings set booked = 88`)
	b.Click("[data-live-switch]")
	b.Sees("#slot-12", "88")

	// A slot is being delivered, seen from the outside.
	g.Exec(`update slots set state = 'sending', fired_at = due_at where template_id = $1 and slot = 12`, d.ID)
	g.Exec(`insert into slot_results (slot_id, channel, reserved) select id, 0, 88 from slots where slot = 12`)
	g.Exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_at, worthless_after, due, due_count, sent_count, dead_count)
		select 'reminder', id, template_id, 0, 1, 1000, due_at, opens_at, '', 88, 44, 2 from slots where slot = 12`)
	g.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason) select id, n, 0, 'dead', 'refused' from batches, generate_series(1, 2) n`)
	b.Sees("#slot-12", "Sending", "50%", "2 failed")
	if label := consoletest.Evaluate[string](b, `document.querySelector("#slot-12 .bar").getAttribute("aria-label")`); !strings.Contains(label, "44 sent (50%), 42 on the way, 2 failed") {
		t.Errorf("the bar says %q", label)
	}
	b.Sees("#drop-warnings", "2 reminders could not be delivered")
	b.Accessible("the live page")

	b.Expected = "htmx: htmx:sse:error"
	g.Server.CloseClientConnections()
	g.Server.Listener.Close()
	b.Sees("main", "The live connection is lost.")
}

func TestRolesInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 4*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + shell.TemplateURL(d.ID))
	b.Sees("#drop-head", "Scheduled")
	if text := b.Text("#drop-head"); strings.Contains(text, "Cancel drop") || strings.Contains(text, "Move opening") {
		t.Errorf("a viewer is offered changes: %s", text)
	}
	if text := b.Text(".sidebar"); strings.Contains(text, "API keys") || strings.Contains(text, "Stuck messages") {
		t.Errorf("a viewer is led to %s", text)
	}
	b.Open(g.Server.URL + "/staff")
	b.Sees("main", "Not allowed", "An admin can change that.")
}

func TestWithoutScripts(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.Do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return chromedp.Void{}, err
	})
	m := g.Hire(staff.Marketer)
	b.Open(g.Server.URL + "/templates/new")
	b.Do(chromedp.SendKeys(chromedp.CSS("#f-email"), m.Email), chromedp.SendKeys(chromedp.CSS("#f-password"), consoletest.Password))
	b.Click("button.is-wide")
	b.Sees("h1", "New drop")
	b.Sees("form.form", "1 · Basics", "2 · Discount", "3 · Times", "4 · Stock and claiming")
	if consoletest.Evaluate[bool](b, `[...document.querySelectorAll("[data-steps], [data-next], [data-back], #review, [data-fold]")].some(e => e.checkVisibility())`) {
		t.Error("what only scripts can use is shown")
	}
	set := func(selector, value string) {
		b.Do(chromedp.SetValue(chromedp.CSS(selector), value))
	}
	opens := g.Now().Add(5 * time.Hour).In(consoletest.Berlin(t))
	set("#f-name", "Without scripts")
	set("#f-amount_off", "5")
	set("#f-stock", "10")
	set("#f-opens_at", opens.Format("2006-01-02T15:04"))
	set("#f-closes_at", opens.Add(time.Hour).Format("2006-01-02T15:04"))
	b.Click(".form-foot button[type=submit]")
	b.Sees("main", "The draft of “Without scripts” has been saved.")
	b.Click(`#drop-head a[href$="/publish"]`)
	b.Sees("main", "Publish “Without scripts”?")
	b.Click(`#confirm button[type=submit]`)
	b.Sees("main", "has been published", "Scheduled")
	b.Click(`#drop-head a[href$="/move"]`)
	set("#f-opens_at", opens.Add(time.Hour).Format("2006-01-02T15:04"))
	b.Click(`noscript button`)
	b.Sees("#blast", "1 h later than now planned")
	b.Click(`#confirm .dialog-foot button[type=submit]`)
	b.Sees("main", "now opens on")
	b.Open(g.Server.URL + "/templates?q=without")
	b.Sees("#results", "Without scripts")
	b.Open(g.Server.URL + shell.TemplateURL(1) + "/cancel")
	b.Click(`#confirm button[type=submit]`)
	b.Sees("main", "“Without scripts” is cancelled.")
}

func TestOnAPhone(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 4*time.Hour)
	g.Book(d, 1001, delivery.App, 5)
	b := consoletest.NewTab(t)
	b.Do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
	b.SignIn(g, g.Hire(staff.Admin))
	for _, path := range []string{"/", "/templates", shell.TemplateURL(d.ID), shell.TemplateURL(d.ID) + "/edit", "/users?q=1001", "/users/1001", "/channels", "/staff", "/keys", "/audit", "/account", "/shops", "/dead-messages"} {
		b.Open(g.Server.URL + path)
		b.Narrow(path)
	}
	b.Open(g.Server.URL + "/")
	b.Click(".tab-more summary")
	b.Press(".tab-sheet", "Audit log")
	b.Sees("h1", "Audit log")
}

func TestFiltersAndKeyboardInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Draft(10, 4*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Do(chromedp.KeyEvent("g"), chromedp.KeyEvent("c"))
	b.Sees("h1", "Campaigns")
	b.Do(chromedp.KeyEvent("g"), chromedp.KeyEvent("t"))
	b.Sees("h1", "Drops")
	b.Do(chromedp.KeyEvent("/"))
	b.Do(chromedp.SendKeys(chromedp.CSS("#q"), "nothing like it"))
	b.Sees("#results", "No matches")
	consoletest.Within(t, "the search, and only that, in the address", func() bool {
		q := consoletest.Evaluate[string](b, "location.search")
		return strings.HasSuffix(q, "nothing+like+it&sort=ahead") && !strings.Contains(q, "shop=")
	})
	b.Press("#results", "Clear filters")
	b.Sees("#results", "Moon cake night")
	b.Click(".chip:nth-of-type(3) span, .chips label:nth-of-type(3)")
	b.Sees("#results", "No matches")
	consoletest.Evaluate[chromedp.Void](b, "history.back()")
	b.Sees("#results", "Moon cake night")
	b.Do(chromedp.KeyEvent("?"))
	b.Sees("#shortcuts", "Keyboard shortcuts", "Campaigns")
}

func TestThemeChangesAtOnce(t *testing.T) {
	g := consoletest.New(t)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + "/account")
	light := consoletest.Evaluate[string](b, `getComputedStyle(document.body).backgroundColor`)
	b.Click(`main [name=theme][value=dark]`)
	consoletest.Within(t, "the dark theme", func() bool {
		return consoletest.Evaluate[string](b, `getComputedStyle(document.body).backgroundColor`) != light && consoletest.Evaluate[string](b, `document.documentElement.dataset.theme`) == "dark"
	})
	consoletest.Within(t, "the stored theme", func() bool {
		var theme string
		g.Must(g.SQL.QueryRow(t.Context(), `select theme from staff`).Scan(&theme))
		return theme == "dark"
	})
	b.Open(g.Server.URL + "/")
	if got := consoletest.Evaluate[string](b, `document.documentElement.dataset.theme`); got != "dark" {
		t.Errorf("the next page has the theme %q", got)
	}
}
