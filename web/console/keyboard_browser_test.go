package console_test

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
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// The main path without a mouse: sign in, create, publish, move, cancel.
func TestByKeyboardAlone(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	m := g.Hire(staff.Marketer)
	b := consoletest.NewTab(t)
	b.Open(g.Server.URL + "/signin")
	b.TabTo("#f-email")
	b.Types(m.Email + kb.Enter)
	b.Sees("form", "Enter the password")
	b.Focused("#f-password") // where something has to be typed
	b.Types("mistyped" + kb.Enter)
	b.Sees("form", "The e-mail address or the password is wrong")
	b.Focused("#f-password")
	b.Types(consoletest.Password + kb.Enter)
	b.Sees("h1", "Overview")
	b.Types("gc")
	b.Sees("h1", "Campaigns")
	b.Types("gt")
	b.Sees("h1", "Drops")
	b.Types("n")
	b.Sees("h1", "New drop")
	b.TabTo("#f-name")
	b.Types("By keyboard")
	onwards := func(title string) {
		b.TabTo("[data-next]")
		b.Types(kb.Enter)
		b.Step(title)
		if !consoletest.Evaluate[bool](b, `document.activeElement.matches("[data-step]:not([hidden]) h2")`) {
			t.Errorf("the focus is not at the beginning of %s", title)
		}
	}
	onwards("2 · Discount")
	b.TabTo("#f-amount_off")
	b.Types("5")
	onwards("3 · Times")
	opens := g.Now().Add(5 * time.Hour).In(consoletest.Berlin(t))
	for _, field := range []struct {
		id string
		at time.Time
	}{{"#f-opens_at", opens}, {"#f-closes_at", opens.Add(time.Hour)}} {
		b.TabTo(field.id)
		b.Types(field.at.Format("01022006") + kb.ArrowRight + field.at.Format("030405PM"))
	}
	onwards("4 · Stock and claiming")
	b.TabTo("#f-stock")
	b.Types("100" + kb.Enter)
	b.Sees("main", "The draft of “By keyboard” has been saved.")
	b.TabTo(`#drop-head a[href$="/publish"]`)
	b.Types(kb.Enter)
	b.Sees("#dialog", "Publish “By keyboard”?")
	b.Types(kb.Escape)
	consoletest.Within(t, "the dialog to close and the focus to come back", func() bool {
		return consoletest.Evaluate[bool](b, `!document.querySelector("#dialog").open && document.activeElement.matches('#drop-head a[href$="/publish"]')`)
	})
	b.Types(kb.Enter)
	b.Sees("#dialog", "Publish “By keyboard”?")
	b.TabTo("#dialog button[type=submit]")
	b.Types(kb.Enter)
	b.Sees("main", "has been published", "Scheduled")
	b.TabTo(`#drop-head a[href$="/cancel"]`)
	b.Types(kb.Enter)
	b.Sees("#dialog", "Cancel “By keyboard”?")
	b.TabTo("#dialog button[type=submit]")
	b.Types(kb.Enter)
	b.Sees("main", "“By keyboard” is cancelled.")
}

