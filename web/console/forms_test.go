package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// The preview of a form says what its save would.
func TestPreviewTellsWhatIsWrong(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := g.as(staff.Marketer)
	form := g.typedForm(48 * time.Hour)
	b.post("/templates/preview", form).is(200).has(`hx-target="#review"`, "CN¥20.50", "50,000", "Never").hasNot("data-for", "data-twice")
	form.Set("amount_off", "5000")
	form.Set("opens_at", "2027-10-31T02:30")
	form.Set("notify_days", "3, 31")
	b.post("/templates/preview", form).is(200).has(`data-for="f-amount_off"`, "must not exceed the minimum order", `data-twice="opens_at"`, "happens twice that day",
		`data-for="f-notify_days"`, "must be days from 0 to 30, separated by commas").hasNot(`data-for="f-stock"`, `data-twice="closes_at"`)
	b.post("/templates", form).is(http.StatusUnprocessableEntity).has("Amount off : must not exceed", "must be days from 0 to 30")
	form.Set("opens_at_fold", "first")
	form.Set("notify_days", "日")
	b.post("/templates/preview", form).is(200).has(`data-twice="opens_at"`, `data-for="f-notify_days"`).hasNot(`data-for="f-opens_at"`)
}

// Channels are boxes to tick; what a page sends back as one list counts too.
func TestNoticeChannelsAreTicked(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	b := g.as(staff.Marketer)
	form := g.typedForm(48 * time.Hour)
	form.Set("notify_days", "7，3、1")
	form["notify_channels"] = []string{"email", "webhook"}
	b.post("/templates", form).to("/templates/1")
	a := b.get("/templates/1/edit").is(200).has(`value="7, 3, 1"`, "Webhook (not configured)", `name="notify_channels" value="email" checked`, `name="notify_channels" value="webhook" checked`)
	a.hasNot(`name="notify_channels" value="app" checked`)
	form.Set("version", a.field("version"))
	form.Set("notify_channels", "app, sms")
	b.post("/templates/1/edit", form).to("/templates/1")
	if n := g.number(`select count(*) from templates where notify_days = 138 and notify_channels = 5`); n != 1 {
		t.Error("other channels are stored")
	}
	form.Set("version", "2")
	form.Set("notify_channels", "pigeon")
	b.post("/templates/1/edit", form).is(http.StatusUnprocessableEntity).has("Notification channels : choose among these channels", `id="f-notify_channels"`)
	form.Del("notify_channels")
	b.post("/templates/1/edit", form).to("/templates/1")
	if n := g.number(`select count(*) from templates where notify_channels = 1`); n != 1 {
		t.Error("without a tick it is not the app")
	}
	b.get("/templates/new").is(200).has(`name="notify_channels" value="app" checked`)
}

func TestPreviewOfACampaign(t *testing.T) {
	g := newRig(t)
	mine, theirs := g.published(10, 4*time.Hour), g.published(11, 4*time.Hour)
	g.exec(`insert into users (id, name) select n, 'x' from generate_series(1001, 1007) n`)
	g.exec(`insert into campaign_limits (shop_number, approval_above) values (10, 3)`)
	b, limited := g.as(staff.Marketer), g.as(staff.Marketer, 10)
	form := campaignForm("shop", "10", "rate_per_second", "2", "grant_template_id", fmt.Sprint(mine.ID))
	b.post("/campaigns/preview", form).is(200).has("7 people", "7 messages by App at most", "7 coupons at most, together worth CN¥70 at most", "Sending takes 3 s",
		"More than 3 recipients need approval by a second person.", "Hello you", "Moon cake night", `hx-target="#review"`).hasNot("data-for", "<html")
	form.Set("percent_b", "x")
	form.Set("name", "")
	form.Set("audience", "segment_id:7")
	b.post("/campaigns/preview", form).is(200).has(`data-for="f-name"`, `data-for="f-percent_b"`, `data-for="f-audience_value"`, "does not exist", "not known right now")
	b.post("/campaigns", form).is(http.StatusUnprocessableEntity).has("3 things need your attention", "Name : is required", "Which ones : does not exist", "must be a whole number")
	letter := between(b.post("/campaigns/preview", campaignForm("body", "Come, {{nope}}")).is(200).body, `<article class="letter">`, "</article>")
	if !strings.Contains(letter, "{{nope}}") || !strings.Contains(letter, "has a variable that does not exist or is not closed") {
		t.Errorf("an unknown variable reads %q", letter)
	}
	b.post("/campaigns/preview", nil).is(200).has(`data-for="f-name"`, `data-for="f-title"`, `data-for="f-starts_at"`)

	// The same form is always told the same.
	for range 20 {
		form = campaignForm("audience", string(campaign.Reserved), "audience_value", fmt.Sprint(theirs.ID), "grant_template_id", fmt.Sprint(mine.ID))
		b.post("/campaigns/preview", form).is(200).has(`data-for="f-grant_template_id"`).hasNot(`data-for="f-audience_value"`)
	}

	// Who is in charge of one shop sees nothing of another's template, and is
	// told which shop to choose instead of losing what was typed.
	form = campaignForm("title", "{{coupon.name}}", "grant_template_id", fmt.Sprint(theirs.ID))
	limited.post("/campaigns/preview", form).is(200).hasNot("Moon cake night", "CN¥").has(`data-for="f-shop"`)
	for d, told := range map[int64]bool{mine.ID: true, theirs.ID: false} {
		reach := limited.post("/campaigns/preview", campaignForm("shop", "10", "audience", string(campaign.Reserved), "audience_value", fmt.Sprint(d))).is(200)
		if strings.Contains(reach.body, "not known right now") == told {
			t.Errorf("template %d: %s", d, reach.text())
		}
	}
	form.Del("grant_template_id")
	limited.post("/campaigns", form).is(http.StatusUnprocessableEntity).has("Shop : choose one of your shops", `value="Spring &lt;b&gt;"`)
	form.Set("shop", "10")
	limited.post("/campaigns", form).is(http.StatusSeeOther)
	g.as(staff.Viewer).post("/campaigns/preview", form).is(http.StatusForbidden)
}

