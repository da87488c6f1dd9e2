package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/staff"
)

// state tells how the bar marks each step of a form: c for the current one, d
// for done, b for one that needs attention, - for one that cannot be opened
// yet, . for others.
func (b *tab) state() string {
	b.Helper()
	return evaluate[string](b, `[...document.querySelectorAll("[data-steps] button")].map(e =>
		(e.ariaCurrent === "step" ? "c" : "") + (e.dataset.state ? e.dataset.state[0] : e.disabled ? "-" : e.ariaCurrent ? "" : ".")).join(" ")`)
}

func (b *tab) barSays(want string) {
	b.Helper()
	within(b.T, "the bar to say "+want+", not "+b.state(), func() bool { return b.state() == want })
}

func (b *tab) value(selector string) string {
	b.Helper()
	return evaluate[string](b, fmt.Sprintf(`document.querySelector(%q).value`, selector))
}

// Next asks the server, which explains what is wrong in place; what is right
// by now loses its explanation while it is typed.
func TestStepsOfATemplate(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/templates/new")
	b.step("1 · Basics")
	b.barSays("c - - - -")
	b.click("[data-next]")
	b.sees("[data-step='step-1']", "is required")
	b.barSays("cb - - - -")
	if !evaluate[bool](b, `document.activeElement.matches("#f-name[aria-invalid=true]") && document.activeElement.getAttribute("aria-describedby") === "f-name-error f-name-help"`) {
		t.Error("the focus is not in the field that is wrong, or nothing explains it")
	}
	b.types("By steps")
	within(t, "the explanation to go", func() bool { return !strings.Contains(b.text("[data-step='step-1']"), "is required") })
	b.next("2 · Discount")
	b.barSays("d c - - -")
	b.fill("#f-amount_off", "5")
	b.next("3 · Times")
	opens := g.now().Add(5 * time.Hour).In(berlin(t))
	b.fill("#f-opens_at", "2027-10-31T02:30")
	b.fill("#f-closes_at", opens.Add(-time.Hour).Format("2006-01-02T15:04"))
	b.fill("#f-notify_days", "3, soon")
	b.click("input[name=notify_channels][value=email]")
	b.click("[data-next]")
	b.sees("[data-step='step-3']", "happens twice that day", "This time happens twice that night. Which one do you mean?", "must be days from 0 to 30, separated by commas")
	b.click("input[name=opens_at_fold][value=second]")
	b.fill("#f-notify_days", "3, 1")
	b.sees("[data-step='step-3']", "must be after the opening")
	b.fill("#f-opens_at", opens.Format("2006-01-02T15:04"))
	within(t, "the question to go with the time that happens twice", func() bool { return !strings.Contains(b.text("[data-step='step-3']"), "that night") })
	b.fill("#f-closes_at", opens.Add(time.Hour).Format("2006-01-02T15:04"))
	b.next("4 · Stock and claiming")
	b.press("form", "Back")
	b.step("3 · Times")
	b.barSays("d d c . -")
	evaluate[chromedp.Void](b, "history.back()")
	b.step("4 · Stock and claiming")
	evaluate[chromedp.Void](b, "history.forward()")
	b.step("3 · Times")
	b.next("4 · Stock and claiming")
	b.fill("#f-stock", "12000")
	b.next("5 · Review")
	b.barSays("d d d d c")
	b.sees("#review", "By steps", "CN¥5", "App, E-mail", "12,000", "3, 1", "Claim gate")
	b.press("#review", "Change")
	b.step("1 · Basics")
	b.click("[data-to='5']")
	b.step("5 · Review")
	b.accessible("the review")
	b.press("form", "Save as draft")
	b.sees("main", "The draft of “By steps” has been saved.")
	if n := g.number(`select count(*) from templates where notify_days = 10 and notify_channels = 3 and stock = 12000`); n != 1 {
		t.Error("something else is stored")
	}
	b.open(g.server.URL + "/templates/1/edit")
	b.barSays("c d d d .")
	b.click("[data-to='4']")
	b.step("4 · Stock and claiming")
	evaluate[chromedp.Void](b, "location.reload()")
	b.step("4 · Stock and claiming")
	if evaluate[string](b, "location.hash") != "#step-4" {
		t.Error("the address does not name the step")
	}
}