// A part that updates by itself keeps the focus and keeps opened details open.
func TestFocusStaysInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	j := g.StartJob(staff.Actor{Label: "staff:99", Role: staff.Marketer}, "Pause 40 templates", 0)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + fmt.Sprintf("/jobs/%d", j.ID))
	b.Sees("#job", "Not begun yet")
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("#job .work-actions a").focus()`)
	g.Work(j.ID, job.Progress{Total: 40, Done: 10})
	b.Sees("#job", "10 of 40")
	if !consoletest.Evaluate[bool](b, `document.activeElement.matches("#job .work-actions a")`) {
		t.Error("the focus is lost when the job goes on")
	}
	g.Work(j.ID, job.Progress{Total: 40, Done: 40, Finished: true})
	b.Sees("#job", "40 of 40")

	d := g.Published(10, 2*time.Hour)
	g.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute', issued = 7 where id = $1`, d.ID)
	g.Exec(`update slots s set opens_at = t.opens_at from templates t where t.id = s.template_id and t.id = $1`, d.ID)
	g.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '50 seconds', 5), ($1, date_trunc('second', now()) - interval '40 seconds', 2)`, d.ID)
	b.Open(g.Server.URL + shell.TemplateURL(d.ID) + "?tab=claims")
	b.Click("#claims details summary")
	g.Exec(`update templates set issued = 9 where id = $1`, d.ID)
	b.Sees("#claims", "91")
	g.Exec(`insert into claim_seconds values ($1, date_trunc('second', now()) - interval '30 seconds', 2)`, d.ID)
	b.Sees("#claims details table", "9")
	if !consoletest.Evaluate[bool](b, `document.querySelector("#claims details").open`) {
		t.Error("the table is closed again under the reader's eyes")
	}

	// A viewer that was disconnected gets all changes.
	b.Click("[data-live-switch]")
	b.Sees("[data-live-switch]", "Paused")
	consoletest.Within(t, "the end of the stream", func() bool { return g.Watched() == 0 })
	g.Exec(`update templates set issued = 12 where id = $1`, d.ID)
	b.Click("[data-live-switch]")
	b.Sees("#claims", "88")
	if !consoletest.Evaluate[bool](b, `document.querySelector("#claims details").open`) {
		t.Error("the table is closed when the whole page comes anew")
	}
}

// Parts that cannot be loaded say so, keep their last content, and reload by themselves.
func TestPartsSayThatTheConnectionIsLostInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	j := g.StartJob(staff.Actor{Label: "staff:99", Role: staff.Marketer}, "Pause 40 templates", 0)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + fmt.Sprintf("/jobs/%d", j.ID))
	b.Sees("#job", "Not begun yet")
	g.Provoke(`relation "jobs" does not exist`)
	g.Exec(`alter table jobs rename to away`)
	b.Sees("#live-note", "The live connection is lost.")
	b.Sees("#job", "Not begun yet")
	g.As(staff.Viewer).Get(fmt.Sprintf("/jobs/%d", j.ID)).Is(http.StatusInternalServerError).Has("Something went wrong")
	g.Exec(`alter table away rename to jobs`)
	g.Work(j.ID, job.Progress{Total: 40, Done: 10})
	b.Sees("#job", "10 of 40")
	consoletest.Within(t, "the note to go", func() bool { return consoletest.Evaluate[bool](b, `document.querySelector("#live-note").hidden`) })
}

func TestFindAUserAndExplainInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, name, email) values (1001, 'Ada Lovelace', 'ada@example.com')`)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 60)
	g.Book(d, 1001, delivery.Email, 5)
	g.Fire(d, 12, consoletest.Takes)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + "/users")
	b.Fill("#q", "ada")
	b.Press("#results", "Ada Lovelace")
	b.Click(".drawer:has(.reservation) > summary")
	b.Sees("main", "Moon cake night", "2 reminders")
	if n := consoletest.Evaluate[int](b, `document.querySelectorAll(".grid td.on").length`); n != 2 {
		t.Errorf("%d boxes of the grid are filled", n)
	}
	b.Press("main", "Why?")
	b.Sees("main", "Reserved", "60-minute reminder by App sent", "Will be reminded at", "1 sent, 1 still ahead")
	b.Accessible("a timeline")
}

func TestInChineseInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 4*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/account")
	b.Click(`main button[lang="zh-CN"]`)
	b.Sees("h1", "我的账号")
	b.Open(g.Server.URL + "/templates")
	b.Sees("h1", "抢券活动")
	b.Press("#results", "Moon cake night")
	b.Sees("#drop-head", "Moon cake night", "调整时间")
	if lang := consoletest.Evaluate[string](b, `document.documentElement.lang`); lang != "zh-CN" {
		t.Errorf("the page is in %q", lang)
	}
}
