package campaigns_test

import (
	"bytes"
	"image"
	"image/png"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// A new campaign begins with the shop of the last campaign and without an audience.
func TestDefaultsOfANewCampaign(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Shop(20)
	b := g.As(staff.Marketer)
	b.Get("/campaigns/new").Is(200).Has(`value="10" selected`, "Choose an audience")
	b.Post("/campaigns", consoletest.CampaignForm("shop", "20")).Is(http.StatusSeeOther)
	b.Get("/campaigns/new").Is(200).Has(`value="20" selected`)
	b.Post("/campaigns", consoletest.CampaignForm("audience", "")).Is(http.StatusUnprocessableEntity)
}

// A mail is composed from blocks with plain forms: the first are made of the title and the text.
func TestMailsOfCampaignsAreComposed(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	form := consoletest.CampaignForm("channel", "email", "title", "Tea", "body", "Come", "blocks", "a:start")
	b.Post("/campaigns", form).Is(200).Has(`name="a_block0_type" value="heading"`, `name="a_block1_type" value="text"`, ">Come</textarea>", `name="a_block2_type" value="button"`)
	for i, block := range [][3]string{{"heading", "Tea", ""}, {"text", "See {{link}}", ""}, {"image", "A cup", "http://shop.example/cup.png"}} {
		name := "a_block" + string(rune('0'+i))
		form.Set(name+"_type", block[0])
		form.Set(name+"_text", block[1])
		form.Set(name+"_url", block[2])
	}
	form.Set("body", "")
	form.Set("blocks", "a:up-2")
	b.Post("/campaigns", form).Is(200).Has(`name="a_block1_type" value="image"`, `name="a_block2_type" value="text"`)
	form.Set("blocks", "a:add")
	form.Set("a_new_block", "footer")
	b.Post("/campaigns", form).Is(200).Has(`name="a_block3_type" value="footer"`)
	form.Del("blocks")
	b.Post("/campaigns", form).Is(http.StatusUnprocessableEntity).Has("must be an https address", "leads nowhere")
	form.Set("a_block2_url", "https://shop.example/cup.png")
	form.Set("link", "https://shop.example/tea")
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page+"/edit").Is(200).Has(`value="https://shop.example/cup.png"`, `value="https://shop.example/tea"`)
}

// A block of a campaign takes its picture from the library of the shop, and no picture of a shop that
// the member may not change.
func TestPicturesInBlocksOfACampaign(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := g.As(staff.Marketer, 10)
	var file bytes.Buffer
	g.Must(png.Encode(&file, image.NewNRGBA(image.Rect(0, 0, 40, 20))))
	b.Upload("/shops/10/pictures", "cup.png", file.String(), "alt", "A cup").To("/shops/10/pictures")
	address := regexp.MustCompile(`/pictures/10/[0-9a-f]{64}\.png`).FindString(b.Get("/shops/10/pictures").Is(200).Body)
	form := consoletest.CampaignForm("channel", "email", "shop", "10", "link", "https://shop.example/tea", "body", "", "blocks", "a:up-0",
		"a_block0_type", "image", "a_block0_url", "", "a_block0_text", "")
	b.Post("/campaigns", form).Is(200).Has(`data-drop-picture="/shops/10/pictures"`, `data-address="f-a_block0_url"`, `<option value="https://drop.example`+address)
	form.Del("blocks")
	form.Set("a_block0_picture", "https://drop.example"+address)
	form.Set("shop", "")
	b.Post("/campaigns", form).Is(http.StatusUnprocessableEntity).Has("must be an https address").HasNot(`data-drop-picture`)
	form.Set("shop", "10")
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page+"/edit").Is(200).Has(`value="https://drop.example`+address+`"`, `value="A cup"`)
	b.Get("/shops/10/pictures").Is(200).Has(`href="` + page + `"`)
}

// A picture dropped on an image block is uploaded to the shop that is chosen in the form.
func TestAPictureIsDroppedOnACampaign(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	form := consoletest.CampaignForm("channel", "email", "shop", "10", "link", "https://shop.example/tea", "body", "", "a_block0_type", "image", "a_block0_url", "https://shop.example/a.png", "a_block0_text", "A cup")
	page := g.As(staff.Marketer).Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	b.Open(g.Server.URL + page + "/edit#step-2")
	b.Step("2 · Message and coupon")
	consoletest.Evaluate[any](b, `(async () => {
		const canvas = document.createElement("canvas");
		canvas.width = 40;
		const blob = await new Promise((done) => canvas.toBlob(done, "image/png")), data = new DataTransfer();
		data.items.add(new File([blob], "tea.png", { type: "image/png" }));
		document.querySelector(".picture-chooser").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
		return true;
	})()`)
	consoletest.Within(t, "the address of the dropped picture", func() bool { return strings.Contains(b.Value("#f-a_block0_url"), "/pictures/10/") })
	b.Accessible("a mail of a campaign with a picture")
}

