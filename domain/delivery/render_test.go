package delivery_test

import (
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func spring(kind delivery.Kind) delivery.Subject {
	return delivery.Subject{
		Kind:         kind,
		TemplateID:   7,
		TemplateName: "Spring 20% off",
		Slot:         2,
		OpensAt:      time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		ClaimURL:     "https://shop.example/c/7?a=1&b=2",
	}
}

func TestRender(t *testing.T) {
	for _, c := range []struct {
		name, locale, zone string
		change             func(*delivery.Subject)
		title, text        string
	}{
		{
			"reminder", "en-GB", "Asia/Shanghai", nil,
			"Opens in 10 minutes: Spring 20% off",
			"“Spring 20% off” opens on Friday, 20 November 2026 at 20:00 CST (UTC+8), in 10 minutes. Claim it at https://shop.example/c/7?a=1&b=2",
		}, {
			"reminder in Chinese", "zh-CN", "Asia/Shanghai", nil,
			"10 分钟后开抢：Spring 20% off",
			"「Spring 20% off」将于2026年11月20日（星期五）20:00（CST，UTC+8）开抢，还有 10 分钟。领取：https://shop.example/c/7?a=1&b=2",
		}, {
			"farthest slot, other day", "en", "Pacific/Auckland",
			func(s *delivery.Subject) { s.Slot = 12 },
			"Opens in 60 minutes: Spring 20% off",
			"“Spring 20% off” opens on Saturday, 21 November 2026 at 01:00 NZDT (UTC+13), in 60 minutes. Claim it at https://shop.example/c/7?a=1&b=2",
		}, {
			"long after its instant", "en", "Asia/Shanghai",
			func(s *delivery.Subject) { *s = s.At(s.OpensAt.Add(-4*time.Minute - 30*time.Second)) },
			"Opens in 4 minutes: Spring 20% off",
			"“Spring 20% off” opens on Friday, 20 November 2026 at 20:00 CST (UTC+8), in 4 minutes. Claim it at https://shop.example/c/7?a=1&b=2",
		}, {
			"a minute before", "en", "Asia/Shanghai",
			func(s *delivery.Subject) { *s = s.At(s.OpensAt.Add(-100 * time.Second)) },
			"Opens in one minute: Spring 20% off",
			"“Spring 20% off” opens on Friday, 20 November 2026 at 20:00 CST (UTC+8), in one minute. Claim it at https://shop.example/c/7?a=1&b=2",
		}, {
			"seconds before, in Chinese", "zh", "Asia/Shanghai",
			func(s *delivery.Subject) { *s = s.At(s.OpensAt.Add(-20 * time.Second)) },
			"即将开抢：Spring 20% off",
			"「Spring 20% off」将于2026年11月20日（星期五）20:00（CST，UTC+8）开抢。领取：https://shop.example/c/7?a=1&b=2",
		}, {
			"a little late", "en", "Asia/Shanghai",
			func(s *delivery.Subject) { *s = s.At(s.OpensAt.Add(-9*time.Minute - 20*time.Second)) },
			"Opens in 10 minutes: Spring 20% off",
			"“Spring 20% off” opens on Friday, 20 November 2026 at 20:00 CST (UTC+8), in 10 minutes. Claim it at https://shop.example/c/7?a=1&b=2",
		}, {
			"zone without a name, seconds, no link", "fr-FR", "America/Sao_Paulo",
			func(s *delivery.Subject) { s.OpensAt, s.ClaimURL = s.OpensAt.Add(10*time.Second), "" },
			"Opens in 10 minutes: Spring 20% off",
			"“Spring 20% off” opens on Friday, 20 November 2026 at 09:00:10 UTC-3, in 10 minutes.",
		}, {
			"Chinese, zone without a name", "zh_Hant_TW", "Asia/Kathmandu",
			func(s *delivery.Subject) { s.ClaimURL = "" },
			"10 分钟后开抢：Spring 20% off",
			"「Spring 20% off」将于2026年11月20日（星期五）17:45（UTC+5:45）开抢，还有 10 分钟。",
		}, {
			"UTC", "", "UTC",
			func(s *delivery.Subject) { s.ClaimURL, s.Slot = "", 0 },
			"Opens soon: Spring 20% off",
			"“Spring 20% off” opens on Friday, 20 November 2026 at 12:00 UTC.",
		}, {
			"correction", "en", "America/New_York",
			func(s *delivery.Subject) { s.Kind = delivery.KindCorrection },
			"New opening time: Spring 20% off",
			"The opening of “Spring 20% off” has moved. It now opens on Friday, 20 November 2026 at 07:00 EST (UTC-5). Claim it at https://shop.example/c/7?a=1&b=2",
		}, {
			"correction in Chinese", "ZH", "UTC",
			func(s *delivery.Subject) { s.Kind, s.ClaimURL = delivery.KindCorrection, "" },
			"开抢时间已变更：Spring 20% off",
			"「Spring 20% off」的开抢时间已变更，现定于2026年11月20日（星期五）12:00（UTC）开抢。",
		}, {
			"cancelled has no link", "en", "UTC",
			func(s *delivery.Subject) { s.Kind = delivery.KindCancelled },
			"Cancelled: Spring 20% off",
			"“Spring 20% off” has been cancelled and will not open. You need not do anything.",
		}, {
			"cancelled in Chinese", "zh", "UTC",
			func(s *delivery.Subject) { s.Kind = delivery.KindCancelled },
			"已取消：Spring 20% off",
			"「Spring 20% off」已取消，不会开抢。您无需进行任何操作。",
		}, {
			"test", "zha", "UTC",
			func(s *delivery.Subject) { s.Kind, s.ClaimURL = delivery.KindTest, "" },
			"Test message: Spring 20% off",
			"This is a test message for “Spring 20% off”. It opens on Friday, 20 November 2026 at 12:00 UTC.",
		}, {
			"test without an opening, in Chinese", "zh-Hans", "UTC",
			func(s *delivery.Subject) {
				s.Kind, s.ClaimURL, s.OpensAt, s.TemplateName = delivery.KindTest, "", time.Time{}, ""
			},
			"测试消息：优惠券",
			"这是「优惠券」的一条测试消息。",
		}, {
			"notice", "en", "UTC",
			func(s *delivery.Subject) { s.Kind, s.Slot = delivery.KindNotice, 3 },
			"Coupon expires in 3 days: Spring 20% off",
			"Your coupon “Spring 20% off” expires in 3 days and has not been used yet. Use it at https://shop.example/c/7?a=1&b=2",
		}, {
			"notice of tomorrow, in Chinese", "zh-CN", "UTC",
			func(s *delivery.Subject) { s.Kind, s.Slot, s.ClaimURL = delivery.KindNotice, 1, "" },
			"优惠券明天到期：Spring 20% off",
			"您的优惠券「Spring 20% off」明天到期，尚未使用。",
		}, {
			"notice of the last day", "en", "UTC",
			func(s *delivery.Subject) { s.Kind, s.Slot, s.ClaimURL = delivery.KindNotice, 0, "" },
			"Coupon expires today: Spring 20% off",
			"Your coupon “Spring 20% off” expires today and has not been used yet.",
		}, {
			"any other kind", "en", "UTC",
			func(s *delivery.Subject) { s.Kind = "other" },
			"Spring 20% off",
			"Spring 20% off: https://shop.example/c/7?a=1&b=2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spring(delivery.KindReminder)
			if c.change != nil {
				c.change(&s)
			}
			got := delivery.Render(s, c.locale, zone(t, c.zone))
			if got.Title != c.title {
				t.Errorf("title\n got %q\nwant %q", got.Title, c.title)
			}
			if got.Text != c.text {
				t.Errorf("text\n got %q\nwant %q", got.Text, c.text)
			}
		})
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
		strings.Repeat("券", 200):            strings.Repeat("券", 200),
		strings.Repeat("券", 201):            strings.Repeat("券", 199) + "…",
		strings.Repeat("\u202e", 300) + "x": "x",
	} {
		s := spring(delivery.KindReminder)
		s.TemplateName = name
		got := delivery.Render(s, "en", time.UTC)
		if want := "Opens in 10 minutes: " + wanted; got.Title != want {
			t.Errorf("%.40q: got title %q, want %q", name, got.Title, want)
		}
		if !utf8.ValidString(got.HTML) || !utf8.ValidString(got.Text) {
			t.Errorf("%.40q: not valid UTF-8", name)
		}
	}
}

