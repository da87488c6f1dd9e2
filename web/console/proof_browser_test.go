package console

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

// An operator replays dead letters in dialogs and watches the job to its end
// without touching the page.
func TestReplayInTheBrowser(t *testing.T) {
	g := buried(t)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Operator))
	b.open(g.server.URL + "/dead-letters")
	b.sees("main", "2 dead letters", "HTTP 503")
	b.press("#results", "Replay…")
	b.sees("#dialog", "2 still in time, 0 would be too late, 0 already sent by another attempt")
	b.accessible("the dry run")
	b.fill("#dialog #f-rate_per_second", "lots")
	b.sees("#dry-run", "must be a whole number")
	b.replaced("#confirm", func() { b.press("#dialog", "Replay") })
	b.sees("#dialog", "must be a whole number")
	b.fill("#dialog #f-rate_per_second", "50")
	b.press("#dialog", "Replay 2 messages")
	b.sees("main", "The replay has begun.", "0 of 2", "running")
	evaluate[chromedp.Void](b, `document.querySelector("#jobs a").focus()`)
	b.press("#jobs", "Stop")
	b.sees("#dialog", "Stop this job?")
	b.press("#dialog", "Cancel")
	g.must(g.DeadLetters.Step(t.Context()))
	b.sees("main", "No dead letters", "2 of 2: 2 tried again", "finished")
	if evaluate[bool](b, `!!document.querySelector("[data-live]")`) {
		t.Error("the page goes on asking although nothing runs")
	}
	b.accessible("dead letters")
}

func TestFilterDeadLettersInTheBrowser(t *testing.T) {
	g := buried(t)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(g.server.URL + "/dead-letters")
	b.fill("#f-user", "1001")
	b.sees("#results", "1 dead letter", "HTTP 503")
	if got := evaluate[string](b, `location.search`); got != "?channel=&template=&campaign=&user=1001" {
		t.Errorf("the address says %q", got)
	}
	b.fill("#f-channel", "email")
	b.sees("#results", "No matches")
	evaluate[chromedp.Void](b, `history.back()`)
	b.sees("#results", "HTTP 503")
	b.press("#results", "HTTP 503")
	b.press("main", "User 1001")
	b.sees("main", "failed for good", "HTTP 503")
	b.accessible("a timeline")
}

func TestCorrectionInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 60)
	g.fire(d, 12, takes)
	g.reopen(d.ID, time.Hour)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/templates/1/announcements")
	b.press("#announcements", "Send correction")
	b.sees("#dialog", "Correct the opening of", "App")
	b.accessible("the question")
	b.press("#dialog", "Send correction")
	b.sees("main", "The correction is on its way.")
	b.open(g.server.URL + "/templates/1/announcements")
	b.sees("#announcements", "waiting", "Recipients are being collected.")
	g.spread(1)
	b.sees("#announcements", "finished", "1 of 1 delivered.")
	if evaluate[bool](b, `!!document.querySelector("#announcements[data-live]")`) {
		t.Error("the card goes on asking although nothing runs")
	}
	b.accessible("announcements")
}
