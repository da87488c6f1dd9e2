package messages_test

import (
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/testmessage"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestMain(m *testing.M) { consoletest.Main(m) }

// form is the form of a page with the texts of all channels in English, of which some fields are
// changed. Fields with the name of a channel belong to a text that was not shown before.
func form(values ...string) url.Values {
	v := url.Values{"kind": {"reminder"}, "language": {"en"}}
	for i := 0; i < len(values); i += 2 {
		v.Set(values[i], values[i+1])
	}
	return v
}

// A marketer reads the built-in text, writes a text of the drop's own, sees errors with their line,
// restores an older text and removes the own text, all without scripts.
func TestWritingAMessage(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b, page := g.As(staff.Marketer, 10), "/templates/1/message"
	const to = "/templates/1/message?kind=reminder&language=en"
	b.Get(page).Is(200).Has("This is the built-in text.", d.Name, "opens in 10 minutes", "characters, parts: ", `name="sms_body"`, `name="app_body"`, `name="email_title"`, `name="webpush_body"`, `name="webhook_body"`).HasNot("instead of 160")
	g.Exec(`update shops set claim_url = 'https://shop.example/claim/{id}'`)
	b.Get(page).Is(200).Has("https://drop.example/d/") // as long as the reader's own
	b.Get(page + "?kind=notice").Is(200).Has("https://shop.example/claim/")
	b.Post(page, form("do", "save", "sms_body", "Hi {{user}},\n{{nme}}")).Is(422).Has(html.EscapeString(`SMS, Text: line 2: {{nme}} is not a variable`), `href="#f-sms_body"`)
	b.Post(page, form("do", "save", "sms_body", "Hi {{user}}")).Is(422).Has("write {{user|there}}")
	b.Post(page, form("do", "look", "sms_body", "Grüß dich {{user|du}}, “{{drop}}”")).Is(200).Has("SMS: This text does not say", "room for 70 characters instead of 160", "Robin Chen")
	b.Post(page, form("do", "save", "sms_body", "One: {{drop}} of {{shop}}")).To(to)
	b.Get(page).Is(200).Has("The text is saved.", "Saved by", "One: "+d.Name, `name="sms_based_on" value="1"`, `name="app_based_on" value="0"`)
	b.Post(page, form("do", "save", "sms_body", "Two")).Is(http.StatusConflict).Has("Another member has saved this text", ">Two</textarea>")
	b.Post(page, form("do", "save", "sms_body", "Two", "sms_based_on", "1")).To(to)
	b.Post(page, form("do", "restore", "version_id", "1", "based_on", "65")).To(to)
	b.Get(page).Is(200).Has("One: "+d.Name, "restored from #1")
	b.Post(page, form("do", "sms:remove", "sms_based_on", "129")).To(to)
	b.Get(page).Is(200).HasNot("Saved by", "One: ")
	b.Post(page, form("do", "save", "language", "not a tag", "sms_body", "x")).Is(200).Has("must be a language tag")
	b.Post(page, form("do", "save", "language", "pt_br", "sms_body", "Olá")).To("/templates/1/message?kind=reminder&language=pt-BR")
	b.Post(page, form("do", "save", "language", "de", "name_title", "Frühlingsrabatt")).To("/templates/1/message?kind=reminder&language=de")
	b.Get(page+"?language=de").Is(200).Has("Frühlingsrabatt", "There is no text in German for this channel yet.")
	b.Get("/audit?kind=template&id=1").Is(200).Has("restored a text of")
	g.As(staff.Viewer).Get(page).Is(200).HasNot(`value="save"`)
	g.As(staff.Viewer).Post(page, form("do", "save", "sms_body", "x")).Is(http.StatusForbidden)
	g.As(staff.Marketer, 11).Get(page).Is(http.StatusForbidden)
	g.As(staff.Marketer, 11).Get(page + "/mail?draft=x").Is(http.StatusForbidden)
}

// One button saves the changed texts of all channels and the name of the drop, all or none. Texts that
// were not changed are not stored, and a text that another member has changed meanwhile stops none of
// the others unless it was changed here too.
func TestAllChannelsAreSavedAtOnce(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	b, page := g.As(staff.Marketer, 10), "/templates/1/message"
	const to = "/templates/1/message?kind=reminder&language=de"
	shown := b.Get(page + "?language=de").Is(200).Form(page)
	texts := func() int64 { return g.Number(`select count(*) from message_versions`) }
	shown.Set("do", "save")
	b.Post(page, shown).To(to)
	b.Get(to).Is(200).Has("Nothing was changed.")
	mine := maps.Clone(shown)
	mine.Set("app_title", "Gleich: {{drop}}")
	mine.Set("sms_body", "Gleich: {{drop}} {{nope}}")
	mine.Set("name_title", "Mondkuchen")
	b.Post(page, mine).Is(http.StatusUnprocessableEntity).Has("SMS, Text: line 1: {{nope}} is not a variable", `value="Gleich: {{drop}}"`, `value="Mondkuchen"`)
	if n := texts(); n != 0 {
		t.Errorf("%d texts are stored of a form with an error", n)
	}
	g.As(staff.Marketer).Post(page, form("do", "save", "language", "de", "webpush_title", "Push", "webpush_body", "Gleich")).To(to)
	mine.Set("sms_body", "Gleich: {{drop}}")
	b.Post(page, mine).To(to)
	if n := texts(); n != 4 { // the push of the other member, two texts and the name
		t.Errorf("%d texts are stored", n)
	}
	b.Get(to).Is(200).Has("3 texts are saved.", "Mondkuchen", "Gleich: Mondkuchen", `value="Push"`)
	mine.Set("webpush_title", "Mine")
	b.Post(page, mine).Is(http.StatusConflict).Has("Another member has saved this text", `value="Mine"`)
	if n := texts(); n != 4 {
		t.Errorf("%d texts are stored after a conflict", n)
	}
	mine = b.Get(to).Is(200).Form(page)
	mine.Set("name_title", "")
	mine.Set("do", "save")
	b.Post(page, mine).To(to)
	b.Get(to).Is(200).HasNot("Mondkuchen")
}

// The languages are tabs with their readers; languages of readers without a text are offered by name,
// and another language is chosen by its name, in the language of the console.
func TestLanguagesAreTabs(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	g.Exec(`insert into users (id, locale) select i, (array['en', 'de-AT', 'de', 'zh-CN', ''])[i % 5 + 1] from generate_series(1, 50) i`)
	b, page := g.As(staff.Marketer), "/templates/1/message"
	b.Get(page).Is(200).Has("Counted among all 50 customers.", "40 readers", "10 readers", "missing for 20 readers", `<option value="de">German · 20 readers</option>`, `<option value="fr">French</option>`,
		`href="/templates/1/message?kind=reminder&amp;language=de"`)
	g.Exec(`insert into reservations (template_id, user_id, slots) select 1, i, 1 from generate_series(1, 10) i`)
	b.Get(page+"?language=de").Is(200).Has("Counted among the 10 customers who have reserved a reminder.", "missing for 4 readers", `aria-current="page"`)
	b.Post(page, form("do", "save", "language", "de", "sms_body", "Gleich")).To("/templates/1/message?kind=reminder&language=de")
	b.Get(page).Is(200).Has("4 readers · 1 of 5 channels written").HasNot("missing for")
	b.Header.Set("Accept-Language", "zh-CN")
	b.Get(page).Is(200).Has("德语", "法语")
	b.Header.Del("Accept-Language")
	g.As(staff.Viewer).Get(page).Is(200).Has("German").HasNot("readers")
	b.Get("/shops/10/message").Is(200).Has("Counted among all 50 customers.", `<select id="f-default_language"`)
}

var frames = regexp.MustCompile(`<iframe src="([^"]+)"`)

// A mail is put together from blocks, shown in frames that run no scripts, and sent to the member
// as typed.
func TestWritingAMail(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b, page := g.As(staff.Marketer), "/templates/1/message"
	mail := func(values ...string) url.Values {
		return form(append([]string{"email_title", "Soon: {{drop}}", "email_b0_type", "text", "email_b0_text", "**Now** {{user|you}} <script>alert(1)</script>",
			"email_b1_type", "button", "email_b1_text", "Go"}, values...)...)
	}
	a := b.Post(page, mail("do", "email:up-1")).Is(200).Has("1. Button", "2. Text")
	if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-src 'self'") {
		t.Errorf("the page's policy is %q", policy)
	}
	found := frames.FindAllStringSubmatch(a.Body, -1)
	if len(found) != 3 {
		t.Fatalf("%d previews of the mail", len(found))
	}
	light, dark := b.Get(html.UnescapeString(found[0][1])).Is(200), b.Get(html.UnescapeString(found[2][1])).Is(200)
	light.Has("<strong>Now</strong> Robin Chen &lt;script&gt;", "@media not all", "Soon: "+d.Name).HasNot("<script")
	dark.Has("@media all").HasNot("prefers-color-scheme: dark")
	if policy := light.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.HasSuffix(policy, "sandbox") {
		t.Errorf("the mail's policy is %q", policy)
	}
	b.Get(page + "/mail?draft=nonsense").Is(http.StatusBadRequest)
	// Quotations in quotations pack into a short address, which a stranger can have a member open.
	deep := message.Draft{Kind: message.Reminder, Language: "en", Text: message.Text{Title: "x", Blocks: []message.Block{{Type: message.Words, Text: strings.Repeat(">", message.MaxBody)}}}}
	b.Get(shell.MailPage(page, deep, "", time.Time{})).Is(http.StatusUnprocessableEntity)
	deep.Text.Blocks[0].Text = strings.Repeat(">", 40<<10)
	b.Get(shell.MailPage(page, deep, "", time.Time{})).Is(http.StatusUnprocessableEntity)
	b.Post(page, mail("do", "save", "email_b0_text", strings.Repeat("> ", 2000))).Is(422).Has("must be simpler")
	b.Post(page, mail("do", "email:add", "email_new_block", "image")).Is(200).Has("3. Image")
	b.Post(page, mail("do", "email:drop-0")).Is(200).Has("1. Button").HasNot("2. ")
	b.Post(page, mail("do", "save", "email_b2_type", "image", "email_b2_url", "http://x.example", "email_b2_text", "x")).Is(422).Has("must be an https address")

	b.Post(page, mail("do", "email:test")).Is(200).Has("The message is on its way to")
	var got delivery.Message
	tester := &testmessage.Tester{Store: g.Stores.ChannelTests, Now: g.Now, Senders: map[delivery.Channel]delivery.Sender{
		delivery.Email: consoletest.NewProvider(delivery.Email, func(m delivery.Message) delivery.Result {
			got = m
			return delivery.Result{Status: delivery.Delivered}
		})}}
	g.Must(tester.Sweep(t.Context()))
	if got.Content == nil || got.Content.Title != "Soon: "+d.Name || !strings.Contains(got.Content.HTML, "<strong>Now</strong> you") || !strings.Contains(got.To.Email, "@") {
		t.Errorf("sent %+v to %+v", got.Content, got.To)
	}
	if n := g.Number(`select count(*) from channel_tests where draft is not null or recipient <> ''`); n != 0 {
		t.Error("the draft or its recipient is still stored")
	}
	b.Get(page).Is(200).Has("No browser of yours is known", `value="email:test"`).HasNot(`value="webpush:test"`)
}

