package i18n

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// A Named is a language with its name.
type Named struct{ Tag, Name string }

// namers have the names of languages in the languages of the console.
var namers = map[string]display.Namer{"en": display.Tags(language.English), "zh-CN": display.Tags(language.SimplifiedChinese)}

// LanguageName returns the name of the language with the BCP 47 tag, in the language of l. A text
// that is no tag, and a tag with private parts, is returned unchanged.
func (l *Locale) LanguageName(tag string) string {
	t, err := language.Parse(tag)
	if err != nil || len(t.Extensions()) > 0 {
		return tag
	}
	name := namers[l.Tag].Name(t)
	if base, _ := t.Base(); name == "" || name == namers[l.Tag].Name(language.Und) || base.String() == "und" {
		return tag
	}
	if l.Tag == "zh-CN" {
		return strings.NewReplacer(" (", "（", ")", "）").Replace(name)
	}
	return name
}

// regional are the languages of regions in which texts are often written differently.
var regional = []string{"en-GB", "es-MX", "fr-CA", "pt-BR", "zh-CN", "zh-HK", "zh-TW"}

// LanguageNames returns the languages that can be chosen, by their names: the languages of CLDR, and
// those of some regions.
func (l *Locale) LanguageNames() []Named { return languageNames()[l.Tag] }

var languageNames = sync.OnceValue(func() map[string][]Named {
	all := map[string][]Named{}
	for tag := range namers {
		l := &Locale{Tag: tag}
		for _, t := range display.Supported.Tags() {
			_, _, region := t.Raw()
			name := l.LanguageName(t.String())
			if region.String() == "ZZ" && name != t.String() {
				all[tag] = append(all[tag], Named{t.String(), name})
			}
		}
		for _, t := range regional {
			all[tag] = append(all[tag], Named{t, l.LanguageName(t)})
		}
		slices.SortFunc(all[tag], func(a, b Named) int { return strings.Compare(l.sortKey(a.Name), l.sortKey(b.Name)) })
	}
	return all
})

// sortKey orders names. GB 2312 orders its common Chinese characters by their pronunciation, as
// readers of Chinese expect.
func (l *Locale) sortKey(name string) string {
	if l.Tag == "zh-CN" {
		if key, err := simplifiedchinese.GBK.NewEncoder().String(name); err == nil {
			return key
		}
	}
	return strings.ToLower(name)
}
