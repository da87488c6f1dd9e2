package console_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// Next validates the step on the server, which shows errors at their fields. A corrected field
// loses its error while it is typed.
func TestStepsOfATemplate(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/templates/new")
	b.Step("1 · Basics")
	b.BarSays("c - - - - -")
	b.Click("[data-next]")
	b.Sees("[data-step='step-1']", "Enter a name")
	b.BarSays("cb - - - - -")
	if !consoletest.Evaluate[bool](b, `document.activeElement.matches("#f-name[aria-invalid=true]") && document.activeElement.getAttribute("aria-describedby") === "f-name-error f-name-help"`) {
		t.Error("the focus is not in the field that is wrong, or nothing explains it")
	}
	b.Types("By steps")
	consoletest.Within(t, "the explanation to go", func() bool { return !strings.Contains(b.Text("[data-step='step-1']"), "Enter a name") })
	b.Next("2 · Discount")
	b.BarSays("d c - - - -")
	b.Fill("#f-amount_off", "5")
	b.Next("3 · Times")
	opens := g.Now().Add(5 * time.Hour).In(consoletest.Berlin(t))
	b.Fill("#f-opens_at", "2055-10-31T02:30")
	b.Fill("#f-closes_at", opens.Add(-time.Hour).Format("2006-01-02T15:04"))
	b.Fill("#f-notify_days", "3, soon")
	b.Click("input[name=notify_channels][value=email]")
	b.Click("[data-next]")
	b.Sees("[data-step='step-3']", "happens twice that day", "This time happens twice that night. Which one do you mean?", "must be days from 0 to 30, separated by commas")
	b.Click("input[name=opens_at_fold][value=second]")
	b.Fill("#f-notify_days", "3, 1")
	b.Sees("[data-step='step-3']", "must be after the opening")
	b.Fill("#f-opens_at", opens.Format("2006-01-02T15:04"))
	consoletest.Within(t, "the question to go with the time that happens twice", func() bool { return !strings.Contains(b.Text("[data-step='step-3']"), "that night") })
	b.Fill("#f-closes_at", opens.Add(time.Hour).Format("2006-01-02T15:04"))
	b.Next("4 · Stock and claiming")
	b.Press("form", "Back")
	b.Step("3 · Times")
	b.BarSays("d d c . - -")
	consoletest.Evaluate[chromedp.Void](b, "history.back()")
	b.Step("4 · Stock and claiming")
	consoletest.Evaluate[chromedp.Void](b, "history.forward()")
	b.Step("3 · Times")
	b.Next("4 · Stock and claiming")
	b.Fill("#f-stock", "12000")
	b.Next("5 · Message")
	b.Sees("#message-previews", "By steps (¥5 off) opens in 10 minutes")
	b.Click("input[name=message_own][value=own]")
	b.Fill("#f-message_title", "Soon: {{drop}}")
	b.Fill("#f-message_text", "Come {{in}}")
	b.Sees("#message-previews", "Soon: By steps", "Come in 10 minutes")
	b.Next("6 · Review")
	b.BarSays("d d d d d c")
	b.Sees("#review", "By steps", "¥5", "App, E-mail", "12,000", "3, 1", "Discounts at most", "¥60,000", "Come {{in}}")
	b.Press("#review", "Change")
	b.Step("1 · Basics")
	b.Click("[data-to='6']")
	b.Step("6 · Review")
	b.Accessible("the review")
	b.Press("form", "Save as draft")
	b.Sees("main", "The draft of “By steps” has been saved.")
	if n := g.Number(`select count(*) from templates where notify_days = 10 and notify_channels = 3 and stock = 12000`); n != 1 {
		t.Error("something else is stored")
	}
	if n := g.Number(`select count(*) from message_versions where template_id = 1 and kind = 'reminder'`); n != 5 {
		t.Errorf("the drop has %d texts of its own", n)
	}
	b.Open(g.Server.URL + "/templates/1/edit")
	b.BarSays("c d d d d .")
	b.Click("[data-to='4']")
	b.Step("4 · Stock and claiming")
	consoletest.Evaluate[chromedp.Void](b, "location.reload()")
	b.Step("4 · Stock and claiming")
	if consoletest.Evaluate[string](b, "location.hash") != "#step-4" {
		t.Error("the address does not name the step")
	}
}

