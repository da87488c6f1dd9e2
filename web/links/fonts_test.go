package links

import (
	"slices"
	"strings"
	"testing"

	"dropbell/musttest"
	"dropbell/views/i18n"
)

// Every text of the console that a picture can have is drawable in every language.
func TestFontsHaveTheTextsOfPictures(t *testing.T) {
	f, err := openFonts()
	musttest.OK(t, err)
	languages, err := i18n.Load()
	musttest.OK(t, err)
	for _, l := range languages.All() {
		for _, key := range l.Keys() {
			if text := l.T(key); (strings.HasPrefix(key, "story.") || strings.HasPrefix(key, "report.stage.")) && f.drawable(f.regular, text) == "" {
				t.Errorf("%s: %s cannot be written: %s", l.Tag, key, text)
			}
		}
	}
}

// Chinese text ends its lines between characters, and not before a punctuation mark.
func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"Moon cake night": {"Moon ", "cake ", "night"},
		"满 100 减 10":      {"满 ", "100 ", "减 ", "10"},
		"售罄，用时42秒。共《月饼》":  {"售", "罄，", "用", "时", "42", "秒。", "共", "《月", "饼》"},
	} {
		if got := words(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
