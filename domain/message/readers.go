package message

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/text/language"
)

// Readers are numbers of readers by the language of the text that they get.
type Readers struct {
	// Of are the readers who get a text in their own language, by the tag of the text. Other are
	// readers without a language, or without a text in their language.
	Of    map[string]int64
	Other int64
	// Missing are the languages of Other without a text, the most readers first.
	Missing []Missing
}

// Missing is a language without a text.
type Missing struct {
	Language string
	Readers  int64
}

// ReadersOf divides readers, counted by their locales, by the languages in which there are texts.
// Locales of one language and script count as one missing language.
func ReadersOf(tags []string, locales map[string]int64) Readers {
	r, missing, choose := Readers{Of: map[string]int64{}}, map[string]int64{}, newChooser(tags)
	for locale, n := range locales {
		if at, ok := choose.match(locale); ok {
			r.Of[tags[at]] += n
			continue
		}
		r.Other += n
		if tag, ok := written(locale); ok {
			missing[tag] += n
		}
	}
	for tag, n := range missing {
		r.Missing = append(r.Missing, Missing{tag, n})
	}
	slices.SortFunc(r.Missing, func(a, b Missing) int {
		return cmp.Or(cmp.Compare(b.Readers, a.Readers), cmp.Compare(a.Language, b.Language))
	})
	return r
}

// Total is the number of all readers.
func (r Readers) Total() int64 {
	n := r.Other
	for _, of := range maps.All(r.Of) {
		n += of
	}
	return n
}

// written returns the language of a locale without its region: "fr" for "fr-CA". The script stays
// where the language is written in another one by default: "zh-Hant" for "zh-TW".
func written(locale string) (string, bool) {
	if len(locale) > maxTag {
		return "", false
	}
	t, err := language.Parse(locale)
	if err != nil {
		return "", false
	}
	base, sure := t.Base()
	if sure == language.No {
		return "", false
	}
	script, _ := t.Script()
	if usual, _ := language.Make(base.String()).Script(); usual == script {
		return base.String(), true
	}
	tag, err := language.Compose(base, script)
	return tag.String(), err == nil
}