// An error in a hidden step is refused, marked and opened, and the form keeps
// its values.
func TestErrorInAnotherStep(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/templates/new")
	b.Fill("#f-name", "Kept")
	b.Click("details:has(#f-description) > summary")
	b.Fill("#f-description", "two\nlines")
	b.Next("2 · Discount")
	b.Fill("#f-amount_off", "5")
	b.Next("3 · Times")
	opens := g.Now().Add(5 * time.Hour).In(consoletest.Berlin(t)).Format("2006-01-02T15:04")
	b.Fill("#f-opens_at", opens)
	b.Fill("#f-closes_at", g.Now().Add(6*time.Hour).In(consoletest.Berlin(t)).Format("2006-01-02T15:04"))
	b.Next("4 · Stock and claiming")
	b.Fill("#f-stock", "12")
	b.Click("[data-to='2']")
	b.Step("2 · Discount")
	b.Fill("#f-amount_off", "5.555")
	b.Click("[data-to='4']") // on, whatever is wrong
	b.Step("4 · Stock and claiming")
	b.BarSays("d b d c - -")
	b.Fill("#f-per_user_limit", "0")
	b.Press("form", "Save as draft")
	b.Sees("main", "2 things need your attention", "Amount off: must be a number such as 10 or 10.50", "Limit per customer: must be between 1 and 1,000")
	b.Step("2 · Discount")
	b.BarSays("d cb d b d .")
	if !consoletest.Evaluate[bool](b, `document.activeElement.matches("[role=alert]")`) {
		t.Error("the focus is not where it is said what is wrong")
	}
	for selector, want := range map[string]string{"#f-name": "Kept", "#f-description": "two\nlines", "#f-amount_off": "5.555", "#f-opens_at": opens, "#f-stock": "12", "#f-per_user_limit": "0"} {
		if got := b.Value(selector); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	b.Press("[role=alert]", "Limit per customer")
	b.Step("4 · Stock and claiming")
	consoletest.Within(t, "the focus in the field", func() bool {
		return consoletest.Evaluate[bool](b, `document.activeElement.matches("#f-per_user_limit")`)
	})
	b.Fill("#f-per_user_limit", "1")
	b.BarSays("d b d c d .")
	b.Press("[role=alert]", "Amount off")
	b.Step("2 · Discount")
	b.Fill("#f-amount_off", "5")
	b.BarSays("d c d d d .")
	b.Types(kb.Enter)
	b.Sees("main", "The draft of “Kept” has been saved.")
}

// While the server does not answer, steps can be left without validation; saving validates again.
func TestStepsWithoutTheServer(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/templates/new")
	b.Click("[data-next]")
	b.Sees("[data-step='step-1']", "Enter a name")
	b.Expected = "htmx:"
	b.Fill("#f-name", "Offline")
	g.Server.CloseClientConnections()
	g.Server.Listener.Close()
	b.Next("2 · Discount")
	if b.Value("#f-name") != "Offline" {
		t.Error("what was typed is lost")
	}
}

// The campaign's form works the same way. Reach, cost and message are visible in every step.
func TestStepsOfACampaign(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 4*time.Hour)
	g.Exec(`insert into users (id, name) select n, 'x' from generate_series(1001, 1003) n`)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/campaigns/new")
	b.Step("1 · Audience")
	b.Sees("#preview", "Choose the audience first.")
	b.Fill("#f-audience", "all")
	b.Sees("#preview", "3 people", "3 messages by App at most")
	if consoletest.Evaluate[bool](b, `document.querySelector("[name=look]").checkVisibility()`) {
		t.Error("what is shown anyway can be asked for")
	}
	b.Fill("#f-name", "Autumn")
	b.Fill("#f-audience", "user_ids")
	b.Sees("#preview", "Choose the audience first.")
	b.Click("[data-next]")
	b.Sees("[data-step='step-1']", "Enter a value")
	b.Fill("#f-audience_value", "1001, 1002")
	b.Sees("#preview", "2 people")
	b.Next("2 · Message and coupon")
	b.Fill("#f-title", "Tea for {{nmae}}")
	b.Fill("#f-body", "Come by")
	b.Fill("#f-grant_template_id", fmt.Sprint(d.ID))
	b.Sees("#preview", "Come by", "Coupons: at most 2, together worth at most ¥20")
	b.Click("[data-next]")
	b.Sees("[data-step='step-2']", "{{nmae}} is not a variable")
	b.Fill("#f-title", "Tea for {{name|you}}")
	b.Sees("#preview", "Tea for Robin Chen")
	b.Press("#languages", "Add language")
	b.Fill("#f-l0_language", "de")
	b.Fill("#f-l0_title", "Tee")
	b.Click("[data-next]")
	b.Sees("#languages", "Enter the text")
	b.Fill("#f-l0_body", "Komm vorbei")
	b.Sees("#preview", "Komm vorbei")
	b.Press("#languages", "Add language")
	b.Sees("#languages", "German", "Remove New language")
	b.Fill("#f-l1_language", "fr")
	b.Fill("#f-l1_title", "Du thé")
	b.Fill("#f-l1_body", "Viens vite")
	b.Sees("#preview", "Viens vite")
	b.Press("#languages", "Remove New language")
	consoletest.Within(t, "the preview without the removed language", func() bool { return !strings.Contains(b.Text("#preview"), "Viens vite") })
	consoletest.Within(t, "one language", func() bool { return consoletest.Evaluate[bool](b, `!document.querySelector("#f-l1_language")`) })
	if b.Value("#f-l0_body") != "Komm vorbei" {
		t.Error("what was typed in another language is lost")
	}
	b.Next("3 · Compare two versions")
	b.Next("4 · When")
	b.Fill("#f-starts_at", g.Now().Add(time.Hour).Format("2006-01-02T15:04"))
	b.Fill("#f-ends_at", g.Now().Add(48*time.Hour).Format("2006-01-02T15:04"))
	b.Fill("#f-rate_per_second", "5")
	b.Next("5 · Review")
	b.Sees("#review", "Autumn", "Messages per second at most\n5", "Customers by number", "Moon cake night", "Tea for {{name|you}}", "Text (German)", "Komm vorbei")
	b.Accessible("the review of a campaign")
	b.Press("form", "Save draft")
	b.Sees("main", "Autumn", "Draft")

	b.Press("main", "Edit")
	b.BarSays("c d d d .")
	b.Click("[data-to='2']")
	b.Fill("#f-title", "")
	b.Click("[data-to='4']")
	b.Step("4 · When")
	b.Press("form", "Save draft")
	b.Sees("main", "One thing needs your attention")
	b.Step("2 · Message and coupon")
	if b.Value("#f-body") != "Come by" || b.Value("#f-rate_per_second") != "5" {
		t.Error("what was typed is lost")
	}
}

