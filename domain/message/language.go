package message

import (
	"strings"

	"golang.org/x/text/language"
)

// English is the language that has a text for everything. It is the last choice for every reader.
const English = "en"

// maxTag is how long a language tag may be.
const maxTag = 35

// Canonical returns the BCP 47 tag in its canonical form, such as "zh-CN" for "zh_cn". It returns
// false if there is no such language.
func Canonical(tag string) (string, bool) {
	if tag == "" || len(tag) > maxTag {
		return "", false
	}
	t, err := language.Parse(tag)
	if err != nil || t == language.Und {
		return "", false
	}
	return t.String(), true
}

// A chooser picks the language in which a reader gets a text.
type chooser struct {
	tags    []string
	matcher language.Matcher
	rest    string // for readers whose language has no text
}

// newChooser returns the chooser among tags. A reader whom no tag fits gets the first language of
// wanted that is among tags.
func newChooser(tags []string, wanted ...string) *chooser {
	c := &chooser{tags: tags}
	parsed := make([]language.Tag, len(tags))
	for i, tag := range tags {
		parsed[i] = language.Make(tag)
	}
	c.matcher = language.NewMatcher(parsed)
	for _, w := range wanted {
		if at, ok := c.match(w); ok {
			c.rest = tags[at]
			return c
		}
	}
	if len(tags) > 0 {
		c.rest = tags[0]
	}
	return c
}

// match returns the index of the tag that a reader of locale understands: the same language, or a
// language that CLDR regards as nearly the same, such as Danish for Norwegian.
func (c *chooser) match(locale string) (int, bool) {
	if locale == "" || len(c.tags) == 0 || len(locale) > maxTag {
		return 0, false
	}
	wanted, err := language.Parse(locale)
	if err != nil && wanted == language.Und {
		return 0, false
	}
	tag, at, sure := c.matcher.Match(wanted)
	if sure >= language.High {
		return at, true
	}
	base, _ := wanted.Base()
	other, _ := tag.Base()
	return at, sure > language.No && base == other
}

// For returns the tag for a reader of locale.
func (c *chooser) For(locale string) string {
	if at, ok := c.match(locale); ok {
		return c.tags[at]
	}
	return c.rest
}

// Choose returns the tag among tags that a reader of locale understands. It returns false if
// there is none.
func Choose(tags []string, locale string) (string, bool) {
	if at, ok := newChooser(tags).match(locale); ok {
		return tags[at], true
	}
	return "", false
}

// BuiltInLanguage returns the language of built-in words for a reader of locale: Chinese or
// English.
func BuiltInLanguage(locale string) string {
	primary := locale
	if end := strings.IndexAny(locale, "-_"); end >= 0 {
		primary = locale[:end]
	}
	if strings.EqualFold(primary, "zh") {
		return "zh"
	}
	return English
}
