package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// Names are as long and as strange as somebody makes them.
func TestStrangeNamesInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name, email) values (1001, $1, $2)`, strings.Repeat("W", 200), strings.Repeat("w", 60)+"@example.com")
	g.exec(`insert into users (id, name) values (1002, $1)`, "evil\u202egnp")
	d := g.published(10, 5*time.Hour)
	g.exec(`update templates set name = $1`, strings.Repeat("N", 120))
	g.book(d, 1001, delivery.App, 60, 5)
	g.fire(d, 12, takes)
	g.gives(d, 1001)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	for _, width := range []int64{1280, 390} {
		b.do(chromedp.EmulateViewport(width, 800))
		for _, path := range []string{"/users/1001", "/users/1002", "/users?q=W", templateURL(d.ID)} {
			b.open(g.server.URL + path)
			b.sees("h1, #drop-head", "")
			b.narrow(fmt.Sprint(path, " at ", width))
		}
	}
	b.open(g.server.URL + "/users?q=evil")
	b.sees("#results", "1002")
	if how := evaluate[string](b, `getComputedStyle(document.querySelector("#results .row-link")).unicodeBidi`); how != "isolate" {
		t.Errorf("a name in a list is %q", how)
	}
}

func TestNamesThatTurnTextAroundAreRefused(t *testing.T) {
	g := newRig(t)
	s := g.spec(10, time.Hour)
	s.Name = "Moon \u202ecake"
	if err := s.Check(); err == nil {
		t.Error("a template may be called that")
	}
	g.as(staff.Marketer).post("/campaigns", campaignForm("name", "Moon \u2066cake")).is(422).has("cannot be stored")
}

// What is over offers nothing to hold.
func TestFinishedJobHasNoLiveSwitchInTheBrowser(t *testing.T) {
	g := newRig(t)
	j := g.startJob(staff.Actor{Label: "staff:99", Role: staff.Marketer}, "Pause 40 templates", 0)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + fmt.Sprintf("/jobs/%d", j.ID))
	b.sees("#job", "Not begun yet")
	shown := func() bool {
		return evaluate[bool](b, `!!document.querySelector("[data-live-switch]")?.checkVisibility()`)
	}
	if !shown() {
		t.Error("there is no switch while it goes on")
	}
	g.work(j.ID, job.Progress{Total: 40, Done: 40, Finished: true})
	b.sees("#job", "40 of 40")
	within(t, "the switch to go", func() bool { return !shown() })
}

// The preview of a move says why there is none.
func TestMoveToThePastInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + templateURL(d.ID) + "/move")
	b.sees("#blast", "Enter the new opening")
	b.fill("#f-opens_at", "2020-01-01T10:00")
	b.sees("#blast", "must lie in the future")
	b.accessible("a move to the past")
}

// Typing another rate runs the dry run of a replay again; an error that the
// form was refused for goes away with what it was about.
func TestTheDryRunFollowsTheRateInTheBrowser(t *testing.T) {
	g := buried(t)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Operator))
	b.open(g.server.URL + "/dead-letters/replay")
	b.sees("#dry-run", "2 still in time", "as fast as the channel allows.")
	b.fill("#f-rate_per_second", "plenty")
	b.sees("#dry-run", "At most: must be a whole number")
	b.press(".dialog-foot", "Replay")
	b.sees("#confirm .has-error", "must be a whole number")
	b.sees("#dry-run", "Enter a valid rate")
	b.fill("#f-rate_per_second", "１")
	b.sees("#dry-run", "At 1 per second this takes about 2 s.")
	b.sees("#replay-submit", "Replay 2 messages")
	if evaluate[bool](b, `!!document.querySelector("#confirm .has-error")`) {
		t.Error("the error of what was typed before is still there")
	}
	b.accessible("the dry run")
}

// The page says whose days the filter names as soon as a shop is chosen.
func TestDaysFollowTheShopInTheBrowser(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into shops (number, name, timezone) values (10, 'Ten', 'Europe/Berlin'), (11, 'Eleven', 'America/New_York')
		on conflict (number) do update set name = excluded.name, timezone = excluded.timezone`)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(g.server.URL + "/templates?sort=latest")
	b.sees("#days-of", "Days are those of Asia/Shanghai.")
	evaluate[chromedp.Void](b, `(() => { const e = document.querySelector("#f-shop"); e.value = "11"; e.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	b.sees("#days-of", "Days are those of Eleven: America/New_York.")
	b.sees("#results", "No matches")
	b.accessible("days of a shop")
}
