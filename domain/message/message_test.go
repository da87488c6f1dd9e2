package message

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/musttest"
)

func facts(k Kind) Facts {
	return Facts{Kind: k, Drop: "Spring 20% off", Shop: "Corner shop", Worth: Worth{Percent: 20, Most: 3000, Currency: "CNY"},
		OpensAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Minutes: 10, Days: 3, Link: "https://shop.example/c/7?a=1&b=2"}
}

func shanghai(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Shanghai")
	musttest.OK(t, err)
	return zone
}

// Every built-in text passes the rules for texts of staff, and contains the shop, the worth, the
// time and the link.
func TestBuiltInTexts(t *testing.T) {
	for _, tag := range []string{"en", "zh"} {
		for _, k := range append(Written(), Test) {
			for _, c := range Channels() {
				key := Key{k, c, tag}
				text, ok := Default(key)
				if !ok {
					t.Errorf("%v: there is no built-in text", key)
					continue
				}
				if k == Test {
					continue
				}
				if err := text.Check(key); err != nil {
					t.Errorf("%v: %v", key, err)
				}
				if missing := text.Missing(key); len(missing) > 0 {
					t.Errorf("%v does not say %v", key, missing)
				}
				if got := (*Book)(nil).Render(Facts{Kind: k}, c, Reader{Locale: tag}); strings.Contains(got.Text, "  ") || got.Text == "" {
					t.Errorf("%v of a drop of which nothing is known: %q", key, got.Text)
				}
			}
		}
	}
}

// A code is in its message, in both languages, and the message fits into one part.
func TestTheMessageWithACode(t *testing.T) {
	for tag, want := range map[string]string{
		"en": "Tea: 042917 is your code. It is valid for 10 minutes. Do not pass it on.",
		"zh": "【Tea】您的验证码是 042917，10 分钟内有效。请勿告诉他人。",
	} {
		got := (*Book)(nil).Render(Facts{Kind: Verification, Shop: "Tea", Code: "042917", Minutes: 10}, SMS, Reader{Locale: tag}).Text
		if got != want || SizeOf(got).Parts != 1 {
			t.Errorf("%s: %q", tag, got)
		}
		if got := (*Book)(nil).Render(Facts{Kind: Verification, Code: "042917", Minutes: 10}, SMS, Reader{Locale: tag}).Text; strings.ContainsAny(got[:1], ": 【") {
			t.Errorf("%s, without a shop: %q", tag, got)
		}
	}
	if _, err := Parse("{{code}}", Reminder); err == nil {
		t.Error("a reminder may hold a code")
	}
}

func TestRender(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		channel Channel
		locale  string
		change  func(*Facts)
		title   string
		text    string
	}{
		{Reminder, App, "en-GB", nil, "Opens in 10 minutes: Spring 20% off",
			"Corner shop: Spring 20% off opens in 10 minutes, on Friday, 20 November 2026 at 20:00 Beijing time. It is worth 20% off, at most ¥30."},
		{Reminder, SMS, "en", nil, "",
			"Corner shop: Spring 20% off (20% off, at most ¥30) opens in 10 minutes, at 20:00 Beijing time. https://shop.example/c/7?a=1&b=2"},
		{Reminder, SMS, "fr", func(f *Facts) { f.Link, f.Worth, f.Shop = "", Worth{}, "" }, "",
			"Spring 20% off opens in 10 minutes, at 20:00 Beijing time."},
		{Reminder, Webhook, "zh-TW", nil, "10 分钟后开始：Spring 20% off",
			"【Corner shop】「Spring 20% off」10 分钟后开始，时间：2026年11月20日（星期五）20:00（北京时间）。优惠：8 折，最高减 ¥30。领取：https://shop.example/c/7?a=1&b=2"},
		{Correction, WebPush, "en", nil, "New opening time: Spring 20% off",
			"Corner shop: The opening of Spring 20% off has moved. It now opens on Friday, 20 November 2026 at 20:00 Beijing time. It is worth 20% off, at most ¥30."},
		{Cancelled, SMS, "zh", nil, "", "【Corner shop】「Spring 20% off」（8 折，最高减 ¥30）已取消，不会于2026年11月20日（星期五）20:00（北京时间）开始。您无需进行任何操作。"},
		{Notice, App, "en", func(f *Facts) { f.Days = 1 }, "Your coupon expires tomorrow: Spring 20% off",
			"Corner shop: Your coupon Spring 20% off (20% off, at most ¥30) expires tomorrow and has not been used yet."},
		{Reminder, App, "en", func(f *Facts) { f.Minutes = 0 }, "Opens soon: Spring 20% off",
			"Corner shop: Spring 20% off opens soon, on Friday, 20 November 2026 at 20:00 Beijing time. It is worth 20% off, at most ¥30."},
		{Reminder, Email, "en", nil, "Opens in 10 minutes: Spring 20% off",
			"Spring 20% off opens in 10 minutes\n\nIt opens on Friday, 20 November 2026 at 20:00 Beijing time. Stock is limited, so be there when it opens.\n\n" +
				"20% off, at most ¥30\nFriday, 20 November 2026 at 20:00 Beijing time\n\nClaim it: https://shop.example/c/7?a=1&b=2\n\n" +
				"You receive this because you reserved a reminder for this drop of Corner shop."},
	} {
		f := facts(c.kind)
		if c.change != nil {
			c.change(&f)
		}
		got := NewBook(nil).Render(f, c.channel, Reader{Locale: c.locale, Zone: shanghai(t)})
		if got.Title != c.title || got.Text != c.text {
			t.Errorf("%s %s %s:\n got %q\n     %q\nwant %q\n     %q", c.kind, c.channel, c.locale, got.Title, got.Text, c.title, c.text)
		}
	}
}

func TestParseNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"Hi\n{{nme}}":         "line 2: \"{{nme}}\" is not a variable",
		"{{expires}}":         "line 1: \"{{expires}}\" has no value in this message",
		"a\nb\n{{drop":        "line 3: the variable that begins with \"{{drop\" is not closed",
		"[[a {{nme}}]]":       "line 1: \"{{nme}}\" is not a variable",
		"{{drop}} {{ drop |":  "line 1: the variable that begins with \"{{ drop |\" is not closed",
		"\n\n[[ {{in}} {{x}}": "line 3: \"{{x}}\" is not a variable",
	} {
		_, err := Parse(text, Reminder)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s …", text, err, want)
		}
	}
	for _, text := range []string{"", "{{drop}}", "a [[b]] c", "[[ {{link}}]]", "}}", "{{name|you}} {{coupon.name}}", "[[x\n{{drop}}]]"} {
		if _, err := Parse(text, Reminder); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOptionalPartsAndFallbacks(t *testing.T) {
	for text, want := range map[string][2]string{ // for Ann with a link, and for a reader without either
		"Hi {{user|there}}!":               {"Hi Ann!", "Hi there!"},
		"Hi[[ {{user}}]]!":                 {"Hi Ann!", "Hi!"},
		"See[[: {{link}}]].":               {"See: https://x.example/1.", "See."},
		"[[{{user}} {{link}}]]":            {"Ann https://x.example/1", ""},
		"[[{{user|you}} at {{link|b}}]]":   {"Ann at https://x.example/1", "you at b"},
		"[[{{drop}}: {{user}}]] [[plain]]": {"D: Ann [[plain]]", "[[plain]]"},
	} {
		for i, r := range []struct{ name, link string }{{"Ann", "https://x.example/1"}, {"", ""}} {
			for _, tracked := range []bool{false, true} {
				c := Compile(Key{Reminder, SMS, "en"}, Text{Body: text}, Shop{})
				got := c.Bind(Facts{Drop: "D", Link: r.link}, "D", nil, tracked).Content(r.name, r.link).Text
				if got != want[i] {
					t.Errorf("%q for %q: %q, want %q (tracked %v)", text, r.name, got, want[i], tracked)
				}
			}
		}
	}
}

// Texts typed by readers and staff cannot become markup, an address or a second line.
func TestPagesAreEscaped(t *testing.T) {
	f := facts(Reminder)
	f.Drop = `<img src=x onerror=alert(1)>"'&</title></style><script>`
	f.Link = `https://shop.example/"><script>alert(1)</script>`
	text := Text{Title: "{{drop}} <b>", Blocks: []Block{{Type: Heading, Text: "<i>{{user|<u>}}"}, {Type: Words, Text: "<script>x</script> **{{user|you}}** [a](javascript:alert(1)) [b]({{user|c}}) {{link}} [c](https://x.example/?n={{user|c}})"},
		{Type: Image, URL: `https://x.example/"onerror="`, Text: `{{drop}}"`}, {Type: Button, Text: "<b>"}, {Type: Coupon}, {Type: Footer, Text: "<p>{{shop}}"}}}
	page := Compile(Key{Reminder, Email, "en"}, text, Shop{Logo: `https://x.example/"onload="x`}).Bind(f, f.Drop, nil, false).
		Content(`javascript:alert("1")<script>`, f.Link).HTML
	for _, evil := range []string{"<script", "<img src=x", "javascript:alert(1)", `"javascript:`, `"onerror="`, `"onload="`, "<i>", "<u>", "</title></style>"} {
		if strings.Contains(page, evil) {
			t.Errorf("%q got through:\n%s", evil, page)
		}
	}
	for _, want := range []string{"&lt;script&gt;x&lt;/script&gt;", "<strong>javascript:alert(&#34;1&#34;)&lt;script&gt;</strong>", "n=javascript%3Aalert%28%221%22%29%3Cscript%3E", "&lt;img src=x onerror=alert(1)&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
}

func TestCampaignsAreMarkdown(t *testing.T) {
	body := "Dear {{name|friend}},\n**10 off** & *more* at <shop> 5 < 6\nsecond line\n\n- one\n- two\n\n1. first\n\nSee [the page]({{link}}) or {{link}}."
	f := facts(Campaign)
	mail := CompileCampaign(Email, "en", Text{Title: "Sale {{coupon.name}}", Body: body}, Shop{}).Bind(f, f.Drop, nil, false).Content("Ann & Bob", f.Link)
	for _, want := range []string{"Dear Ann &amp; Bob,<br>", "<strong>10 off</strong> &amp; <em>more</em> at &lt;shop&gt; 5 &lt; 6<br>", "<li>one</li>",
		`<a href="https://shop.example/c/7?a=1&amp;b=2">the page</a>`, `<a href="https://shop.example/c/7?a=1&amp;b=2">https://shop.example`, "<title>Sale Spring 20% off</title>"} {
		if !strings.Contains(strings.ReplaceAll(mail.HTML, "<br>\n", "<br>"), want) {
			t.Errorf("%q is missing in\n%s", want, mail.HTML)
		}
	}
	wanted := "Dear Ann & Bob,\n10 off & more at <shop> 5 < 6\nsecond line\n\n- one\n- two\n\n1. first\n\n" +
		"See the page (https://shop.example/c/7?a=1&b=2) or https://shop.example/c/7?a=1&b=2."
	if mail.Text != wanted {
		t.Errorf("as text:\n got %q\nwant %q", mail.Text, wanted)
	}
	for _, c := range []Channel{SMS, App} {
		if got := CompileCampaign(c, "en", Text{Title: "Sale", Body: body}, Shop{}).Bind(f, f.Drop, nil, true).Content("Ann & Bob", f.Link); got.Text != wanted || got.HTML != "" {
			t.Errorf("over %s: %q", c, got.Text)
		}
	}
	if got := CompileCampaign(App, "en", Text{Title: "Sale", Body: "See [the page]({{link}})."}, Shop{}).Bind(f, f.Drop, nil, true).Content("Ann & Bob", ""); got.Text != "See the page." {
		t.Errorf("without a link: %q", got.Text)
	}
}

// If an address is missing, an optional part with a Markdown link to it is left out as a whole.
// This includes the plain text of a mail, and addresses that differ by reader.
func TestOptionalPartsWithLinks(t *testing.T) {
	for body, want := range map[string][2]string{ // with and without an address
		"Hello.[[ Book now: [here]({{link}})]]":                    {"Hello. Book now: here (https://x.example/1)", "Hello."},
		"Hello.[[ [Book]({{link}}) or **[call]({{link}})**.]] Bye": {"Hello. Book (https://x.example/1) or call (https://x.example/1). Bye", "Hello. Bye"},
		"[[[Book]({{link}})]] [Look]({{link}})":                    {"Book (https://x.example/1) Look (https://x.example/1)", "Look"},
	} {
		for _, channel := range []Channel{SMS, App, Email} {
			for _, tracked := range []bool{false, true} {
				for i, link := range []string{"https://x.example/1", ""} {
					f := facts(Campaign)
					f.Link = link
					got := CompileCampaign(channel, "en", Text{Title: "Sale", Body: body}, Shop{}).Bind(f, f.Drop, nil, tracked).Content("Ann", link)
					if strings.TrimSpace(got.Text) != want[i] {
						t.Errorf("%q over %s (tracked %v): %q, want %q", body, channel, tracked, got.Text, want[i])
					}
				}
			}
		}
	}
}

func TestMailWithoutALinkHasNoButton(t *testing.T) {
	f := facts(Reminder)
	if page := NewBook(nil).Render(f, Email, Reader{}).HTML; !strings.Contains(page, `href="https://shop.example/c/7?a=1&amp;b=2"`) || !strings.Contains(page, "Claim it") {
		t.Errorf("the button is missing:\n%s", page)
	}
	f.Link = ""
	if got := NewBook(nil).Render(f, Email, Reader{}); strings.Contains(got.HTML, "<a") || strings.Contains(got.Text, "Claim it") {
		t.Errorf("a mail without a link has a button:\n%s", got.HTML)
	}
}

func TestLanguages(t *testing.T) {
	v := func(id int64, template int64, k Kind, c Channel, tag string, text *Text) Version {
		return Version{ID: id, Shop: 10, Template: template, Key: Key{k, c, tag}, Text: text}
	}
	say := func(s string) *Text { return &Text{Title: s, Body: s} }
	b := NewBook([]Version{
		v(1, 0, Reminder, App, "de", say("shop de")), v(2, 7, Reminder, App, "de", say("drop de")), v(3, 0, Reminder, App, "pt-PT", say("shop pt-PT")),
		v(4, 7, Reminder, App, "zh-Hant", say("drop zh-Hant")), v(5, 0, Reminder, App, "ru", say("shop ru")), v(6, 7, Reminder, App, "en", nil),
		v(7, 0, Settings, "", "", &Text{Shop: &Shop{Language: "de"}}),
		v(8, 7, Names, "", "de", say("Frühling")), v(9, 7, Names, "", "zh", say("春季")),
	})
	for locale, want := range map[string]string{"de-AT": "drop de", "pt-BR": "shop pt-PT", "zh-TW": "drop zh-Hant", "zh-HK": "drop zh-Hant", "uk": "drop de",
		"fr": "drop de", "": "drop de", "ru-KZ": "shop ru", "xx-broken-": "drop de"} {
		if got := b.Find(Reminder, App, locale); got.Text.Title != want {
			t.Errorf("%q reads %q, want %q", locale, got.Text.Title, want)
		}
	}
	if got := b.Find(Reminder, App, "en-US"); got.Level != BuiltIn || got.Key.Language != "en" {
		t.Errorf("a removed text still counts: %+v", got)
	}
	if got := b.Find(Reminder, App, "zh-CN"); got.Level != BuiltIn || got.Key.Language != "zh" {
		t.Errorf("zh-CN reads %+v", got)
	}
	for tag, want := range map[string]string{"de": "Frühling", "zh": "春季", "zh-Hant": "春季", "en": "Spring", "fr": "Spring"} {
		if got := b.Name(tag, "Spring"); got != want {
			t.Errorf("in %s the drop is called %q, want %q", tag, got, want)
		}
	}
}

// The shop's sender is part of every mail, and a name that a heading has is not repeated by the
// coupon card.
func TestSenderAndName(t *testing.T) {
	shop := Shop{Sender: "Tea House", ReplyTo: "help@tea.example", Preheader: "{{shop}}: {{worth}} & more", Postal: "1 Tea <Road>\nShanghai"}
	book := NewBook([]Version{{Shop: 10, Key: Key{Kind: Settings}, Text: &Text{Shop: &shop}}})
	for _, kind := range Written() {
		for _, locale := range []string{"en", "zh-CN"} {
			f := facts(kind)
			got := book.Render(f, Email, Reader{Locale: locale, Zone: shanghai(t)})
			_, body, _ := strings.Cut(got.HTML, "<body")
			if got.Sender != "Tea House" || got.ReplyTo != "help@tea.example" || !strings.HasPrefix(got.Preheader, "Corner shop: ") || !strings.HasSuffix(got.Preheader, " & more") ||
				!strings.Contains(body, got.Preheader[:12]) || !strings.Contains(body, "1 Tea &lt;Road&gt;<br>Shanghai") || !strings.HasSuffix(got.Text, "\n\n1 Tea <Road>\nShanghai") {
				t.Errorf("%s %s: %+v", kind, locale, got)
			}
			_, content, _ := strings.Cut(body, `class="name"`)
			if n := strings.Count(content, f.Drop); n != 1 || strings.Count(got.Text, f.Drop) != 1 {
				t.Errorf("%s %s names the drop %d times:\n%s", kind, locale, n, got.Text)
			}
		}
	}
	key := Key{Kind: Picture}
	picture := &Text{Blocks: []Block{{Type: Image, Text: `Cakes "{{x}}"`, URL: "https://drop.example/pictures/10/a.png"}}}
	if err := picture.Check(key); err != nil {
		t.Error(err)
	}
	for _, bad := range []Text{{}, {Blocks: []Block{{Type: Heading, Text: "x"}}}, {Blocks: []Block{{Type: Image, URL: "https://x.example/i"}}}, {Blocks: []Block{{Type: Image, Text: "x", URL: "http://x.example/pictures/i"}}}} {
		if bad.Check(key) == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	pictured := NewBook([]Version{{Shop: 10, Template: 1, Key: key, Text: picture}, {Shop: 10, Key: Key{Kind: Settings}, Text: &Text{Shop: &shop}}})
	if got := pictured.Render(facts(Reminder), Email, Reader{}).HTML; strings.Count(got, `src="https://drop.example/pictures/10/a.png"`) != 1 || !strings.Contains(got, `alt="Cakes &#34;{{x}}&#34;"`) {
		t.Errorf("a mail with the picture of the coupon:\n%s", got)
	}
	campaign := book.Campaign(Email, "en", Text{Title: "Hello", Body: "Body"}).Bind(facts(Campaign), "Drop", time.UTC, false).Content("Ann", "")
	if campaign.Sender != "Tea House" || !strings.Contains(campaign.HTML, "1 Tea &lt;Road&gt;<br>") {
		t.Errorf("a campaign's mail: %+v", campaign)
	}
}

func TestCheckNamesEveryField(t *testing.T) {
	long := strings.Repeat("long words ", 400)
	for name, c := range map[string]struct {
		key    Key
		text   Text
		fields []string
	}{
		"fine":             {Key{Reminder, App, "de"}, Text{Title: "{{drop}}", Body: "Hallo {{user|du}}"}, nil},
		"greets nobody":    {Key{Reminder, App, "de"}, Text{Title: "Hi {{user}}", Body: "{{user}},"}, []string{"title", "body"}},
		"no such language": {Key{Reminder, App, "klingonisch!"}, Text{Title: "a", Body: "b"}, []string{"language"}},
		"not canonical":    {Key{Reminder, App, "zh_cn"}, Text{Title: "a", Body: "b"}, []string{"language"}},
		"empty":            {Key{Reminder, WebPush, "en"}, Text{}, []string{"title", "body"}},
		"two lines":        {Key{Reminder, App, "en"}, Text{Title: "a\nb", Body: "b"}, []string{"title"}},
		"turned":           {Key{Reminder, App, "en"}, Text{Title: "a", Body: "b\u202e"}, []string{"body"}},
		"long SMS":         {Key{Reminder, SMS, "en"}, Text{Body: strings.Repeat("0123456789", 140)}, []string{"body"}},
		"no blocks":        {Key{Reminder, Email, "en"}, Text{Title: "a"}, []string{"blocks"}},
		"http image":       {Key{Reminder, Email, "en"}, Text{Title: "a", Blocks: []Block{{Type: Image, URL: "http://x.example/i", Text: "i"}}}, []string{"block.1.url"}},
		"unknown block":    {Key{Reminder, Email, "en"}, Text{Title: "a", Blocks: []Block{{Type: Coupon}, {Type: "marquee"}}}, []string{"block.2"}},
		"too long a mail":  {Key{Reminder, Email, "en"}, Text{Title: "a", Blocks: slices.Repeat([]Block{{Type: Words, Text: long[:3900]}}, 30)}, []string{"blocks"}},
		"link fallback":    {Key{Reminder, App, "en"}, Text{Title: "a", Body: "{{link|javascript:x}}"}, []string{"body"}},
		"campaign":         {Key{Campaign, App, "en"}, Text{Title: "a", Body: "b"}, []string{"kind"}},
		"name":             {Key{Names, "", "en"}, Text{Title: "{{x}}"}, nil},
		"settings": {Key{Kind: Settings}, Text{Shop: &Shop{Language: "zz-!", Logo: "x", Colour: "red", PartPrice: -1, Currency: "??"}},
			[]string{"language", "logo", "colour", "part_price", "currency"}},
		"sender": {Key{Kind: Settings}, Text{Shop: &Shop{Sender: "Tea\r\nBcc: x", ReplyTo: "Ann <a@example.com>", Preheader: "Opens {{in}}", Postal: strings.Repeat("\n", 6)}},
			[]string{"sender", "reply_to", "preheader", "postal_address"}},
		"good sender": {Key{Kind: Settings}, Text{Shop: &Shop{Sender: "茶屋", ReplyTo: "help@tea.example", Preheader: "{{shop}}: {{worth}}", Postal: "1 Tea Road\nShanghai"}}, nil},
	} {
		var broken *fault.Fields
		var names []string
		if err := c.text.Check(c.key); errors.As(err, &broken) {
			for _, f := range broken.List {
				names = append(names, f.Name)
			}
		}
		if !slices.Equal(names, c.fields) {
			t.Errorf("%s: %v, want %v (%v)", name, names, c.fields, broken)
		}
	}
}

func TestColours(t *testing.T) {
	for colour, want := range map[string]string{"#c2410c": "#ffffff", "#ffd400": "#000000", "#777777": "#000000", "#000000": "#ffffff"} {
		if got := WordsOn(colour); got != want {
			t.Errorf("words on %s are %s, want %s", colour, got, want)
		}
	}
	for n := range 4096 { // a sample of all colours
		colour := fmt.Sprintf("#%02x%02x%02x", n>>8*17, n>>4&15*17, n&15*17)
		if c := Contrast(colour, WordsOn(colour)); ValidColour(colour) && c < readableContrast {
			t.Errorf("words on %s have a contrast of %.2f", colour, c)
		}
	}
	page := Compile(Key{Reminder, Email, "en"}, Text{Title: "a", Blocks: []Block{{Type: Button, Text: "b"}}}, Shop{Colour: "#ffd400"}).
		Bind(facts(Reminder), "d", nil, false).Content("", "").HTML
	if !strings.Contains(page, "background:#ffd400;color:#000000") || strings.Contains(page, "#b0000") {
		t.Errorf("the brand's colour is missing:\n%s", page)
	}
}

func TestSizeOfSMS(t *testing.T) {
	for _, c := range []struct {
		text  string
		ucs2  bool
		parts int
	}{
		{"", false, 0}, {strings.Repeat("a", 160), false, 1}, {strings.Repeat("a", 161), false, 2}, {strings.Repeat("a", 306), false, 2},
		{strings.Repeat("a", 307), false, 3}, {strings.Repeat("€", 80), false, 1}, {strings.Repeat("€", 81), false, 2},
		// 153 places leave one over that a character of two places does not fit into
		{strings.Repeat("€", 153), false, 3},
		{strings.Repeat("券", 70), true, 1}, {strings.Repeat("券", 71), true, 2}, {strings.Repeat("👍", 35), true, 1}, {strings.Repeat("👍", 67), true, 3},
		{"“quoted”", true, 1}, {"¥30", false, 1},
	} {
		if got := SizeOf(c.text); got.UCS2 != c.ucs2 || got.Parts != c.parts {
			t.Errorf("%.12s… of %d runes: %+v", c.text, len([]rune(c.text)), got)
		}
	}
}

// mail.html is the output of the tool for mail.mjml.
func TestCompiledMailIsFresh(t *testing.T) {
	source, err := os.ReadFile("mail.mjml")
	musttest.OK(t, err)
	sum := sha256.Sum256(source)
	if first, _, _ := strings.Cut(compiledMail, "\n"); first != "<!-- mail.mjml "+hex.EncodeToString(sum[:])+" -->" {
		t.Error("mail.html is stale: run `go tool task generate:mail`")
	}
	for _, name := range []string{"head", "top", "logo", "heading", "text", "image", "button", "coupon", "bottom", "footer", "end"} {
		if fragments()[name] == "" {
			t.Errorf("the block %s is missing", name)
		}
	}
}

// BenchmarkContent measures rendering for one recipient of a batch, after the first recipient of
// the same language and zone.
func BenchmarkContent(b *testing.B) {
	named := Text{Title: "{{drop}} opens {{in}}", Blocks: []Block{{Type: Heading, Text: "Hi {{user|there}}"}, {Type: Coupon}, {Type: Button, Text: "Claim it"}}}
	for name, f := range map[string]*Form{
		"shared":      NewBook(nil).Compiled(Reminder, Email, "en").Bind(facts(Reminder), "d", shanghai(b), false),
		"named_mail":  Compile(Key{Reminder, Email, "en"}, named, Shop{}).Bind(facts(Reminder), "d", shanghai(b), false),
		"tracked_sms": CompileCampaign(SMS, "en", Text{Title: "", Body: "Hi {{user|there}}: {{link}}"}, Shop{}).Bind(facts(Campaign), "d", shanghai(b), true),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Content("Ann", "https://shop.example/l/abc")
			}
		})
	}
}