// A comma is a thousands separator where it can be one, and never guessed at.
func TestCommasInNumbers(t *testing.T) {
	for text, want := range map[string]int64{"10": 1000, "10.5": 1050, " 1,000.50 ": 100050, "1,234,567": 123456700, "12345.6": 1234560} {
		rd := &shell.Reading{Values: map[string]string{"amount_off": text}}
		if got := int64(rd.Amount("amount_off", "CNY")); got != want || len(rd.Broken.List) > 0 {
			t.Errorf("%q is %d, %v", text, got, rd.Broken.List)
		}
	}
	for text, rule := range map[string]string{"10,5": "rule.amount_comma", "1,00": "rule.amount_comma", "1,0000": "rule.amount_comma", ",5": "rule.amount_comma",
		"1000,000": "rule.amount_comma", "1.000,50": "rule.amount_comma", "10.555": "rule.amount_format", "ten": "rule.amount_format", "": "rule.required"} {
		rd := &shell.Reading{Values: map[string]string{"amount_off": text}}
		rd.Amount("amount_off", "CNY")
		if len(rd.Broken.List) != 1 || rd.Broken.List[0].Key != rule {
			t.Errorf("amount %q: %v, want %s", text, rd.Broken.List, rule)
		}
	}
	for text, want := range map[string]int64{"10": 10, "50,000": 50000, "1,234,567": 1234567, "-5": -5} {
		rd := &shell.Reading{Values: map[string]string{"stock": text}}
		if got := rd.Number("stock"); got != want || len(rd.Broken.List) > 0 {
			t.Errorf("%q is %d, %v", text, got, rd.Broken.List)
		}
	}
	for text, rule := range map[string]string{"10,5": "rule.number_comma", "50000,": "rule.number_comma", "1.5": "rule.number", "x": "rule.number"} {
		rd := &shell.Reading{Values: map[string]string{"stock": text}}
		rd.Number("stock")
		if len(rd.Broken.List) != 1 || rd.Broken.List[0].Key != rule {
			t.Errorf("number %q: %v, want %s", text, rd.Broken.List, rule)
		}
	}
}

// Numbers are read however wide their digits are; what was typed stays as it is.
func TestNumbersInFullWidth(t *testing.T) {
	rd := &shell.Reading{Values: map[string]string{"stock": "　１，０００ ", "amount_off": "１２．５０", "per_user_limit": "１０，００"}}
	if n := rd.Number("stock"); n != 1000 {
		t.Errorf("stock %d", n)
	}
	if a := rd.Amount("amount_off", "CNY"); a != 1250 || len(rd.Broken.List) > 0 {
		t.Errorf("amount %d, %+v", a, rd.Broken.List)
	}
	if rd.Number("per_user_limit"); len(rd.Broken.List) != 1 || rd.Broken.List[0].Key != "rule.number_comma" {
		t.Errorf("a comma where none can be: %+v", rd.Broken.List)
	}
	if n, broken := typedCount("１０００"); n != 1000 || broken != nil {
		t.Errorf("count %d, %+v", n, broken)
	}
	if got := shell.Narrow("ＡＢＣ １２３ 你好〜"); got != "ABC 123 你好〜" {
		t.Errorf("%q", got)
	}
}
