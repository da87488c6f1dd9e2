package delivery

import (
	"fmt"
	"strings"
	"time"
)

// facts are what the sentences of one message are made of, already fit to print.
type facts struct {
	kind    Kind
	name    string
	minutes int    // before the opening; 0 when unknown
	days    int    // before the coupon's expiry; 0 on its last day
	when    string // the opening in the reader's zone; empty when unknown
	url     string // where to claim; empty when there is nowhere or nothing
}

// words are the sentences of one message in one language.
type words struct {
	lang    string
	eyebrow string // the news in two or three words
	title   string
	lead    string // everything the reader must know, without the link
	link    string // what comes before the link in plain text
	button  string
	footer  string // why this message came
}

// A wording is one language's sentences.
type wording struct {
	lang    string
	unnamed string
	when    func(t time.Time) string
	words   func(f facts) words
}

// wordingFor returns the Chinese wording for every zh locale, else the English one.
func wordingFor(locale string) wording {
	primary, _, _ := strings.Cut(strings.ReplaceAll(locale, "_", "-"), "-")
	if strings.EqualFold(primary, "zh") {
		return wording{lang: "zh-CN", unnamed: "优惠券", when: whenChinese, words: chinese}
	}
	return wording{lang: "en", unnamed: "Coupon", when: whenEnglish, words: english}
}

func english(f facts) words {
	w := words{
		lang:   "en",
		link:   " Claim it at ",
		button: "Claim it",
		footer: "You receive this because you reserved a reminder for this drop.",
	}
	switch f.kind {
	case KindReminder:
		w.eyebrow, w.lead = "Opens soon", fmt.Sprintf("“%s” opens on %s.", f.name, f.when)
		if f.minutes > 0 {
			left := fmt.Sprintf("in %d minutes", f.minutes)
			if f.minutes == 1 {
				left = "in one minute"
			}
			w.eyebrow, w.lead = "Opens "+left, fmt.Sprintf("“%s” opens on %s, %s.", f.name, f.when, left)
		}
	case KindCorrection:
		w.eyebrow = "New opening time"
		w.lead = fmt.Sprintf("The opening of “%s” has moved. It now opens on %s.", f.name, f.when)
	case KindCancelled:
		w.eyebrow = "Cancelled"
		w.lead = fmt.Sprintf("“%s” has been cancelled and will not open. You need not do anything.", f.name)
	case KindNotice:
		w.link, w.button, w.footer = " Use it at ", "Use it", "You receive this because you have this coupon."
		left := "expires today"
		switch {
		case f.days == 1:
			left = "expires tomorrow"
		case f.days > 1:
			left = fmt.Sprintf("expires in %d days", f.days)
		}
		w.eyebrow, w.lead = "Coupon "+left, fmt.Sprintf("Your coupon “%s” %s and has not been used yet.", f.name, left)
	case KindTest:
		w.eyebrow, w.footer = "Test message", "Somebody at the shop sent this test to you."
		w.lead = fmt.Sprintf("This is a test message for “%s”.", f.name)
		if f.when != "" {
			w.lead += fmt.Sprintf(" It opens on %s.", f.when)
		}
	default:
		w.title, w.lead, w.link, w.footer = f.name, f.name, ": ", ""
		return w
	}
	w.title = w.eyebrow + ": " + f.name
	return w
}

func chinese(f facts) words {
	w := words{
		lang:   "zh-CN",
		link:   "领取：",
		button: "立即领取",
		footer: "您收到此消息，是因为您预约了这次开抢的提醒。",
	}
	switch f.kind {
	case KindReminder:
		w.eyebrow, w.lead = "即将开抢", fmt.Sprintf("「%s」将于%s开抢。", f.name, f.when)
		if f.minutes > 0 {
			w.eyebrow = fmt.Sprintf("%d 分钟后开抢", f.minutes)
			w.lead = fmt.Sprintf("「%s」将于%s开抢，还有 %d 分钟。", f.name, f.when, f.minutes)
		}
	case KindCorrection:
		w.eyebrow = "开抢时间已变更"
		w.lead = fmt.Sprintf("「%s」的开抢时间已变更，现定于%s开抢。", f.name, f.when)
	case KindCancelled:
		w.eyebrow = "已取消"
		w.lead = fmt.Sprintf("「%s」已取消，不会开抢。您无需进行任何操作。", f.name)
	case KindNotice:
		w.link, w.button, w.footer = "使用：", "立即使用", "您收到此消息，是因为您持有这张优惠券。"
		left := "今天到期"
		switch {
		case f.days == 1:
			left = "明天到期"
		case f.days > 1:
			left = fmt.Sprintf("将在 %d 天后到期", f.days)
		}
		w.eyebrow, w.lead = "优惠券"+left, fmt.Sprintf("您的优惠券「%s」%s，尚未使用。", f.name, left)
	case KindTest:
		w.eyebrow, w.footer = "测试消息", "这是商家发给您的一条测试消息。"
		w.lead = fmt.Sprintf("这是「%s」的一条测试消息。", f.name)
		if f.when != "" {
			w.lead += fmt.Sprintf("开抢时间：%s。", f.when)
		}
	default:
		w.title, w.lead, w.link, w.footer = f.name, f.name, "：", ""
		return w
	}
	w.title = w.eyebrow + "：" + f.name
	return w
}

func whenEnglish(t time.Time) string {
	name, offset := zoneOf(t)
	if name != "" && offset != "" {
		offset = " (" + offset + ")"
	}
	return t.Format("Monday, 2 January 2006") + " at " + clock(t) + " " + name + offset
}

func whenChinese(t time.Time) string {
	name, offset := zoneOf(t)
	if name != "" && offset != "" {
		name += "，"
	}
	weekday := string([]rune("日一二三四五六")[t.Weekday()])
	return t.Format("2006年1月2日") + "（星期" + weekday + "）" + clock(t) + "（" + name + offset + "）"
}

// clock shows seconds only where there are any.
func clock(t time.Time) string {
	if t.Second() != 0 {
		return t.Format("15:04:05")
	}
	return t.Format("15:04")
}

// zoneOf names t's zone twice, because an abbreviation alone may mean several
// zones ("CST"). Either may be empty: many zones have no abbreviation, and UTC
// needs no offset.
func zoneOf(t time.Time) (name, offset string) {
	name, seconds := t.Zone()
	if name == "UTC" {
		return name, ""
	}
	if strings.HasPrefix(name, "+") || strings.HasPrefix(name, "-") {
		name = ""
	}
	sign := '+'
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	offset = fmt.Sprintf("UTC%c%d", sign, seconds/3600)
	if minutes := seconds / 60 % 60; minutes != 0 {
		offset += fmt.Sprintf(":%02d", minutes)
	}
	return name, offset
}
