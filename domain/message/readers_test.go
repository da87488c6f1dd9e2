package message_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/fault"
	"dropbell/domain/message"
)

// Readers belong to the text in their language, or to a missing language without its region.
func TestReadersOfLanguages(t *testing.T) {
	locales := map[string]int64{"": 5, "en": 10, "en-GB": 2, "de-AT": 3, "de": 4, "zh-CN": 7, "zh-TW": 1, "zh": 1, "fr-CA": 9, "xx-not a tag": 1}
	for name, c := range map[string]struct {
		tags []string
		want message.Readers
	}{
		"some texts": {[]string{"en", "zh"}, message.Readers{Of: map[string]int64{"en": 12, "zh": 9}, Other: 22,
			Missing: []message.Missing{{Language: "fr", Readers: 9}, {Language: "de", Readers: 7}}}},
		"no text": {nil, message.Readers{Of: map[string]int64{}, Other: 43, Missing: []message.Missing{{Language: "en", Readers: 12}, {Language: "fr", Readers: 9},
			{Language: "zh", Readers: 8}, {Language: "de", Readers: 7}, {Language: "zh-Hant", Readers: 1}}}},
	} {
		got := message.ReadersOf(c.tags, locales)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if got.Total() != 43 {
			t.Errorf("%s: %d readers", name, got.Total())
		}
	}
}

// The broken rules of several texts are told together, each with its channel.
func TestCheckOfSeveralTexts(t *testing.T) {
	key := func(c message.Channel) message.Key {
		return message.Key{Kind: message.Reminder, Channel: c, Language: "en"}
	}
	err := message.Check([]message.Change{{Key: key(message.SMS), Text: &message.Text{Body: "{{nope}}"}}, {Key: key(message.App), Text: &message.Text{Title: "x", Body: "y"}},
		{Key: key(message.Email), Text: &message.Text{Title: "x"}}, {Key: message.Key{Kind: message.Names, Language: "en"}, Text: &message.Text{}}, {Key: key(message.Webhook)}})
	var broken *fault.Fields
	var names []string
	if errors.As(err, &broken) {
		for _, f := range broken.List {
			names = append(names, f.Name)
		}
	}
	if diff := cmp.Diff([]string{"sms.body", "email.blocks", "name.title"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
