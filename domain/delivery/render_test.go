package delivery_test

import (
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

func spring(kind delivery.Kind) delivery.Subject {
	return delivery.Subject{
		Kind:         kind,
		TemplateID:   7,
		TemplateName: "Spring 20% off",
		ShopName:     "Corner shop",
		Worth:        message.Worth{Percent: 20, Most: 3000, Currency: "CNY"},
		Slot:         2,
		OpensAt:      time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		ClaimURL:     "https://shop.example/c/7?a=1&b=2",
	}
}

// The built-in texts name a batch's subject; their wording is tested where they are.
func TestRender(t *testing.T) {
	for _, c := range []struct {
		name, locale, zone string
		change             func(*delivery.Subject)
		title              string
	}{
		{"reminder", "en-GB", "Asia/Shanghai", nil, "Opens in 10 minutes: Spring 20% off"},
		{"reminder in Chinese", "zh-CN", "Asia/Shanghai", nil, "10 分钟后开始：Spring 20% off"},
		{"farthest slot", "en", "Pacific/Auckland", func(s *delivery.Subject) { s.Slot = 12 }, "Opens in 60 minutes: Spring 20% off"},
		{"long after its instant", "en", "Asia/Shanghai", func(s *delivery.Subject) { *s = s.At(s.OpensAt.Add(-4*time.Minute - 30*time.Second)) }, "Opens in 4 minutes: Spring 20% off"},
		{"a minute before", "en", "Asia/Shanghai", func(s *delivery.Subject) { *s = s.At(s.OpensAt.Add(-100 * time.Second)) }, "Opens in one minute: Spring 20% off"},
		{"seconds before, in Chinese", "zh", "Asia/Shanghai", func(s *delivery.Subject) { *s = s.At(s.OpensAt.Add(-20 * time.Second)) }, "即将开始：Spring 20% off"},
		{"a little late", "en", "Asia/Shanghai", func(s *delivery.Subject) { *s = s.At(s.OpensAt.Add(-9*time.Minute - 20*time.Second)) }, "Opens in 10 minutes: Spring 20% off"},
		{"no slot", "", "UTC", func(s *delivery.Subject) { s.Slot = 0 }, "Opens soon: Spring 20% off"},
		{"correction", "en", "America/New_York", func(s *delivery.Subject) { s.Kind = delivery.KindCorrection }, "New opening time: Spring 20% off"},
		{"cancelled in Chinese", "zh", "UTC", func(s *delivery.Subject) { s.Kind = delivery.KindCancelled }, "已取消：Spring 20% off"},
		{"test without a name", "zh-Hans", "UTC", func(s *delivery.Subject) { s.Kind, s.TemplateName = delivery.KindTest, "" }, "测试消息：优惠券"},
		{"notice", "en", "UTC", func(s *delivery.Subject) { s.Kind, s.Slot = delivery.KindNotice, 3 }, "Your coupon expires in 3 days: Spring 20% off"},
		{"notice of tomorrow, in Chinese", "zh_CN", "UTC", func(s *delivery.Subject) { s.Kind, s.Slot = delivery.KindNotice, 1 }, "优惠券明天到期：Spring 20% off"},
		{"notice of the last day", "en", "UTC", func(s *delivery.Subject) { s.Kind, s.Slot = delivery.KindNotice, 0 }, "Your coupon expires today: Spring 20% off"},
		{"any other kind", "en", "UTC", func(s *delivery.Subject) { s.Kind = "other" }, "Spring 20% off"},
	} {
		s := spring(delivery.KindReminder)
		if c.change != nil {
			c.change(&s)
		}
		got := delivery.Render(nil, s, delivery.Webhook, user.User{Locale: c.locale, Timezone: c.zone})
		if got.Title != c.title || got.HTML != "" || strings.Contains(got.Text, "shop.example") == (s.Kind == delivery.KindCancelled) {
			t.Errorf("%s: got %q, want %q; text %q", c.name, got.Title, c.title, got.Text)
		}
	}
}

func TestRenderUnfriendlyNames(t *testing.T) {
	for name, wanted := range map[string]string{
		"Two\r\nlines\tand\u2028more":       "Two lines and more",
		"\u202edesrever\u202c \u200fx":      "desrever x",
		"\u2066isolated\u2069\ufeff":        "isolated",
		"nul\x00bell\a":                     "nul bell",
		"broken \xff\xfe bytes":             "broken bytes",
		"\u200b \u00a0 ":                    "Coupon",
		"family 👨\u200d👩\u200d👧":            "family 👨\u200d👩\u200d👧",
		"קופון אביב":                        "קופון אביב",
		strings.Repeat("\u202e", 300) + "x": "x",
	} {
		s := spring(delivery.KindReminder)
		s.TemplateName = name
		got := delivery.Render(nil, s, delivery.Email, user.User{})
		if want := "Opens in 10 minutes: " + wanted; got.Title != want {
			t.Errorf("%.40q: got title %q, want %q", name, got.Title, want)
		}
		if !utf8.ValidString(got.HTML) || !utf8.ValidString(got.Text) {
			t.Errorf("%.40q: not valid UTF-8", name)
		}
	}
	s := spring(delivery.KindReminder)
	s.TemplateName = strings.Repeat("券", 201)
	if got := delivery.Render(nil, s, delivery.Email, user.User{}); utf8.RuneCountInString(got.Title) != 200 || !strings.HasSuffix(got.Title, "…") {
		t.Errorf("a long name makes the title %q", got.Title)
	}
}

func TestLink(t *testing.T) {
	for given, wanted := range map[string]string{
		"https://shop.example/c/7":     "https://shop.example/c/7",
		"http://127.0.0.1:8080/c":      "http://127.0.0.1:8080/c",
		"https://shop.example/a b":     "https://shop.example/a%20b",
		"":                             "",
		"javascript:alert(1)":          "",
		"data:text/html,x":             "",
		"//shop.example/c":             "",
		"shop.example/c":               "",
		"https:///c":                   "",
		"https://shop.example/\r\nx":   "",
		"https://shop.example/%zz\x00": "",
	} {
		if got := (delivery.Subject{ClaimURL: given}).Link(); got != wanted {
			t.Errorf("%q: got %q, want %q", given, got, wanted)
		}
	}
}

func TestRendererSharesContents(t *testing.T) {
	r := delivery.NewRenderer(nil, spring(delivery.KindReminder), delivery.Email)
	reader := func(locale, zone string) *delivery.Content {
		return r.For(user.User{Locale: locale, Timezone: zone})
	}
	if reader("en", "UTC") != r.For(user.User{ID: 2, Name: "Ann", Locale: "en", Timezone: "UTC"}) {
		t.Error("readers of one language and zone must share their content")
	}
	if *reader("en", "UTC") != *reader("fr-FR", "UTC") || *reader("zh", "Asia/Tokyo") != *reader("zh-TW", "Asia/Tokyo") {
		t.Error("readers of one text and zone must read the same")
	}
	if reader("en", "UTC").Text == reader("en", "Asia/Tokyo").Text || reader("en", "UTC").Text == reader("zh", "UTC").Text {
		t.Error("another language or zone must read differently")
	}
	want := delivery.Render(nil, spring(delivery.KindReminder), delivery.Email, user.User{Locale: "zh", Timezone: "Asia/Tokyo"})
	if got := *reader("zh-CN", "Asia/Tokyo"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if *reader("en", "No/Where") != *reader("en", "UTC") {
		t.Error("an unknown zone must read UTC")
	}
}

// A text of a shop that contains the reader's name is filled in for each reader, also from a book
// that other batches share.
func TestRendererFillsNames(t *testing.T) {
	text := message.Text{Title: "{{drop}} of {{shop}}", Body: "Hi {{user|there}}, {{in}} on {{opens_at}}: {{link}}"}
	book := message.NewBook([]message.Version{{ID: 1, Shop: 10, Key: message.Key{Kind: message.Reminder, Channel: message.SMS, Language: "en"}, Text: &text}})
	r := delivery.NewRenderer(book, spring(delivery.KindReminder), delivery.SMS)
	for name, want := range map[string]string{"Ann": "Hi Ann, in 10 minutes on ", "Bob\n": "Hi Bob, in 10 minutes on ", "": "Hi there, in 10 minutes on "} {
		if got := r.For(user.User{Name: name, Locale: "en-US"}); !strings.HasPrefix(got.Text, want) || !strings.HasSuffix(got.Text, ": https://shop.example/c/7?a=1&b=2") {
			t.Errorf("%q reads %q", name, got.Text)
		}
	}
	if got := r.For(user.User{Name: "Ann", Locale: "zh"}); !strings.HasPrefix(got.Text, "【Corner shop】") {
		t.Errorf("in Chinese: %q", got.Text)
	}
}

func TestRendererConcurrently(t *testing.T) {
	r := delivery.NewRenderer(message.NewBook(nil), spring(delivery.KindReminder), delivery.Email)
	want := *r.For(user.User{Timezone: "Asia/Tokyo"})
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			for n := range 300 {
				// More zones than the renderer keeps.
				r.For(user.User{Timezone: strings.Repeat("x", i*300+n)})
				if got := *r.For(user.User{Timezone: "Asia/Tokyo"}); got != want {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
	readers.Wait()
}

func BenchmarkRenderer(b *testing.B) {
	r := delivery.NewRenderer(message.NewBook(nil), spring(delivery.KindReminder), delivery.Email)
	u := user.User{Locale: "zh-CN", Timezone: "Asia/Shanghai"}
	for b.Loop() {
		r.For(u)
	}
}

// BenchmarkBatch renders one batch: 1,000 mails in two languages and two zones, from a book that
// was used before.
func BenchmarkBatch(b *testing.B) {
	book := message.NewBook(nil)
	for b.Loop() {
		r := delivery.NewRenderer(book, spring(delivery.KindReminder), delivery.Email)
		for i := range 1000 {
			u := user.User{ID: user.ID(i), Name: "Ann", Locale: []string{"en", "zh-CN"}[i%2], Timezone: []string{"Asia/Shanghai", "Europe/Berlin"}[i/2%2]}
			r.For(u)
		}
	}
}
