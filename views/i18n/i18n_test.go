package i18n

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/musttest"
)

func load(t *testing.T) *Languages {
	t.Helper()
	l, err := Load()
	musttest.OK(t, err)
	return l
}

var placeholder = regexp.MustCompile(`\{[0-9]\}`)

// Every language has every text, with the same arguments. Chinese has no singular, so it lacks the
// singular forms.
func TestCataloguesAgree(t *testing.T) {
	l := load(t)
	en, zh := l.All()[0], l.All()[1]
	args := func(s string) []string {
		found := placeholder.FindAllString(s, -1)
		slices.Sort(found)
		return slices.Compact(found)
	}
	for _, key := range en.Keys() {
		if stem, ok := strings.CutSuffix(key, ".one"); ok && en.Has(stem+".other") {
			continue
		}
		if !zh.Has(key) {
			t.Errorf("zh-CN lacks %q", key)
			continue
		}
		if a, b := args(en.messages[key]), args(zh.messages[key]); !slices.Equal(a, b) {
			t.Errorf("%s: en has %v, zh-CN has %v", key, a, b)
		}
		if strings.TrimSpace(zh.messages[key]) == "" && key != "ui.list_join" || strings.TrimSpace(en.messages[key]) == "" {
			t.Errorf("%s is empty", key)
		}
	}
	for _, key := range zh.Keys() {
		if !en.Has(key) {
			t.Errorf("en lacks %q", key)
		}
	}
}

func TestMatch(t *testing.T) {
	l := load(t)
	for wish, want := range map[string]string{"": "en", "zh": "zh-CN", "zh-TW": "zh-CN", "ZH_cn": "zh-CN", "fr, zh;q=0.3, en;q=0.2": "zh-CN",
		"en-GB,zh;q=0.9": "en", "de": "en", "!!": "en", "*": "en", strings.Repeat("x-", 5000): "en"} {
		if got := l.Match(wish).Tag; got != want {
			t.Errorf("Match(%.20q) = %s, want %s", wish, got, want)
		}
	}
	if got := l.Match("", "xx", "zh-CN", "en").Tag; got != "zh-CN" {
		t.Errorf("the first usable wish is zh-CN, not %s", got)
	}
}

func TestMessages(t *testing.T) {
	en, zh := load(t).All()[0], load(t).All()[1]
	for _, c := range []struct{ got, want string }{
		{en.N("form.errors", 1), "One thing needs your attention"},
		{en.N("form.errors", 12000), "12,000 things need your attention"},
		{en.N("form.errors", 0), "0 things need your attention"},
		{zh.N("form.errors", 1), "有 1 处需要修改"},
		{en.T("worth.threshold", "{1}", "b"), "{1} off from b"}, // arguments are not read for placeholders
		{en.T("no.such.key", 1), "no.such.key"},
		{en.Number(1234567), "1,234,567"},
		{en.Compact(9999), "9,999"}, {en.Compact(12345), "12.3k"}, {en.Compact(999_999), "999k"}, {en.Compact(1_000_000), "1M"}, {en.Compact(12_345_678_901), "12.3B"},
		{zh.Compact(9999), "9,999"}, {zh.Compact(12345), "1.2万"}, {zh.Compact(123_456_789), "1.2亿"},
		{en.Percent(0, 0), "0%"}, {en.Percent(1, 1_000_000), "<0.1%"}, {en.Percent(999_999, 1_000_000), ">99.9%"}, {en.Percent(1, 3), "33.3%"}, {en.Percent(5, 5), "100%"},
		{en.Money(2050, "CNY"), "¥20.50"}, {en.Money(2000, "CNY", 100, 2050), "¥20.00"}, {en.Money(2000, "CNY", 100), "¥20"}, {zh.Money(2000, "CNY"), "¥20"}, {en.Money(123456, "JPY"), "JP¥123,456"}, {en.Money(-5, "USD"), "−$0.05"},
		{en.Sum(99_999, "CNY"), "¥999.99"}, {en.Sum(100_050, "CNY"), "¥1,001"}, {en.Sum(-100_049, "CNY"), "−¥1,000"}, {en.Sum(16_000, "CNY"), "¥160.00"},
		{en.Sum(0, "CNY"), "¥0"}, {en.Sum(1_234, "JPY"), "JP¥1,234"}, {en.Sum(-12, "EUR"), "−€0.12"},
		{en.Money(1005, "KWD"), "KWD 1.005"}, {en.Money(100, "XQZ"), "XQZ 1"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestTimes(t *testing.T) {
	en, zh := load(t).All()[0], load(t).All()[1]
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	musttest.OK(t, err)
	zone := func(name string) *time.Location {
		z, err := time.LoadLocation(name)
		musttest.OK(t, err)
		return z
	}
	kathmandu, berlin, chatham := zone("Asia/Kathmandu"), zone("Europe/Berlin"), zone("Pacific/Chatham")
	at := time.Date(2026, 11, 20, 12, 0, 5, 0, time.UTC)
	for _, c := range []struct{ got, want string }{
		{en.DateTime(at, shanghai), "Fri 20 Nov 2026, 20:00:05"},
		{zh.DateTime(at, shanghai), "2026年11月20日 周五 20:00:05"},
		{en.Clock(at.Add(-5*time.Second), shanghai), "20:00"},
		{en.Zone(at, shanghai), "Beijing time"}, {zh.Zone(at, shanghai), "北京时间"}, {en.Zone(at, time.UTC), "UTC"}, {zh.Zone(at, time.UTC), "UTC"}, {en.Zone(at, kathmandu), "Nepal time"},
		{en.Zone(at, berlin), "Berlin time (UTC+1)"}, {zh.Zone(at, berlin), "柏林时间（UTC+1）"}, {en.Zone(at, chatham), "Chatham time (UTC+13:45)"}, {zh.Zone(at, chatham), "UTC+13:45"},
		{en.Zone(at, time.FixedZone("", -90*60)), "UTC−1:30"}, {en.Zone(at, time.FixedZone("Etc/x", 3600)), "UTC+1"},
		{en.Duration(49 * time.Hour), "2 days"}, {en.Duration(24 * time.Hour), "1 day"}, {en.Duration(26 * time.Hour), "1 day 2 h"},
		{en.Duration(-3 * time.Hour), "3 h"}, {en.Duration(192 * time.Minute), "3 h 12 min"}, {en.Duration(90 * time.Second), "1 min 30 s"},
		{en.Duration(10*time.Minute + 30*time.Second), "10 min"}, {en.Duration(59 * time.Second), "59 s"}, {zh.Duration(192 * time.Minute), "3 小时 12 分钟"},
		{en.Ago(at.Add(-59*time.Second), at), "just now"}, {en.Ago(at.Add(-90*time.Second), at), "1 min ago"}, {en.Ago(at.Add(-50*time.Hour), at), "2 days ago"},
		{en.Ago(at.Add(192*time.Minute), at), "in 3 h 12 min"}, {zh.Ago(at.Add(-30*time.Hour), at), "1 天前"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
