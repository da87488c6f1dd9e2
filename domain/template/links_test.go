package template_test

import (
	"context"
	"errors"
	"testing"

	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// fixedTexts has the same texts for every place.
type fixedTexts struct{ book *message.Book }

func (x fixedTexts) Book(context.Context, message.Place, int64) (*message.Book, error) {
	return x.book, nil
}

// A drop is not published with a text that would show an empty link.
func TestAnEmptyLinkIsNotPublished(t *testing.T) {
	written := func(body string) fixedTexts {
		return fixedTexts{message.NewBook([]message.Version{{ID: 1, Shop: 1, Key: message.Key{Kind: message.Reminder, Channel: message.SMS, Language: "en"}, Text: &message.Text{Body: body}}})}
	}
	for name, c := range map[string]struct {
		texts   message.Source
		claim   string
		refused bool
	}{
		"bare":          {written("Now: {{link}}"), "", true},
		"with a page":   {written("Now: {{link}}"), "https://shop.example/c", false},
		"optional":      {written("Now[[: {{link}}]]"), "", false},
		"no link":       {written("Now"), "", false},
		"built in":      {fixedTexts{message.NewBook(nil)}, "", false},
		"not looked at": {nil, "", false},
	} {
		s, store := serviceAt(template.Draft)
		s.Texts, store.held.ClaimURL, store.held.ShopClaimURL = c.texts, c.claim, ""
		_, err := s.Do(t.Context(), staff.System(), store.held.ID, 0, template.Publishing, "")
		var broken *fault.Fields
		if errors.As(err, &broken) != c.refused || c.refused && (broken.List[0].Name != "claim_url" || broken.List[0].Key != "rule.empty_reminder_link") || !c.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
