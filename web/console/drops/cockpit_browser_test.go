package drops_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A slot is fired while the page is open, and nothing but its values changes.
func TestASlotFiresInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into bookings values ($1, 12, 0, 1000)`, d.ID)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Operator))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	b.Sees("main", "60-minute reminders in", "All well: 1,000 reminders are reserved", "1,000 reserved")
	before := b.Text(".cockpit-count .ticker")
	consoletest.Within(t, "a tick of the countdown", func() bool { return b.Text(".cockpit-count .ticker") != before })
	if consoletest.Evaluate[string](b, `document.querySelector(".cockpit-count time").title`) == "" {
		t.Error("the viewer's own time is not on hover")
	}
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("#slot-12").mark = "the same"`)

	g.Sending(d, 12, 0, 1000, 0)
	b.Sees("#slot-12", "Sending", "0 of 1,000", "started +42 ms")
	g.Sending(d, 12, 0, 1000, 400)
	b.Sees("#slot-12", "400 of 1,000", "median ≤ 100 ms")
	b.Click("#channel-app summary")
	b.Sees("#channel-app", "400 of 1,000", "600")
	b.Sees(".verdict", "Sending: 400 of 1,000 are sent (40%).")
	b.Sees(".cockpit-count", "55-minute reminders in")
	if width := consoletest.Evaluate[string](b, `document.querySelector("#slot-12 .bar-sent").getAttribute("width")`); width != "400" {
		t.Errorf("the bar is %s of 1000 wide", width)
	}
	if consoletest.Evaluate[string](b, `document.querySelector("#channel-app .spark path").getAttribute("d")`) == "" {
		t.Error("the pulse is empty")
	}
	if consoletest.Evaluate[string](b, `document.querySelector("#slot-12").mark ?? ""`) != "the same" {
		t.Error("the page was drawn anew")
	}
	g.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint) select id, 7, 0, 'failed', 'provider_error', 'HTTP 503', 'HTTP #' from batches`)
	g.Exec(`update batches set failed_count = 1`)
	b.Sees("#channel-app", "Causes of delays", "HTTP 503")
	b.Sees(".verdict", "1 message waits to be tried again.")
	g.Exec(`update batches set sent_count = 1000, failed_count = 0, state = 'done', finished_at = now(); delete from exceptions`)
	g.Exec(`update slot_results set sent = 1000, done_at = now(), late = '{"5": 1000}' where channel = 0`)
	g.Exec(`update slots set state = 'finished', finished_at = now() where slot = 12`)
	b.Sees("#slot-12", "Sent", "1,000 of 1,000")
	b.Sees(".verdict", "All reminder times so far are done: 1,000 of 1,000 sent.")
	b.Accessible("the cockpit")
}

func TestPauseAChannelInTheCockpit(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Sending(d, 12, 1, 1000, 400)
	watcher, b := consoletest.NewTab(t), consoletest.NewTab(t)
	watcher.SignIn(g, g.Hire(staff.Viewer))
	watcher.Open(g.Server.URL + cockpitURL(d.ID))
	watcher.Sees("#channel-email", "Ready")
	b.SignIn(g, g.Hire(staff.Operator))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	b.Click("#channel-email summary")
	b.Press("#channel-email", "Pause E-mail")
	b.Sees("#dialog", "Pause E-mail?", "All staff see your reason.")
	b.Accessible("the question")
	b.Press("#dialog", "Pause")
	b.Sees("#dialog", "Say why")
	b.Fill("#dialog #f-reason", "provider is down")
	b.Press("#dialog", "Pause")
	b.Sees("main", "E-mail is paused.", "provider is down (paused by The operator")
	unfold := func() {
		consoletest.Evaluate[bool](b, `document.querySelector("#channel-email details").open = true`)
	}
	unfold()
	b.Sees("#channel-email", "Resume E-mail")
	watcher.Sees("#channel-email", "Paused", "provider is down")
	watcher.Sees(".verdict", "E-mail is paused. Messages waiting: 600.")
	if strings.Contains(watcher.Text("#channel-email"), "Resume") {
		t.Error("a viewer may resume")
	}
	b.Press("#channel-email", "Resume E-mail")
	b.Press("#dialog", "Resume")
	b.Sees("#channel-email", "Ready")
	unfold()
	b.Sees("#channel-email", "Ready", "Pause E-mail")
	watcher.Sees("#channel-email", "Ready")
}

// At the instant of a slot, and for a minute, the head, the title and the icon of the page change.
// The instant is the server's, whose clock is an hour ahead of the browser's here. The strip shows the slot's messages
// at the top of the page, and can be replayed after the minute.
func TestTheMomentInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into bookings values ($1, 12, 1, 1000)`, d.ID)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	calm := consoletest.Evaluate[string](b, `document.title`)
	icon := consoletest.Evaluate[string](b, `document.querySelector('link[rel="icon"]').href`)
	if !strings.Contains(calm, d.Name) || b.Text("#drop-moment") != "" {
		t.Errorf("an hour ahead the title is %q", calm)
	}
	g.Wait(time.Hour + 3*time.Second)
	g.Sending(d, 12, 1, 1000, 400)
	b.Open(g.Server.URL + cockpitURL(d.ID))
	b.Sees("#drop-moment", "Now: the 60-minute reminders are sent")
	b.Sees("#wave", "Sending of the 60-minute reminders", "400 of 1,000")
	if got := consoletest.Evaluate[string](b, `document.title`); got != "Now: the 60-minute reminders are sent · "+d.Name {
		t.Errorf("the title is %q", got)
	}
	if consoletest.Evaluate[string](b, `document.querySelector('link[rel="icon"]').href`) == icon {
		t.Error("the icon is the same")
	}
	if !consoletest.Evaluate[bool](b, `document.querySelector("#wave").getBoundingClientRect().top < document.querySelector("#journey").getBoundingClientRect().top`) {
		t.Error("the strip is not at the top")
	}
	b.Accessible("the moment")
	first := consoletest.NewTab(t)
	first.SignIn(g, g.Hire(staff.Viewer))
	first.Open(g.Server.URL + "/")
	first.Sees(".today-strip", "Sending of the 60-minute reminders", "400 of 1,000")
	if link := consoletest.Evaluate[string](first, `document.querySelector(".today-strip a").getAttribute("href")`); !strings.HasSuffix(link, "&replay=1#wave") {
		t.Errorf("the strip is replayed at %s", link)
	}
	first.Accessible("the strip on the first page")
	g.Wait(70 * time.Second)
	b.Open(g.Server.URL + cockpitURL(d.ID))
	consoletest.Within(t, "the end of the moment", func() bool { return consoletest.Evaluate[string](b, `document.title`) == calm })
	if b.Text("#drop-moment") != "" || consoletest.Evaluate[string](b, `document.querySelector('link[rel="icon"]').href`) != icon {
		t.Error("the moment does not end")
	}
}

