package sms_test

import (
	"slices"
	"testing"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
)

func TestTemplates(t *testing.T) {
	texts, err := sms.ParseTemplates(`{"reminder":{"zh-CN":{"id":"1","params":["drop"]},"en":{"id":"2","params":["text","n=user"]}},"*":{"*":{"id":"3"}}}`)
	if err != nil || texts.Empty() || !texts.Named() {
		t.Fatalf("got %+v, %v", texts, err)
	}
	m := sendertest.Messages(delivery.SMS, 1)[0]
	m.Values = func() map[string]string { return map[string]string{"drop": "春季", "user": "Ada"} }
	for locale, want := range map[string]string{"zh-CN": "1", "en": "2", "en-GB": "2", "fr": "", "": ""} {
		m.To.Locale = locale
		if got, _ := texts.For(m); got.ID != want {
			t.Errorf("%q: got %q, want %q", locale, got.ID, want)
		}
	}
	m.To.Locale = "en"
	if got, _ := texts.For(m); !slices.Equal(got.Names, []string{"text", "n"}) || !slices.Equal(got.Values, []string{m.Content.Text, "Ada"}) {
		t.Errorf("got %+v", got)
	}
	m.Subject.Kind = delivery.KindCampaign
	if got, found := texts.For(m); !found || got.ID != "3" {
		t.Errorf("of another kind: got %+v, %v", got, found)
	}
	// A code is in its own text or in the whole message, never left out.
	m.Subject.Kind = delivery.KindVerification
	if got, found := texts.For(m); found {
		t.Errorf("a code is sent by %+v", got)
	}
	for text, id := range map[string]string{`{"*":{"*":{"id":"3","params":["text"]}}}`: "3", `{"verification":{"*":{"id":"4","params":["code","minutes"]}},"*":{"*":{"id":"3"}}}`: "4"} {
		texts, err := sms.ParseTemplates(text)
		if got, found := texts.For(m); err != nil || !found || got.ID != id {
			t.Errorf("%s: %+v, %v, %v", text, got, found, err)
		}
	}
	if r := sms.NoTemplate(m); r.Status != delivery.Permanent || r.Reason != delivery.ReasonNoTemplate {
		t.Errorf("got %+v", r)
	}
}

func TestTemplatesNameTheMistake(t *testing.T) {
	for _, text := range []string{"x", `[]`, `{"reminder":{"zh-CN":{}}}`, `{"reminders":{"zh-CN":{"id":"1"}}}`, `{"reminder":{"zh_cn":{"id":"1"}}}`,
		`{"reminder":{"zh-CN":{"id":"1","params":["price"]}}}`, `{"cancelled":{"en":{"id":"1","params":["link"]}}}`, `{"*":{"*":{"id":"1","params":["link"]}}}`, `{"reminder":{"en":{"id":"1","x":1}}}`, `{} {}`} {
		if _, err := sms.ParseTemplates(text); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	if texts, err := sms.ParseTemplates(" "); err != nil || !texts.Empty() {
		t.Errorf("none: got %v, %v", texts, err)
	}
}
