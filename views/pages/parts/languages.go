package parts

import (
	"context"

	"dropbell/domain/message"
	"dropbell/views/ui"
)

// A LanguageTab is one language of a text.
type LanguageTab struct {
	// Tag is the BCP 47 tag; "" = the default language of a campaign.
	Tag string
	// Readers is about how many readers get the text; nil if that is unknown.
	Readers *int64
	// Note says what is missing in the language; "" = nothing.
	Note string
	// URL is the page of the language where each language has a page.
	URL string
	// Current is whether the language is shown.
	Current bool
	// Group names the tabs of one form, Value the tab in it, and NoteID the line below the name.
	Group, Value, NoteID string
}

func (t LanguageTab) id() string { return "tab-" + t.Group + "-" + t.Value }

// Name names the language of the tab.
func (t LanguageTab) Name(ctx context.Context) string {
	if t.Tag == "" {
		return ui.T(ctx, "campaign.preview.default")
	}
	return LanguageName(ctx, t.Tag)
}

// Said says how many readers the text has, and what is missing.
func (t LanguageTab) Said(ctx context.Context) string {
	text := t.Note
	if t.Readers != nil {
		readers := ui.N(ctx, "language.readers", *t.Readers)
		if text == "" {
			return readers
		}
		text = readers + " · " + text
	}
	return text
}

// LanguageName returns the name of the language in the viewer's language.
func LanguageName(ctx context.Context, tag string) string {
	return ui.From(ctx).Locale.LanguageName(tag)
}

// missingShown is how many languages without a text are offered by name beside the tabs.
const missingShown = 6

// MostMissing returns the languages without a text that most readers have.
func MostMissing(list []message.Missing) []message.Missing {
	return list[:min(len(list), missingShown)]
}

// MissingText says how many readers have no text in their language.
func MissingText(ctx context.Context, m message.Missing) string {
	return ui.N(ctx, "language.missing", m.Readers)
}

// LanguageChoice is a choice of a language by its name. The languages in front, of which readers have
// no text, come first; those in without are left out. A chosen tag that has no name is among the
// choices.
func LanguageChoice(ctx context.Context, c ui.ChoiceProps, front []message.Missing, without ...string) ui.ChoiceProps {
	seen := map[string]bool{}
	for _, tag := range without {
		seen[tag] = true
	}
	add := func(tag, label string) {
		if !seen[tag] {
			seen[tag] = true
			c.Options = append(c.Options, ui.Option{Value: tag, Label: label})
		}
	}
	for _, m := range front {
		add(m.Language, LanguageName(ctx, m.Language)+" · "+ui.N(ctx, "language.readers", m.Readers))
	}
	list := ui.From(ctx).Locale.LanguageNames()
	for _, l := range list {
		add(l.Tag, l.Name)
	}
	if c.Value != "" {
		add(c.Value, LanguageName(ctx, c.Value))
	}
	return c
}