// A link that leads nowhere is an error in the form, and in the dialog of a draft whose drop has lost
// its claim page.
func TestEmptyLinksAreShown(t *testing.T) {
	g := consoletest.New(t)
	tea := g.Published(10, 4*time.Hour)
	g.Exec(`update templates set claim_url = 'https://shop.example/tea' where id = $1`, tea.ID)
	b := g.As(staff.Marketer)
	b.Post("/campaigns", consoletest.CampaignForm("body", "[Claim]({{link}})")).Is(http.StatusUnprocessableEntity).Has("leads nowhere")
	page := b.Post("/campaigns", consoletest.CampaignForm("shop", "10", "body", "[Claim]({{link}})", "grant_template_id", "1")).Is(http.StatusSeeOther).Header.Get("Location")
	publish := b.Publishing(page)
	g.Exec(`update templates set claim_url = '' where id = $1`, tea.ID)
	g.Exec(`update shops set claim_url = ''`)
	b.Get(page + "/publish").Is(http.StatusConflict).Has("leads nowhere").HasNot("Publish</button>")
	b.Post(page+"/publish", publish).Is(http.StatusUnprocessableEntity).Has("leads nowhere")
}

// A test with a share is planned in the form, and sending to everybody asks for the number.
func TestATestIsPlanned(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, email) select i, 'u' || i || '@shop.example' from generate_series(1, 12) i`)
	b := g.As(staff.Marketer)
	form := consoletest.CampaignForm("title_b", "Other", "body_b", "https://shop.example/b", "percent_b", "50", "test_share", "95", "test_by", "claimed", "test_minutes", "60")
	b.Post("/campaigns", form).Is(http.StatusUnprocessableEntity).Has("must be between 1 and 90", "choose the clicks")
	form.Set("test_share", "20")
	form.Set("test_by", "opened")
	form.Set("test_early", "1")
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page+"/edit").Is(200).Has(`name="test_share"`, `value="20"`, `name="test_early" value="1" checked`)
	b.Get(page+"/publish").Is(200).Has("Type 12 to send to all customers", `name="reach_shown" value="12"`)
	publish := b.Publishing(page)
	for _, missing := range [][]string{{"reach_typed"}, {"reach_typed", "reach_shown"}, {"reach_shown"}} {
		form := maps.Clone(publish)
		for _, name := range missing {
			form.Del(name)
		}
		b.Post(page+"/publish", form).Is(http.StatusUnprocessableEntity).Has("type the number of customers", "Type 12 to send to all customers")
	}
	if n := g.Number(`select count(*) from campaigns where state <> 'draft'`); n != 0 {
		t.Error("the campaign is published without the number")
	}
	publish.Set("reach_typed", "1 2")
	b.Post(page+"/publish", publish).Is(http.StatusSeeOther)
	b.Post("/campaigns/preview", url.Values{"audience": {"all"}, "channel": {"email"}}).Is(200).Has(`<hx-partial hx-target="#reach-email">12 customers</hx-partial>`, `<hx-partial hx-target="#reach-sms">0 customers</hx-partial>`)
}

// The form schedules the campaign as shown. Sending to everybody, or at once, goes through the
// confirmation; a campaign above the shop's threshold asks for approval; a viewer schedules nothing.
func TestScheduleFromTheForm(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	later := []string{"starts_at", time.Now().UTC().Add(30 * time.Hour).Format("2006-01-02T15:04"), "audience", "user_ids", "audience_value", "7 8", "publish", "1", "alone_up_to", "0"}
	form := consoletest.CampaignForm(append(later, "request_key", "once")...)
	for range 2 { // an impatient finger
		b.Post("/campaigns", form).To("/campaigns/1")
	}
	b.Get("/campaigns/1").Is(200).Has("Scheduled", "is published")
	if n := g.Number(`select count(*) from audit where action = 'campaign.publish'`); n != 1 {
		t.Errorf("%d publications", n)
	}
	for name, changes := range map[string][]string{"everybody": {"audience", "all", "audience_value", ""}, "no threshold shown": {"alone_up_to", ""},
		"at once": {"starts_at", time.Now().UTC().Add(-time.Minute).Format("2006-01-02T15:04")}} {
		again := consoletest.CampaignForm(slices.Concat(later, []string{"request_key", name}, changes)...)
		page := b.Post("/campaigns", again).Is(http.StatusSeeOther).Header.Get("Location")
		if !strings.HasSuffix(page, "/publish") {
			t.Errorf("%s: %s", name, page)
		}
		b.Get(strings.TrimSuffix(page, "/publish")).Is(200).Has("Draft")
	}
	g.Exec(`insert into campaign_limits (shop_number, approval_above) values (0, 1) on conflict (shop_number) do update set approval_above = 1`)
	form.Set("request_key", "many")
	form.Set("name", "Another")
	page := b.Post("/campaigns", form).Is(http.StatusSeeOther).Header.Get("Location")
	b.Get(page).Is(200).Has("Draft", "is saved as a draft and not scheduled")
	form.Set("request_key", "asks")
	form.Set("alone_up_to", "1")
	b.Post("/campaigns", form).Is(http.StatusSeeOther)
	if n := g.Number(`select count(*) from audit where action = 'campaign.ask'`); n != 1 {
		t.Errorf("%d requests for approval", n)
	}
	g.As(staff.Viewer).Post("/campaigns", form).Is(http.StatusForbidden)
}
