package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// A slot goes out while somebody looks, and nothing but its values changes.
func TestASlotFiresInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.exec(`insert into bookings values ($1, 12, 0, 1000)`, d.ID)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Operator))
	b.open(g.server.URL + cockpitURL(d.ID))
	b.sees("main", "60-minute reminders in", "All well: 1,000 reminders are booked", "1,000 booked")
	before := b.text(".deck-count .ticker")
	within(t, "a tick of the countdown", func() bool { return b.text(".deck-count .ticker") != before })
	if evaluate[string](b, `document.querySelector(".deck-count time").title`) == "" {
		t.Error("the viewer's own time is not on hover")
	}
	evaluate[chromedp.Void](b, `document.querySelector("#slot-12").mark = "the same"`)

	g.sending(d, 12, 0, 1000, 0)
	b.sees("#slot-12", "Sending", "0 of 1,000", "fired +42 ms")
	g.sending(d, 12, 0, 1000, 400)
	b.sees("#slot-12", "400 of 1,000", "late ≤ 100 ms")
	b.sees("#channel-app", "400 of 1,000", "600")
	b.sees(".verdict", "Sending: 400 of 1,000 are out (40%).")
	b.sees(".deck-count", "55-minute reminders in")
	if width := evaluate[string](b, `document.querySelector("#slot-12 .bar-sent").getAttribute("width")`); width != "400" {
		t.Errorf("the bar is %s of 1000 wide", width)
	}
	if evaluate[string](b, `document.querySelector("#channel-app .spark path").getAttribute("d")`) == "" {
		t.Error("the pulse is empty")
	}
	if evaluate[string](b, `document.querySelector("#slot-12").mark ?? ""`) != "the same" {
		t.Error("the page was drawn anew")
	}
	g.exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint) select id, 7, 0, 'failed', 'provider_error', 'HTTP 503', 'HTTP #' from batches`)
	g.exec(`update batches set failed_count = 1`)
	b.sees("#channel-app", "Why messages did not go out at once", "HTTP 503")
	b.sees(".verdict", "1 message waits to be tried again.")
	g.exec(`update batches set sent_count = 1000, failed_count = 0, state = 'done', finished_at = now(); delete from exceptions`)
	g.exec(`update slot_results set sent = 1000, done_at = now(), late = '{"5": 1000}' where channel = 0`)
	g.exec(`update slots set state = 'finished', finished_at = now() where slot = 12`)
	b.sees("#slot-12", "Finished", "1,000 of 1,000")
	b.sees(".verdict", "Every slot so far is done: 1,000 of 1,000 delivered.")
	b.accessible("the cockpit")
}

func TestPauseAChannelInTheCockpit(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.sending(d, 12, 1, 1000, 400)
	watcher, b := newTab(t), newTab(t)
	watcher.signIn(g, g.hire(staff.Viewer))
	watcher.open(g.server.URL + cockpitURL(d.ID))
	watcher.sees("#channel-email", "ready")
	b.signIn(g, g.hire(staff.Operator))
	b.open(g.server.URL + cockpitURL(d.ID))
	b.press("#channel-email", "Pause E-mail")
	b.sees("#dialog", "Pause E-mail?", "Everybody sees your reason.")
	b.accessible("the question")
	b.press("#dialog", "Pause")
	b.sees("#dialog", "is required")
	b.fill("#dialog #f-reason", "provider is down")
	b.press("#dialog", "Pause")
	b.sees("main", "E-mail is paused.", "Resume E-mail", "provider is down (paused by The operator")
	watcher.sees("#channel-email", "paused", "provider is down")
	watcher.sees(".verdict", "E-mail is paused: 600 messages wait for it.")
	if strings.Contains(watcher.text("#channel-email"), "Resume") {
		t.Error("a viewer may resume")
	}
	b.press("#channel-email", "Resume E-mail")
	b.press("#dialog", "Resume")
	b.sees("#channel-email", "ready", "Pause E-mail")
	watcher.sees("#channel-email", "ready")
}

func TestCockpitOnAPhone(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.sending(d, 12, 1, 1000, 400)
	b := newTab(t)
	b.do(chromedp.EmulateViewport(390, 844))
	b.signIn(g, g.hire(staff.Operator))
	b.open(g.server.URL + cockpitURL(d.ID))
	b.sees(".verdict", "Sending: 400 of 1,000")
	b.narrow("the cockpit")
	if bottom := evaluate[float64](b, `document.querySelector(".verdict").getBoundingClientRect().bottom`); bottom > 844 {
		t.Errorf("the verdict ends at %v of 844 pixels: it is not seen at once", bottom)
	}
	b.accessible("the cockpit on a phone")
}

// The switch works by keyboard, says what it did, and holds everything still
// until it is used again; then nothing was missed.
func TestHoldTheCockpitStill(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.sending(d, 12, 1, 1000, 400)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(g.server.URL + cockpitURL(d.ID))
	g.sending(d, 12, 1, 1000, 410)
	b.sees("#slot-12", "410 of 1,000")
	key := func() {
		evaluate[chromedp.Void](b, `document.querySelector("[data-live-switch]").focus()`)
		b.do(chromedp.KeyEvent(" "))
	}
	key()
	b.sees("[data-live-switch]", "Paused")
	b.sees("#live-said", "Live updates are paused.")
	within(t, "the end of the stream", func() bool { return g.Watched() == 0 })
	g.sending(d, 12, 1, 1000, 500)
	// A swap that draws the switch anew does not let it forget.
	evaluate[chromedp.Void](b, `document.querySelector("[data-live-switch]").setAttribute("aria-pressed", "false");
		document.dispatchEvent(new CustomEvent("htmx:after:swap"))`)
	if pressed := evaluate[string](b, `document.querySelector("[data-live-switch]").getAttribute("aria-pressed")`); pressed != "true" {
		t.Errorf("after a swap the switch says aria-pressed=%s", pressed)
	}
	if !strings.Contains(b.text("#slot-12"), "410 of 1,000") {
		t.Errorf("held still, it shows %q", b.text("#slot-12"))
	}
	key()
	b.sees("#live-said", "Live updates go on.")
	b.sees("#slot-12", "500 of 1,000")
}

// A connection that breaks is said to be lost, and comes back by itself.
func TestCockpitConnectionLost(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.sending(d, 12, 1, 1000, 400)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Viewer))
	b.open(g.server.URL + cockpitURL(d.ID))
	g.sending(d, 12, 1, 1000, 410)
	b.sees("#slot-12", "410 of 1,000")
	g.provoke(`relation "batches" does not exist`)
	g.exec(`alter table batches rename to away`)
	b.sees("#live-note", "The live connection is lost.")
	g.as(staff.Viewer).get(liveURL(shell.TemplateURL(d.ID))).is(http.StatusInternalServerError)
	g.exec(`alter table away rename to batches`)
	g.sending(d, 12, 1, 1000, 500)
	b.sees("#slot-12", "500 of 1,000")
	within(t, "the note to go", func() bool { return evaluate[bool](b, `document.querySelector("#live-note").hidden`) })
}

func TestChannelsInTheBrowser(t *testing.T) {
	g := newRig(t)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Operator))
	b.open(g.server.URL + "/channels")
	b.press("#tile-sms", "Rate")
	b.sees("#dialog", "Rate of SMS")
	b.fill("#dialog #f-rate_per_second", "lots")
	b.press("#dialog .dialog-foot", "Rate")
	b.sees("#dialog", "must be a whole number")
	b.fill("#dialog #f-rate_per_second", "250")
	b.press("#dialog .dialog-foot", "Rate")
	b.sees("main", "The rate of SMS has been changed.", "At most 250 messages per second.")
	g.exec(`update channel_settings set paused = true, paused_reason = 'by a colleague' where channel = 1`)
	b.sees("#tile-email", "paused", "by a colleague")
	b.press("#tile-email", "Test")
	b.sees("h1", "Test E-mail")
	b.fill("#f-recipient", "1001")
	b.press("form", "Send test message")
	b.sees("#tests", "waiting", "To a user")
	b.accessible("a test on its way")
	g.exec(`update channel_tests set state = 'done', result = 'delivered', took_ms = 340`)
	b.sees("#tests", "sent", "340 ms")
	if evaluate[bool](b, `!!document.querySelector("#tests[data-live]")`) {
		t.Error("the list goes on asking although nothing is on its way")
	}
}
