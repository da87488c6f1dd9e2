package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// The preview of a form shows the errors that saving it would show.
func TestPreviewTellsWhatIsWrong(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := g.As(staff.Marketer)
	form := g.TypedForm(48 * time.Hour)
	b.Post("/templates/preview", form).Is(200).Has(`hx-target="#review"`, "¥20.50", "50,000").HasNot("data-for", "data-twice", "Never")
	form.Set("amount_off", "5000")
	form.Set("opens_at", "2055-10-31T02:30")
	form.Set("notify_days", "3, 31")
	b.Post("/templates/preview", form).Is(200).Has(`data-for="f-amount_off"`, "must not exceed the minimum order", `data-twice="opens_at"`, "happens twice that day",
		`data-for="f-notify_days"`, "must be days from 0 to 30, separated by commas").HasNot(`data-for="f-stock"`, `data-twice="closes_at"`)
	b.Post("/templates", form).Is(http.StatusUnprocessableEntity).Has("Amount off : must not exceed", "must be days from 0 to 30")
	form.Set("opens_at_fold", "first")
	form.Set("notify_days", "日")
	b.Post("/templates/preview", form).Is(200).Has(`data-twice="opens_at"`, `data-for="f-notify_days"`).HasNot(`data-for="f-opens_at"`)
}

// Channels are boxes to tick; channels that a page sends back as one list count too.
func TestNoticeChannelsAreTicked(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := g.As(staff.Marketer)
	form := g.TypedForm(48 * time.Hour)
	form.Set("notify_days", "7，3、1")
	form["notify_channels"] = []string{"email", "webhook"}
	b.Post("/templates", form).To("/templates/1")
	a := b.Get("/templates/1/edit").Is(200).Has(`value="7, 3, 1"`, "Webhook (not configured)", `name="notify_channels" value="email" checked`, `name="notify_channels" value="webhook" checked`)
	a.HasNot(`name="notify_channels" value="app" checked`)
	form.Set("version", a.Field("version"))
	form.Set("notify_channels", "app, sms")
	b.Post("/templates/1/edit", form).To("/templates/1")
	if n := g.Number(`select count(*) from templates where notify_days = 138 and notify_channels = 5`); n != 1 {
		t.Error("other channels are stored")
	}
	form.Set("version", "2")
	form.Set("notify_channels", "pigeon")
	b.Post("/templates/1/edit", form).Is(http.StatusUnprocessableEntity).Has("Notification channels : choose among these channels", `id="f-notify_channels"`)
	form.Del("notify_channels")
	b.Post("/templates/1/edit", form).To("/templates/1")
	if n := g.Number(`select count(*) from templates where notify_channels = 1`); n != 1 {
		t.Error("without a tick it is not the app")
	}
	b.Get("/templates/new").Is(200).Has(`name="notify_channels" value="app" checked`)
}

func TestPreviewOfACampaign(t *testing.T) {
	g := consoletest.New(t)
	mine, theirs := g.Published(10, 4*time.Hour), g.Published(11, 4*time.Hour)
	g.Exec(`insert into users (id, name) select n, 'x' from generate_series(1001, 1007) n`)
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (10, 3)`)
	b, limited := g.As(staff.Marketer), g.As(staff.Marketer, 10)
	form := consoletest.CampaignForm("shop", "10", "rate_per_second", "2", "grant_template_id", fmt.Sprint(mine.ID))
	b.Post("/campaigns/preview", form).Is(200).Has("7 people", "7 messages by App at most", "Coupons: at most 7, together worth at most ¥70", "Sending takes 3 s",
		"More than 3 recipients need approval by a second person.", "As it reads for Robin Chen.", "Hello Robin Chen", "Moon cake night", `hx-target="#review"`).HasNot("data-for", "<html")
	form.Set("percent_b", "x")
	form.Set("name", "")
	form.Set("audience", "segment_id:7")
	b.Post("/campaigns/preview", form).Is(200).Has(`data-for="f-name"`, `data-for="f-percent_b"`, `data-for="f-audience"`, "does not exist", "unknown at the moment")
	b.Post("/campaigns", form).Is(http.StatusUnprocessableEntity).Has("3 things need your attention", "Name : Enter a name", "Audience : does not exist", "must be a whole number")
	letter := consoletest.Between(b.Post("/campaigns/preview", consoletest.CampaignForm("body", "Come, {{nope}}")).Is(200).Body, `<article class="letter">`, "</article>")
	if !strings.Contains(letter, "{{nope}}") || !strings.Contains(letter, "{{nope}} is not a variable; there are user, drop") {
		t.Errorf("an unknown variable reads %q", letter)
	}
	b.Post("/campaigns/preview", nil).Is(200).Has(`data-for="f-name"`, `data-for="f-title"`, `data-for="f-starts_at"`)

	// The same form always gets the same answer.
	for range 20 {
		form = consoletest.CampaignForm("audience", string(campaign.Reserved), "audience_value", fmt.Sprint(theirs.ID), "grant_template_id", fmt.Sprint(mine.ID))
		b.Post("/campaigns/preview", form).Is(200).Has(`data-for="f-grant_template_id"`).HasNot(`data-for="f-audience_value"`)
	}

	// A member limited to one shop sees nothing of another shop's template. The form says which
	// shop to choose, and keeps the typed values.
	form = consoletest.CampaignForm("title", "{{coupon.name}}", "grant_template_id", fmt.Sprint(theirs.ID))
	limited.Post("/campaigns/preview", form).Is(200).HasNot("Moon cake night", "¥").Has(`data-for="f-shop"`)
	for d, told := range map[int64]bool{mine.ID: true, theirs.ID: false} {
		reach := limited.Post("/campaigns/preview", consoletest.CampaignForm("shop", "10", "audience", string(campaign.Reserved), "audience_value", fmt.Sprint(d))).Is(200)
		if strings.Contains(reach.Body, "unknown at the moment") == told {
			t.Errorf("template %d: %s", d, reach.Text())
		}
	}
	form.Del("grant_template_id")
	limited.Post("/campaigns", form).Is(http.StatusUnprocessableEntity).Has("Shop : choose one of your shops", `value="Spring &lt;b&gt;"`)
	form.Set("shop", "10")
	limited.Post("/campaigns", form).Is(http.StatusSeeOther)
	g.As(staff.Viewer).Post("/campaigns/preview", form).Is(http.StatusForbidden)
}

// A comma is read as a thousands separator only in the right place, and is never guessed.
func TestCommasInNumbers(t *testing.T) {
	for text, want := range map[string]int64{"10": 1000, "10.5": 1050, " 1,000.50 ": 100050, "1,234,567": 123456700, "12345.6": 1234560} {
		rd := &shell.Reading{Values: map[string]string{"amount_off": text}}
		if got := int64(rd.Amount("amount_off", "CNY")); got != want || len(rd.Broken.List) > 0 {
			t.Errorf("%q is %d, %v", text, got, rd.Broken.List)
		}
	}
	for text, rule := range map[string]string{"10,5": "rule.amount_comma", "1,00": "rule.amount_comma", "1,0000": "rule.amount_comma", ",5": "rule.amount_comma",
		"1000,000": "rule.amount_comma", "1.000,50": "rule.amount_comma", "10.555": "rule.amount_format", "ten": "rule.amount_format", "": "rule.required_amount"} {
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

// Numbers are read however wide their digits are; the typed text stays as it is.
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
	if got := shell.Narrow("ＡＢＣ １２３ 你好〜"); got != "ABC 123 你好〜" {
		t.Errorf("%q", got)
	}
}