// What is wrong in a step that nobody sees is refused, marked and opened, and
// nothing else is lost.
func TestErrorInAnotherStep(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/templates/new")
	b.fill("#f-name", "Kept")
	b.fill("#f-description", "two\nlines")
	b.next("2 · Discount")
	b.fill("#f-amount_off", "5")
	b.next("3 · Times")
	opens := g.now().Add(5 * time.Hour).In(berlin(t)).Format("2006-01-02T15:04")
	b.fill("#f-opens_at", opens)
	b.fill("#f-closes_at", g.now().Add(6*time.Hour).In(berlin(t)).Format("2006-01-02T15:04"))
	b.next("4 · Stock and claiming")
	b.fill("#f-stock", "12")
	b.click("[data-to='2']")
	b.step("2 · Discount")
	b.fill("#f-amount_off", "5.555")
	b.click("[data-to='4']") // on, whatever is wrong
	b.step("4 · Stock and claiming")
	b.barSays("d b d c -")
	b.fill("#f-per_user_limit", "0")
	b.press("form", "Save as draft")
	b.sees("main", "2 things need your attention", "Amount off: must be a number such as 10 or 10.50", "Limit per user: must be between 1 and 1,000")
	b.step("2 · Discount")
	b.barSays("d cb d b .")
	if !evaluate[bool](b, `document.activeElement.matches("[role=alert]")`) {
		t.Error("the focus is not where it is said what is wrong")
	}
	for selector, want := range map[string]string{"#f-name": "Kept", "#f-description": "two\nlines", "#f-amount_off": "5.555", "#f-opens_at": opens, "#f-stock": "12", "#f-per_user_limit": "0"} {
		if got := b.value(selector); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	b.press("[role=alert]", "Limit per user")
	b.step("4 · Stock and claiming")
	within(t, "the focus in the field", func() bool { return evaluate[bool](b, `document.activeElement.matches("#f-per_user_limit")`) })
	b.fill("#f-per_user_limit", "1")
	b.barSays("d b d c .")
	b.press("[role=alert]", "Amount off")
	b.step("2 · Discount")
	b.fill("#f-amount_off", "5")
	b.barSays("d c d d .")
	b.types(kb.Enter)
	b.sees("main", "The draft of “Kept” has been saved.")
}

// While the server cannot be asked, nobody is held up; the save asks again.
func TestStepsWithoutTheServer(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/templates/new")
	b.click("[data-next]")
	b.sees("[data-step='step-1']", "is required")
	b.expected = "htmx:"
	b.fill("#f-name", "Offline")
	g.server.CloseClientConnections()
	g.server.Listener.Close()
	b.next("2 · Discount")
	if b.value("#f-name") != "Offline" {
		t.Error("what was typed is lost")
	}
}

// The campaign's form goes the same way; reach, cost and message stand beside
// it all the time.
func TestStepsOfACampaign(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 4*time.Hour)
	g.exec(`insert into users (id, name) select n, 'x' from generate_series(1001, 1003) n`)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/campaigns/new")
	b.step("1 · Who gets it")
	b.sees("#preview", "3 people", "3 messages by App at most")
	if evaluate[bool](b, `document.querySelector("[name=look]").checkVisibility()`) {
		t.Error("what is shown anyway can be asked for")
	}
	b.fill("#f-name", "Autumn")
	b.fill("#f-audience", "user_ids")
	b.sees("#preview", "Choose the audience first.")
	b.click("[data-next]")
	b.sees("[data-step='step-1']", "is required")
	b.fill("#f-audience_value", "1001, 1002")
	b.sees("#preview", "2 people")
	b.next("2 · What they get")
	b.fill("#f-title", "Tea for {{nmae}}")
	b.fill("#f-body", "Come by")
	b.fill("#f-grant_template_id", fmt.Sprint(d.ID))
	b.sees("#preview", "Come by", "2 coupons at most, together worth CN¥20 at most")
	b.click("[data-next]")
	b.sees("[data-step='step-2']", "has a variable that does not exist")
	b.fill("#f-title", "Tea for {{name|you}}")
	b.sees("#preview", "Tea for you")
	b.next("3 · Compare two versions")
	b.next("4 · When")
	b.fill("#f-starts_at", g.now().Add(time.Hour).Format("2006-01-02T15:04"))
	b.fill("#f-ends_at", g.now().Add(48*time.Hour).Format("2006-01-02T15:04"))
	b.fill("#f-rate_per_second", "1")
	b.sees("#preview", "Sending takes 2 s at the campaign’s rate.")
	b.next("5 · Review")
	b.sees("#review", "Autumn", "Users by number", "Moon cake night", "Tea for {{name|you}}")
	b.accessible("the review of a campaign")
	b.press("form", "Save draft")
	b.sees("main", "Autumn", "Draft")

	b.press("main", "Edit")
	b.barSays("c d d d .")
	b.click("[data-to='2']")
	b.fill("#f-title", "")
	b.click("[data-to='4']")
	b.step("4 · When")
	b.press("form", "Save draft")
	b.sees("main", "One thing needs your attention")
	b.step("2 · What they get")
	if b.value("#f-body") != "Come by" || b.value("#f-rate_per_second") != "1" {
		t.Error("what was typed is lost")
	}
}