// At the opening the badge, the countdown, the actions and the line of the moment change together, also while the page gets
// nothing from the server. Thirty seconds before the opening the page has the layout of an open drop already.
func TestTheOpeningInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Admin))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	const claimsFirst = `document.querySelector("#claims").getBoundingClientRect().top < document.querySelector("#journey").getBoundingClientRect().top`
	if text := b.Text("#drop-head"); !strings.Contains(text, "Scheduled") || strings.Contains(text, "Report") || consoletest.Evaluate[bool](b, claimsFirst) {
		t.Errorf("hours before the opening the claims are at the top, or the head is %q", text)
	}
	g.Wait(2*time.Hour - 10*time.Second)
	b.Open(g.Server.URL + cockpitURL(d.ID))
	b.Click("[data-live-switch]")
	consoletest.Within(t, "the layout of an open drop", func() bool { return consoletest.Evaluate[bool](b, claimsFirst) })
	consoletest.Within(t, "the last seconds", func() bool { return strings.HasPrefix(b.Text("#drop-moment"), "Opens ") })
	consoletest.Within(t, "the opening", func() bool { return strings.HasPrefix(b.Text("#drop-moment"), "Open now") })
	text := b.Text("#drop-head")
	for _, want := range []string{"Open", "Closes in", "Pause", "Change stock"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %s", want, text)
		}
	}
	for _, gone := range []string{"Scheduled", "Opens in", "Cancel drop", "Move opening"} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is still there: %s", gone, text)
		}
	}
	b.Accessible("the opening")
}

// On a phone the funnel and the stock stand first, below the verdict as a line of the head. The page is
// short.
func TestALiveDropIsShortOnAPhone(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Sending(d, 12, 1, 1000, 400)
	b := consoletest.NewTab(t)
	b.Do(chromedp.EmulateViewport(390, 844))
	b.SignIn(g, g.Hire(staff.Admin))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	b.Sees(".verdict", "Sending: 400 of 1,000")
	if height := consoletest.Evaluate[float64](b, `document.documentElement.scrollHeight`); height > 1600 {
		t.Errorf("the page is %v pixels high", height)
	}
	if order := consoletest.Evaluate[string](b, `[".drop-tabs", ".verdict", "#journey", "#claims", "#wave", "#channel-email"].sort((a, b) =>
		document.querySelector(a).getBoundingClientRect().top - document.querySelector(b).getBoundingClientRect().top).join(" ")`); order != ".drop-tabs .verdict #journey #claims #wave #channel-email" {
		t.Errorf("from top to bottom: %s", order)
	}
	b.Press("#drop-head .actions", "Move opening")
	b.Sees("#dialog", "Move the opening of")
}

