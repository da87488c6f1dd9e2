// Package wording holds the rules for names and texts that staff type.
package wording

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine reports whether s can be stored and shown as a name: valid UTF-8 without
// control characters and without characters that change the direction of text.
func OneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) && !strings.ContainsFunc(s, TurnsAround)
}

// TurnsAround reports whether r changes the direction of the text after it, also of
// text of the page or message that contains it.
func TurnsAround(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
