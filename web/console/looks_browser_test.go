package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// Names may be long and of any characters.
func TestStrangeNamesInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, name, email) values (1001, $1, $2)`, strings.Repeat("W", 200), strings.Repeat("w", 60)+"@example.com")
	g.Exec(`insert into users (id, name) values (1002, $1)`, "evil\u202egnp")
	d := g.Published(10, 5*time.Hour)
	g.Exec(`update templates set name = $1`, strings.Repeat("N", 120))
	g.Book(d, 1001, delivery.App, 60, 5)
	g.Fire(d, 12, consoletest.Takes)
	g.Gives(d, 1001)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	for _, width := range []int64{1280, 390} {
		b.Do(chromedp.EmulateViewport(width, 800))
		for _, path := range []string{"/users/1001", "/users/1002", "/users?q=W", shell.TemplateURL(d.ID)} {
			b.Open(g.Server.URL + path)
			b.Sees("h1, #drop-head", "")
			b.Narrow(fmt.Sprint(path, " at ", width))
		}
	}
	b.Open(g.Server.URL + "/users?q=evil")
	b.Sees("#results", "1002")
	if how := consoletest.Evaluate[string](b, `getComputedStyle(document.querySelector("#results .row-link")).unicodeBidi`); how != "isolate" {
		t.Errorf("a name in a list is %q", how)
	}
}

func TestNamesThatTurnTextAroundAreRefused(t *testing.T) {
	g := consoletest.New(t)
	s := g.Spec(10, time.Hour)
	s.Name = "Moon \u202ecake"
	if err := s.Check(); err == nil {
		t.Error("a template may be called that")
	}
	g.As(staff.Marketer).Post("/campaigns", consoletest.CampaignForm("name", "Moon \u2066cake")).Is(422).Has("cannot be stored")
}

// A finished job has no live switch.
func TestFinishedJobHasNoLiveSwitchInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	j := g.StartJob(staff.Actor{Label: "staff:99", Role: staff.Marketer}, "Pause 40 templates", 0)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + fmt.Sprintf("/jobs/%d", j.ID))
	b.Sees("#job", "Not begun yet")
	shown := func() bool {
		return consoletest.Evaluate[bool](b, `!!document.querySelector("[data-live-switch]")?.checkVisibility()`)
	}
	if !shown() {
		t.Error("there is no switch while it goes on")
	}
	g.Work(j.ID, job.Progress{Total: 40, Done: 40, Finished: true})
	b.Sees("#job", "40 of 40")
	consoletest.Within(t, "the switch to go", func() bool { return !shown() })
}

// The preview of a move to the past says why there is no preview.
func TestMoveToThePastInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + shell.TemplateURL(d.ID) + "/move")
	b.Sees("#blast", "Enter the new opening")
	b.Fill("#f-opens_at", "2020-01-01T10:00")
	b.Sees("#blast", "must lie in the future")
	b.Accessible("a move to the past")
}

// Typing another rate runs the dry run of a replay again. The error for which the form was refused
// disappears when its field is corrected.
func TestTheDryRunFollowsTheRateInTheBrowser(t *testing.T) {
	g := consoletest.DeadLettered(t)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Operator))
	b.Open(g.Server.URL + "/dead-letters/replay")
	b.Sees("#dry-run", "2 still in time", "as fast as the channel allows.")
	b.Fill("#f-rate_per_second", "plenty")
	b.Sees("#dry-run", "At most: must be a whole number")
	b.Press(".dialog-foot", "Replay")
	b.Sees("#confirm .has-error", "must be a whole number")
	b.Sees("#dry-run", "Enter a valid rate")
	b.Fill("#f-rate_per_second", "１")
	b.Sees("#dry-run", "At 1 per second this takes about 2 s.")
	b.Sees("#replay-submit", "Replay 2 messages")
	if consoletest.Evaluate[bool](b, `!!document.querySelector("#confirm .has-error")`) {
		t.Error("the error of what was typed before is still there")
	}
	b.Accessible("the dry run")
}

// As soon as a shop is chosen, the page names the zone of the filter's days.
func TestDaysFollowTheShopInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into shops (number, name, timezone) values (10, 'Ten', 'Europe/Berlin'), (11, 'Eleven', 'America/New_York')
		on conflict (number) do update set name = excluded.name, timezone = excluded.timezone`)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + "/templates?sort=latest")
	b.Sees("#days-of", "Dates are in UTC.") // of the browser
	consoletest.Evaluate[chromedp.Void](b, `(() => { const e = document.querySelector("#f-shop"); e.value = "11"; e.dispatchEvent(new Event("change", { bubbles: true })); })()`)
	b.Sees("#days-of", "Dates are in the time zone of Eleven: New York time")
	b.Sees("#results", "No matches")
	b.Accessible("days of a shop")
}
