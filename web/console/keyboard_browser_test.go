package console

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// The main path without a mouse: sign in, create, publish, move, cancel.
func TestByKeyboardAlone(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	m := g.hire(staff.Marketer)
	b := newTab(t)
	b.open(g.server.URL + "/signin")
	b.tabTo("#f-email")
	b.types(m.Email + kb.Enter)
	b.sees("form", "is required")
	b.focused("#f-password") // where something has to be typed
	b.types("mistyped" + kb.Enter)
	b.sees("form", "E-mail or password is not right")
	b.focused("#f-password")
	b.types(password + kb.Enter)
	b.sees("h1", "Overview")
	b.types("gc")
	b.sees("h1", "Campaigns")
	b.types("gt")
	b.sees("h1", "Templates")
	b.types("n")
	b.sees("h1", "New template")
	b.tabTo("#f-name")
	b.types("By keyboard")
	onwards := func(title string) {
		b.tabTo("[data-next]")
		b.types(kb.Enter)
		b.step(title)
		if !evaluate[bool](b, `document.activeElement.matches("[data-step]:not([hidden]) h2")`) {
			t.Errorf("the focus is not at the beginning of %s", title)
		}
	}
	onwards("2 · Discount")
	b.tabTo("#f-amount_off")
	b.types("5")
	onwards("3 · Times")
	opens := g.now().Add(5 * time.Hour).In(berlin(t))
	for _, field := range []struct {
		id string
		at time.Time
	}{{"#f-opens_at", opens}, {"#f-closes_at", opens.Add(time.Hour)}} {
		b.tabTo(field.id)
		b.types(field.at.Format("01022006") + kb.ArrowRight + field.at.Format("030405PM"))
	}
	onwards("4 · Stock and claiming")
	b.tabTo("#f-stock")
	b.types("100" + kb.Enter)
	b.sees("main", "The draft of “By keyboard” has been saved.")
	b.tabTo(`#drop-head a[href$="/publish"]`)
	b.types(kb.Enter)
	b.sees("#dialog", "Publish “By keyboard”?")
	b.types(kb.Escape)
	within(t, "the dialog to close and the focus to come back", func() bool {
		return evaluate[bool](b, `!document.querySelector("#dialog").open && document.activeElement.matches('#drop-head a[href$="/publish"]')`)
	})
	b.types(kb.Enter)
	b.sees("#dialog", "Publish “By keyboard”?")
	b.tabTo("#dialog button[type=submit]")
	b.types(kb.Enter)
	b.sees("main", "has been published", "Scheduled")
	b.tabTo(`#drop-head a[href$="/cancel"]`)
	b.types(kb.Enter)
	b.sees("#dialog", "Cancel “By keyboard”?")
	b.tabTo("#dialog button[type=submit]")
	b.types(kb.Enter)
	b.sees("main", "“By keyboard” is cancelled.")
}

// What changes by itself leaves the focus where it is and open what was opened.
func TestFocusStaysInTheBrowser(t *testing.T) {
	g := newRig(t)
	j := g.startJob(staff.Actor{Label: "staff:99", Role: staff.Marketer}, "Pause 40 templates", 0)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + fmt.Sprintf("/jobs/%d", j.ID))
	b.sees("#job", "Not begun yet")
	evaluate[chromedp.Void](b, `document.querySelector("#job .work-actions a").focus()`)
	g.work(j.ID, job.Progress{Total: 40, Done: 10})
	b.sees("#job", "10 of 40")
	if !evaluate[bool](b, `document.activeElement.matches("#job .work-actions a")`) {
		t.Error("the focus is lost when the job goes on")
	}
	g.work(j.ID, job.Progress{Total: 40, Done: 40, Finished: true})
	b.sees("#job", "40 of 40")

	d := g.published(10, 2*time.Hour)
	g.exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute', issued = 7 where id = $1`, d.ID)
	g.exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '50 seconds', 5), ($1, date_trunc('second', now()) - interval '40 seconds', 2)`, d.ID)
	b.open(g.server.URL + shell.TemplateURL(d.ID))
	b.click("#claims details summary")
	g.exec(`update templates set issued = 9 where id = $1`, d.ID)
	b.sees("#claims", "91")
	g.exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '30 seconds', 2)`, d.ID)
	b.sees("#claims table", "9")
	if !evaluate[bool](b, `document.querySelector("#claims details").open`) {
		t.Error("the table is closed again under the reader's eyes")
	}

	// Whoever was away is sent all of it.
	b.click("[data-live-switch]")
	b.sees("[data-live-switch]", "Paused")
	within(t, "the end of the stream", func() bool { return g.Watched() == 0 })
	g.exec(`update templates set issued = 12 where id = $1`, d.ID)
	b.click("[data-live-switch]")
	b.sees("#claims", "88")
	if !evaluate[bool](b, `document.querySelector("#claims details").open`) {
		t.Error("the table is closed when the whole page comes anew")
	}
}

// Parts say so when they cannot be had, keep what they showed, and go on by
// themselves.
func TestPartsSayThatTheConnectionIsLostInTheBrowser(t *testing.T) {
	g := newRig(t)
	j := g.startJob(staff.Actor{Label: "staff:99", Role: staff.Marketer}, "Pause 40 templates", 0)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + fmt.Sprintf("/jobs/%d", j.ID))
	b.sees("#job", "Not begun yet")
	g.provoke(`relation "jobs" does not exist`)
	g.exec(`alter table jobs rename to away`)
	b.sees("#live-note", "The live connection is lost.")
	b.sees("#job", "Not begun yet")
	g.as(staff.Viewer).get(fmt.Sprintf("/jobs/%d", j.ID)).is(http.StatusInternalServerError).has("Something went wrong")
	g.exec(`alter table away rename to jobs`)
	g.work(j.ID, job.Progress{Total: 40, Done: 10})
	b.sees("#job", "10 of 40")
	within(t, "the note to go", func() bool { return evaluate[bool](b, `document.querySelector("#live-note").hidden`) })
}

func TestFindAUserAndExplainInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name, email) values (1001, 'Ada Lovelace', 'ada@example.com')`)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 60)
	g.book(d, 1001, delivery.Email, 5)
	g.fire(d, 12, takes)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(g.server.URL + "/users")
	b.fill("#q", "ada")
	b.press("#results", "Ada Lovelace")
	b.sees("main", "Moon cake night", "2 reminders")
	if n := evaluate[int](b, `document.querySelectorAll(".grid td.on").length`); n != 2 {
		t.Errorf("%d boxes of the grid are filled", n)
	}
	b.press("main", "Explain")
	b.sees("main", "Reserved", "60-minute reminder by App delivered", "Will be reminded at", "1 delivered, 1 still ahead")
	b.accessible("a timeline")
}

func TestInChineseInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.published(10, 4*time.Hour)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/account")
	b.click(`main button[lang="zh-CN"]`)
	b.sees("h1", "我的账号")
	b.open(g.server.URL + "/templates")
	b.sees("h1", "优惠券模板")
	b.press("#results", "Moon cake night")
	b.sees("#drop-head", "Moon cake night", "调整时间")
	if lang := evaluate[string](b, `document.documentElement.lang`); lang != "zh-CN" {
		t.Errorf("the page is in %q", lang)
	}
}
