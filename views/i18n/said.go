package i18n

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// stored is the prefix of the keys of sentences that programs store in English, such as why a
// provider was not reached. The English text of a key is the pattern by which a stored sentence is
// recognised.
const stored = "said."

// A form recognises one stored sentence.
type form struct {
	key     string
	pattern *regexp.Regexp
	literal int // length of its text without placeholders
}

var blank = regexp.MustCompile(`\\\{\d\\\}`)

// formsOf returns the forms of a catalogue's stored sentences, the most specific form first.
func formsOf(messages map[string]string) (list []form) {
	for key, text := range messages {
		if !strings.HasPrefix(key, stored) {
			continue
		}
		escaped := regexp.QuoteMeta(text)
		list = append(list, form{key, regexp.MustCompile(`^(?s:` + blank.ReplaceAllString(escaped, `(.+?)`) + `)$`),
			len(blank.ReplaceAllString(escaped, ""))})
	}
	slices.SortFunc(list, func(a, b form) int { return cmp.Or(cmp.Compare(b.literal, a.literal), cmp.Compare(a.key, b.key)) })
	return list
}

// Said translates a sentence that a program stored in English into the language of l. Any other
// text, such as a provider's own words, is returned as a quotation; English returns it unchanged.
func (l *Locale) Said(text string) string { return l.quote(text, "said_by.quote") }

// Answered is Said for places whose text does not mention that a provider answered.
func (l *Locale) Answered(text string) string { return l.quote(text, "said_by.other") }

func (l *Locale) quote(text, key string) string {
	if l.forms == nil || text == "" {
		return text
	}
	if known, ok := l.known(text); ok {
		return known
	}
	return l.T(key, text)
}

func (l *Locale) known(text string) (string, bool) {
	for _, f := range l.forms {
		found := f.pattern.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		args := make([]any, len(found)-1)
		for i, part := range found[1:] {
			args[i] = l.part(part)
		}
		return l.T(f.key, args...), true
	}
	return "", false
}

// part is a part of a stored sentence: a sentence itself, a word, or a quotation.
func (l *Locale) part(text string) string {
	if known, ok := l.known(text); ok {
		return known
	}
	if strings.Contains(text, " ") {
		return l.T("said_by.quote", text)
	}
	return text
}
