package message

import (
	"html"
	"net/url"
	"strings"
	"unicode"
)

// escape is how a value is written where it is put in.
type escape uint8

const (
	plain     escape = iota // as it is
	inHTML                  // between tags or as an attribute in quotes
	inAddress               // as a part of an address in an attribute
)

func (e escape) of(v string) string {
	switch e {
	case inHTML:
		return html.EscapeString(v)
	case inAddress:
		return html.EscapeString(url.QueryEscape(v))
	}
	return v
}

// maxName bounds a name inside a message, in runes.
const maxName = 200

// Printable returns a value on one line, cut to 200 runes. Characters that would hide text or
// change the direction of the surrounding sentence are removed. Joiners are kept, because scripts
// and emoji need them.
func Printable(value string) string { return printable(value, maxName) }

// maxDescription bounds a description inside a message, in runes.
const maxDescription = 500

func printable(value string, most int) string {
	visible := strings.Join(strings.Fields(strings.Map(visibleRune, value)), " ")
	if runes := []rune(visible); len(visible) > most && len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return visible
}

func tooLong(s string) bool { return len(s) > maxName && len([]rune(s)) > maxName }

func visibleRune(r rune) rune {
	switch {
	case unicode.IsSpace(r), unicode.IsControl(r):
		return ' '
	case r == '\u200c' || r == '\u200d':
		return r
	case unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
		return -1
	}
	return r
}