func TestRenderedHTMLIsEscaped(t *testing.T) {
	s := spring(delivery.KindReminder)
	s.TemplateName = `<img src=x onerror=alert(1)>"'&</title></style><script>`
	s.ClaimURL = `https://shop.example/"><script>alert(1)</script>`
	html := delivery.Render(s, "en", time.UTC).HTML
	for _, evil := range []string{"<img", "<script", "</script"} {
		if strings.Contains(html, evil) {
			t.Errorf("%q got through:\n%s", evil, html)
		}
	}
	if !strings.Contains(html, "<bdi>&lt;img src=x onerror=alert(1)&gt;") {
		t.Errorf("the name is not shown as it is:\n%s", html)
	}
}

func TestRenderedHTML(t *testing.T) {
	html := delivery.Render(spring(delivery.KindReminder), "zh-TW", zone(t, "Asia/Shanghai")).HTML
	for _, want := range []string{
		`<html lang="zh-CN">`, "<title>10 分钟后开抢：Spring 20% off</title>", "<bdi>Spring 20% off</bdi>",
		`href="https://shop.example/c/7?a=1&amp;b=2"`, "立即领取", "prefers-color-scheme: dark", "还有 10 分钟。",
		"您收到此消息，是因为您预约了这次开抢的提醒。",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing in\n%s", want, html)
		}
	}
	cancelled := delivery.Render(spring(delivery.KindCancelled), "en", time.UTC).HTML
	if strings.Contains(cancelled, "<a ") || strings.Contains(cancelled, "ZgotmplZ") {
		t.Errorf("a cancelled drop must not have a button:\n%s", cancelled)
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
	r := delivery.NewRenderer(spring(delivery.KindReminder), delivery.Email)
	reader := func(locale, zone string) *delivery.Content {
		return r.For(user.User{Locale: locale, Timezone: zone})
	}
	if reader("en", "UTC") != reader("fr-FR", "UTC") || reader("zh", "Asia/Tokyo") != reader("zh-TW", "Asia/Tokyo") {
		t.Error("readers of one language and zone must share their content")
	}
	if reader("en", "UTC").Text == reader("en", "Asia/Tokyo").Text || reader("en", "UTC").Text == reader("zh", "UTC").Text {
		t.Error("another language or zone must read differently")
	}
	want := delivery.Render(spring(delivery.KindReminder), "zh", zone(t, "Asia/Tokyo"))
	if got := *reader("zh-CN", "Asia/Tokyo"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if *reader("en", "No/Where") != *reader("en", "UTC") {
		t.Error("an unknown zone must read UTC")
	}
}

func TestRendererConcurrently(t *testing.T) {
	r := delivery.NewRenderer(spring(delivery.KindReminder), delivery.Email)
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
	r := delivery.NewRenderer(spring(delivery.KindReminder), delivery.Email)
	u := user.User{Locale: "zh-CN", Timezone: "Asia/Shanghai"}
	for b.Loop() {
		r.For(u)
	}
}