func TestStepsOnAPhone(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	for _, width := range []int64{390, 320} {
		b.do(chromedp.EmulateViewport(width, 700, chromedp.EmulateMobile, chromedp.EmulateTouch))
		for _, path := range []string{"/templates/new", "/campaigns/new"} {
			for _, step := range []string{"#step-1", "#step-2", "#step-3", "#step-4", "#step-5"} {
				what := fmt.Sprint(path, step, " at ", width)
				b.open("about:blank")
				b.open(g.server.URL + path)
				b.step("1 · ")
				evaluate[chromedp.Void](b, fmt.Sprintf("void (location.hash = %q)", step))
				b.step(step[len("#step-"):] + " · ")
				b.narrow(what)
				if tall := evaluate[float64](b, `document.querySelector("[data-steps]").getBoundingClientRect().height`); tall > 64 {
					t.Errorf("%s: the bar is %v pixels tall", what, tall)
				}
			}
		}
	}
}

// Who a campaign is for asks for no more than that needs, and offers names.
func TestCampaignOffersTemplatesInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 4*time.Hour)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	b.open(g.server.URL + "/campaigns/new")
	b.sees("h1", "New campaign")
	shown := func(want ...string) {
		t.Helper()
		got := evaluate[[]string](b, `["audience_template", "audience_value"].filter(n => document.getElementById("f-" + n).checkVisibility())`)
		if !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%v is asked for, not %v", got, want)
		}
	}
	shown()
	b.fill("#f-audience", "user_ids")
	shown("audience_value")
	b.fill("#f-audience", "reserved_template_id")
	shown("audience_template")
	b.fill("#f-audience_template", "cake")
	within(t, "the names", func() bool {
		return evaluate[string](b, `document.querySelector("#f-audience_template-choices option")?.value ?? ""`) == fmt.Sprintf("%s (#%d)", d.Name, d.ID)
	})
	b.fill("#f-audience_template", fmt.Sprintf("%s (#%d)", d.Name, d.ID))
	b.sees("#preview", "0 people")
	b.accessible("a campaign for a template")
}

// A page that is loaded anew has lost what was typed, so it begins where that
// has to be typed again.
func TestReloadedFormBeginsWhereItIsEmpty(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	for _, form := range []string{"/templates/new", "/campaigns/new"} {
		b.open(g.server.URL + form + "#step-2")
		within(t, "the first step of "+form, func() bool {
			return evaluate[string](b, `document.readyState + [...document.querySelectorAll("[data-step]")].find(s => !s.hidden)?.dataset.step + location.hash`) == "completestep-1#step-1"
		})
	}
}
