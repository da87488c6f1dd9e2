package delivery_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// An operator replays dead letters in dialogs and watches the job to its end without reloading the
// page.
func TestReplayInTheBrowser(t *testing.T) {
	g := consoletest.DeadLettered(t)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Operator))
	b.Open(g.Server.URL + "/dead-letters")
	b.Sees("main", "2 failed messages", "HTTP 503")
	b.Press("#results", "Replay…")
	b.Sees("#dialog", "2 still in time, 0 would be too late, 0 already sent by another attempt")
	b.Accessible("the dry run")
	b.Fill("#dialog #f-rate_per_second", "lots")
	b.Sees("#dry-run", "must be a whole number")
	b.Replaced("#confirm", func() { b.Press("#dialog", "Replay") })
	b.Sees("#dialog", "must be a whole number")
	b.Fill("#dialog #f-rate_per_second", "50")
	b.Press("#dialog", "Replay 2 messages")
	b.Sees("main", "The replay has begun.", "0 of 2", "Running")
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("#jobs a").focus()`)
	b.Press("#jobs", "Stop")
	b.Sees("#dialog", "Stop this job?")
	b.Press("#dialog", "Cancel")
	g.Must(g.DeadLetters.Step(t.Context()))
	b.Sees("main", "No failed messages", "2 of 2: 2 tried again", "Finished")
	if consoletest.Evaluate[bool](b, `!!document.querySelector("[data-live]")`) {
		t.Error("the page goes on asking although nothing runs")
	}
	b.Accessible("failed messages")
}

func TestFilterDeadLettersInTheBrowser(t *testing.T) {
	g := consoletest.DeadLettered(t)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + "/dead-letters")
	b.Fill("#f-user", "1001")
	b.Sees("#results", "1 failed message", "HTTP 503")
	if got := consoletest.Evaluate[string](b, `location.search`); got != "?channel=&template=&campaign=&user=1001" {
		t.Errorf("the address says %q", got)
	}
	b.Fill("#f-channel", "email")
	b.Sees("#results", "No matches")
	consoletest.Evaluate[chromedp.Void](b, `history.back()`)
	b.Sees("#results", "HTTP 503")
	b.Press("#results", "HTTP 503")
	b.Press("main", "Customer 1001")
	b.Sees("main", "failed permanently", "HTTP 503")
	b.Accessible("a timeline")
}

func TestCorrectionInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 60)
	g.Fire(d, 12, consoletest.Takes)
	g.Reopen(d.ID, time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/templates/1/announcements")
	b.Press("#announcements", "Send correction")
	b.Sees("#dialog", "Correct the opening of", "App")
	b.Accessible("the question")
	b.Press("#dialog", "Send correction")
	b.Sees("main", "The correction is on its way.")
	b.Open(g.Server.URL + "/templates/1/announcements")
	b.Sees("#announcements", "Waiting", "Recipients are being collected.")
	g.Spread(1)
	b.Sees("#announcements", "Finished", "1 of 1 sent.")
	if consoletest.Evaluate[bool](b, `!!document.querySelector("#announcements[data-live]")`) {
		t.Error("the card goes on asking although nothing runs")
	}
	b.Accessible("announcements")
}
