package i18n

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"

	"dropbell/musttest"
)

func TestFilesOfALanguageAreMerged(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	from := fstest.MapFS{"en.json": file(`{"a":"1"}`), "en.more.json": file(`{"b":"2"}`), "de.json": file(`{"c":"3"}`), "de.more.json": file(`{"c":"4"}`),
		"fr.json": file(`[]`), "en-GB.json": file(`{"d":"5"}`)}
	got, err := catalogue(from, "en")
	if err != nil || len(got) != 2 || got["a"] != "1" || got["b"] != "2" {
		t.Errorf("merged %v, %v", got, err)
	}
	for tag, want := range map[string]string{"de": `"c"`, "fr": "fr.json", "it": "it.json"} {
		if _, err := catalogue(from, tag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not name %s", tag, err, want)
		}
	}
}

// Both languages say the same things; only plural forms may differ.
func TestLanguagesHaveTheSameKeys(t *testing.T) {
	l, err := Load()
	musttest.OK(t, err)
	other := func(keys []string) []string {
		return slices.DeleteFunc(keys, func(k string) bool { return strings.HasSuffix(k, ".one") })
	}
	want := other(l.Default().Keys())
	for _, loc := range l.All()[1:] {
		have := other(loc.Keys())
		for _, k := range want {
			if !slices.Contains(have, k) {
				t.Errorf("%s lacks %q", loc.Tag, k)
			}
		}
		for _, k := range have {
			if !slices.Contains(want, k) {
				t.Errorf("%s has %q, which English lacks", loc.Tag, k)
			}
		}
	}
}

// A placeholder that only one language has would show as "{1}" or lose a number.
func TestLanguagesUseTheSamePlaceholders(t *testing.T) {
	l, err := Load()
	musttest.OK(t, err)
	for _, loc := range l.All()[1:] {
		for key, text := range loc.messages {
			for _, p := range []string{"{0}", "{1}", "{2}", "{3}", "{4}", "{5}"} {
				if strings.Contains(text, p) != strings.Contains(l.Default().messages[key], p) {
					t.Errorf("%s: %q and English disagree about %s", loc.Tag, key, p)
				}
			}
		}
	}
}

// The Chinese texts use one word for one thing, so that a thing named on one page can be found on
// another page, and keep to full-width punctuation.
func TestChineseUsesOneWordForOneThing(t *testing.T) {
	l, err := Load()
	musttest.OK(t, err)
	instead := map[string]string{
		"营销活动": "促销活动", "提醒方式": "触达渠道", "投递方式": "渠道", "发送方式": "渠道", "该方式": "该渠道", "此方式": "此渠道", "开抢": "抢券开始",
		"审批": "批准", "审计日志": "操作日志",
		"接收者": "接收人", "收件人": "接收人", "客户 ID": "客户编号", "客户ID": "客户编号", "顾客": "客户", "“": "「", "”": "」",
		"供应商": "服务商", "商店": "店铺", "每名客户": "每位客户", "消息盒子": "收件箱", "必填": "请填写…",
	}
	elsewhere := map[string]string{"confirm.sso_loses": "此方式", // a way of confirming
		"docs.required": "必填", "approval.reason_help": "必填"} // said of a field before it is filled in
	halfWidth := regexp.MustCompile(`\p{Han}[,;:!?]|[,;:!?]\p{Han}|\p{Han} +[\p{Han}，。：；！？、）」]|[，。：；！？、（「] `)
	// A campaign and a drop are both 活动: a text names which of the two it is about before it says 活动 alone.
	// The API's documents and the pages of customers are about drops only.
	drops := regexp.MustCompile(`^(docs|drop_page|said)\.|^queues\.task\.live`)
	named := regexp.MustCompile(`促销活动|抢券活动|[该此本]活动|本[次场]活动|所选活动|某个活动|系列活动`)
	webhook := regexp.MustCompile(`^(docs|provider)\.|^alerts\.help\.url$`) // the words of interfaces and of other programs
	for key, text := range l.All()[1].messages {
		for wrong, right := range instead {
			if strings.Contains(text, wrong) && elsewhere[key] != wrong {
				t.Errorf("%q says %s, not %s: %s", key, wrong, right, text)
			}
		}
		if at := strings.Index(text, "活动"); at >= 0 && !drops.MatchString(key) {
			if is := named.FindStringIndex(text); is == nil || is[0] > at {
				t.Errorf("%q does not say whether it is about 促销活动 or 抢券活动: %s", key, text)
			}
		}
		if strings.Contains(strings.NewReplacer("Webhook 回调", "", "Webhook 事件回调", "").Replace(text), "Webhook") && !webhook.MatchString(key) {
			t.Errorf("%q says Webhook alone, not Webhook 回调: %s", key, text)
		}
		if halfWidth.MatchString(text) {
			t.Errorf("%q has half-width punctuation: %s", key, text)
		}
	}
}

// The English texts use the words of marketers and one word for one thing. States begin with a capital.
func TestEnglishUsesPlainWords(t *testing.T) {
	l, err := Load()
	musttest.OK(t, err)
	instead := map[string]string{`\bslots?\b`: "reminder time", `\bheld out\b|\bhold-out\b`: "control group", `idempoten`: "repeated request", `\bshards?\b`: "part of the stock",
		`dead letter`: "failed message", `E\.164`: "phone number with its country code", `BCP ?47`: "language tag", `\bpayload\b`: "content", `'`: "’", `^is required$`: "enter a …", `\breplica\b`: "copy of the database"}
	developers := regexp.MustCompile(`^(docs|said)\.`)
	state := regexp.MustCompile(`\.(state|status|level|stage)\.`)
	for key, text := range l.All()[0].messages {
		if developers.MatchString(key) {
			continue
		}
		for wrong, right := range instead {
			if regexp.MustCompile(`(?i)` + wrong).MatchString(text) {
				t.Errorf("%q says %s, not %s: %s", key, wrong, right, text)
			}
		}
		if first, _ := utf8.DecodeRuneInString(text); state.MatchString(key) && unicode.IsLower(first) {
			t.Errorf("%q is a state and begins with a small letter: %s", key, text)
		}
	}
}

// The console calls the end user of a shop a customer, like its menu. Texts about the API say user,
// like the API.
func TestTextsSayCustomer(t *testing.T) {
	l, err := Load()
	musttest.OK(t, err)
	aboutTheAPI := regexp.MustCompile(`^docs\.|^scope\.act-as-user|^rule\.hook_user$|^said\.setup\.smtp_user$`)
	word := []*regexp.Regexp{regexp.MustCompile(`(?i)(?:^|[^\w{/-])users?(?:[^\w|@-]|$)`), regexp.MustCompile(`用户`)}
	for i, loc := range l.All() {
		for key, text := range loc.messages {
			if word[i].MatchString(text) && !aboutTheAPI.MatchString(key) {
				t.Errorf("%s: %q calls a customer a user: %s", loc.Tag, key, text)
			}
		}
	}
}