func TestStepsOnAPhone(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	for _, width := range []int64{390, 320} {
		b.Do(chromedp.EmulateViewport(width, 700, chromedp.EmulateMobile, chromedp.EmulateTouch))
		for _, path := range []string{"/templates/new", "/campaigns/new"} {
			for _, step := range []string{"#step-1", "#step-2", "#step-3", "#step-4", "#step-5"} {
				what := fmt.Sprint(path, step, " at ", width)
				b.Open("about:blank")
				b.Open(g.Server.URL + path)
				b.Step("1 · ")
				consoletest.Evaluate[chromedp.Void](b, fmt.Sprintf("void (location.hash = %q)", step))
				b.Step(step[len("#step-"):] + " · ")
				b.Narrow(what)
				if tall := consoletest.Evaluate[float64](b, `document.querySelector("[data-steps]").getBoundingClientRect().height`); tall > 64 {
					t.Errorf("%s: the bar is %v pixels tall", what, tall)
				}
			}
		}
	}
}

// The audience step shows only the fields that its kind needs, with names to
// choose from.
func TestCampaignOffersTemplatesInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 4*time.Hour)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/campaigns/new")
	b.Sees("h1", "New campaign")
	shown := func(want ...string) {
		t.Helper()
		got := consoletest.Evaluate[[]string](b, `["audience_template", "audience_value"].filter(n => document.getElementById("f-" + n).checkVisibility())`)
		if !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%v is asked for, not %v", got, want)
		}
	}
	shown()
	b.Fill("#f-audience", "user_ids")
	shown("audience_value")
	b.Fill("#f-audience", "reserved_template_id")
	shown("audience_template")
	b.Fill("#f-audience_template", "cake")
	consoletest.Within(t, "the names", func() bool {
		return consoletest.Evaluate[string](b, `document.querySelector("#f-audience_template-choices option")?.value ?? ""`) == fmt.Sprintf("%s (#%d)", d.Name, d.ID)
	})
	b.Fill("#f-audience_template", fmt.Sprintf("%s (#%d)", d.Name, d.ID))
	b.Sees("#preview", "0 people")
	b.Accessible("a campaign for a template")
}

// A reloaded form has lost the typed values, so it begins at the first step that needs them.
func TestReloadedFormBeginsWhereItIsEmpty(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	for _, form := range []string{"/templates/new", "/campaigns/new"} {
		b.Open(g.Server.URL + form + "#step-2")
		consoletest.Within(t, "the first step of "+form, func() bool {
			return consoletest.Evaluate[string](b, `document.readyState + [...document.querySelectorAll("[data-step]")].find(s => !s.hidden)?.dataset.step + location.hash`) == "completestep-1#step-1"
		})
	}
}