func TestCockpitOnAPhone(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Sending(d, 12, 1, 1000, 400)
	b := consoletest.NewTab(t)
	b.Do(chromedp.EmulateViewport(390, 844))
	b.SignIn(g, g.Hire(staff.Operator))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	b.Sees(".verdict", "Sending: 400 of 1,000")
	b.Narrow("the cockpit")
	if bottom := consoletest.Evaluate[float64](b, `document.querySelector(".verdict").getBoundingClientRect().bottom`); bottom > 844 {
		t.Errorf("the verdict ends at %v of 844 pixels: it is not seen at once", bottom)
	}
	b.Accessible("the cockpit on a phone")
}

// The switch works by keyboard, announces its effect, and stops all changes of the page until it is
// used again. Then the page shows the current state.
func TestHoldTheCockpitStill(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Sending(d, 12, 1, 1000, 400)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	g.Sending(d, 12, 1, 1000, 410)
	b.Sees("#slot-12", "410 of 1,000")
	key := func() {
		consoletest.Evaluate[chromedp.Void](b, `document.querySelector("[data-live-switch]").focus()`)
		b.Do(chromedp.KeyEvent(" "))
	}
	key()
	b.Sees("[data-live-switch]", "Paused")
	b.Sees("#live-said", "Live updates are paused.")
	consoletest.Within(t, "the end of the stream", func() bool { return g.Watched() == 0 })
	g.Sending(d, 12, 1, 1000, 500)
	// A swap that renders the switch anew keeps its state.
	consoletest.Evaluate[chromedp.Void](b, `document.querySelector("[data-live-switch]").setAttribute("aria-pressed", "false");
		document.dispatchEvent(new CustomEvent("htmx:after:swap"))`)
	if pressed := consoletest.Evaluate[string](b, `document.querySelector("[data-live-switch]").getAttribute("aria-pressed")`); pressed != "true" {
		t.Errorf("after a swap the switch says aria-pressed=%s", pressed)
	}
	if !strings.Contains(b.Text("#slot-12"), "410 of 1,000") {
		t.Errorf("held still, it shows %q", b.Text("#slot-12"))
	}
	key()
	b.Sees("#live-said", "Live updates are on.")
	b.Sees("#slot-12", "500 of 1,000")
}

// A broken connection is reported as lost, and is restored by itself.
func TestCockpitConnectionLost(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Sending(d, 12, 1, 1000, 400)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Viewer))
	b.Open(g.Server.URL + cockpitURL(d.ID))
	g.Sending(d, 12, 1, 1000, 410)
	b.Sees("#slot-12", "410 of 1,000")
	g.Provoke(`relation "batches" does not exist`)
	g.Exec(`alter table batches rename to away`)
	b.Sees("#live-note", "The live connection is lost.")
	g.As(staff.Viewer).Get(consoletest.LiveURL(shell.TemplateURL(d.ID))).Is(http.StatusInternalServerError)
	g.Exec(`alter table away rename to batches`)
	g.Sending(d, 12, 1, 1000, 500)
	b.Sees("#slot-12", "500 of 1,000")
	consoletest.Within(t, "the note to go", func() bool { return consoletest.Evaluate[bool](b, `document.querySelector("#live-note").hidden`) })
}

func TestChannelsInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Operator))
	b.Open(g.Server.URL + "/channels")
	b.Press("#tile-sms", "Rate")
	b.Sees("#dialog", "Rate of SMS")
	b.Fill("#dialog #f-rate_per_second", "lots")
	b.Press("#dialog .dialog-foot", "Rate")
	b.Sees("#dialog", "must be a whole number")
	b.Fill("#dialog #f-rate_per_second", "250")
	b.Press("#dialog .dialog-foot", "Rate")
	b.Sees("main", "The rate of SMS has been changed.", "At most 250 messages per second.")
	g.Exec(`update channel_settings set paused = true, paused_reason = 'by a colleague' where channel = 1`)
	b.Sees("#tile-email", "Paused", "by a colleague")
	b.Press("#tile-email", "Test")
	b.Sees("h1", "Test E-mail")
	b.Fill("#f-recipient", "1001")
	b.Press("form", "Send test message")
	b.Sees("#tests", "Waiting", "To a customer")
	b.Accessible("a test on its way")
	g.Exec(`update channel_tests set state = 'done', result = 'delivered', took_ms = 340`)
	b.Sees("#tests", "Sent", "340 ms")
	if consoletest.Evaluate[bool](b, `!!document.querySelector("#tests[data-live]")`) {
		t.Error("the list goes on asking although nothing is on its way")
	}
}
