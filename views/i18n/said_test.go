package i18n

import "testing"

// Sentences that programs store are shown in the viewer's language, even inside one another; words
// of providers are quotations.
func TestStoredSentences(t *testing.T) {
	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                               "",
		"timed out":                      "超时",
		"the provider answered HTTP 503": "服务商返回 HTTP 503",
		"the provider answered HTTP 401: check the configured credentials": "服务商返回 HTTP 401：请检查所配置的凭据",
		"no connection to the mail server: timed out":                      "无法连接邮件服务器：超时",
		"no connection to the mail server: connection refused":             "无法连接邮件服务器：连接被拒绝",
		"the mail server refused us: 535 5.7.8 bad\nlogin":                 "邮件服务器拒绝：「535 5.7.8 bad\nlogin」",
		"APNs answered 410 Unregistered":                                   "APNs 返回：「410 Unregistered」",
		"WeChat answered 45009 reach max: the quota of the day is used up": "微信返回：「45009 reach max」。当日配额已用完",
		"lookup shop.example: no such host":                                "找不到主机 shop.example",
		"lookup shop.example: the resolver gave no answer":                 "查询 shop.example 时，DNS 服务器未给出结果",
		"payload of reservations.changed.v1: unexpected end of JSON input": "reservations.changed.v1 的内容无法读取：「unexpected end of JSON input」",
		"payload: unexpected end of JSON input":                            "内容无法读取：「unexpected end of JSON input」",
		"550 <no> such mailbox":                                            "「550 <no> such mailbox」",
		"the provider answered HTTP ":                                      "「the provider answered HTTP 」",
	} {
		if got := l.All()[1].Said(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		if got := l.Default().Said(text); got != text {
			t.Errorf("in English %q is %q", text, got)
		}
	}
	if got := l.All()[1].Answered("550 no"); got != "对方返回：「550 no」" {
		t.Error(got)
	}
}