// The shop's brand and language are followed by all its messages.
func TestShopDefaults(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	b, page := g.As(staff.Marketer), "/shops/10/message"
	b.Get(page).Is(200).Has("Brand and defaults", "Spring sale")
	settings := func(values ...string) url.Values {
		return form(append([]string{"do", "settings"}, values...)...)
	}
	b.Post(page, settings("colour", "red", "logo", "x", "part_price", "much")).Is(422).Has("must be a price")
	b.Post(page, settings("colour", "red", "logo", "x")).Is(422).Has("must be a colour such as", "must be an https address")
	b.Post(page, settings("colour", "#FFD400", "logo", "https://shop.example/l.png", "part_price", "0.05", "currency", "eur", "default_language", "zh_cn")).
		To(page + "?kind=reminder&language=en")
	b.Post(page, settings("sender", "Tea", "reply_to", "a@b.example\r\nBcc: x@y.example", "preheader", "{{in}}")).Is(422).Has("must be an e-mail address", "has no value in this message")
	b.Post(page, settings("colour", "#FFD400", "logo", "https://shop.example/l.png", "part_price", "0.05", "currency", "eur", "default_language", "zh_cn", "settings_based_on", "1",
		"sender", "Tea House", "reply_to", "help@tea.example", "preheader", "{{worth}}", "postal_address", "1 Tea Road\r\nShanghai")).To(page + "?kind=reminder&language=en")
	b.Get(page).Is(200).Has("Tea House · ↩ help@tea.example", "1 Tea Road\nShanghai")
	b.Get(page).Is(200).Has(`value="zh-CN" selected`, `value="0.05"`, "EUR", "开始")
	b.Post("/shops/10", url.Values{"name": {"Ten"}, "timezone": {"UTC"}, "claim_url": {"https://shop.example/d/{id}"}}).To("/shops")
	a := b.Get("/templates/1/message?language=en").Is(200)
	b.Get(html.UnescapeString(frames.FindStringSubmatch(a.Body)[1])).Is(200).Has("background:#ffd400;color:#000000", "https://shop.example/l.png", `href="https://drop.example/d/`)
	b.Post("/shops/10", url.Values{"name": {"Ten"}, "timezone": {"UTC"}, "claim_url": {"javascript:alert(1)"}}).Is(422)
}

// Publishing asks once to look at the messages, and no more after the first look.
func TestPublishingAsksOnceToLook(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Post("/shops", url.Values{"shop_number": {"10"}, "name": {"Tea"}, "timezone": {"Asia/Shanghai"}}).To("/shops")
	b.Post("/templates", g.TypedForm(2*time.Hour)).To("/templates/1")
	const dialog, page = "/templates/1/publish", "/templates/1/message"
	b.Get(dialog).Is(200).Has("No member has looked at this drop", "Publish without looking", "Look at the messages first")
	g.As(staff.Viewer).Get(page).Is(200)
	b.Get(dialog).Is(200).Has("Publish without looking")
	b.Get(page).Is(200)
	b.Get(dialog).Is(200).HasNot("Publish without looking")
}
