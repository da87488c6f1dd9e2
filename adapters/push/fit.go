package push

import (
	"strings"
	"unicode/utf8"
)

const (
	maxTitle = 200  // runes
	maxBody  = 4096 // runes; more fits no service
)

// MaxURL is the longest link in a push, in bytes. Devices do not show the link, and a longer
// link leaves no room for the text.
const MaxURL = 1500

// Fit encodes a push of at most limit bytes. It cuts the body, and the title if that is not
// enough.
func Fit(limit int, title, body string, encode func(title, body string) []byte) []byte {
	title, body = cut(title, maxTitle), cut(body, maxBody)
	for {
		encoded := encode(title, body)
		if len(encoded) <= limit {
			return encoded
		}
		runes := utf8.RuneCountInString(body)
		if runes == 0 {
			if title == "" {
				return encoded
			}
			title = cut(title, utf8.RuneCountInString(title)/4) // control characters, six bytes each
			continue
		}
		// At most six bytes a rune are saved; cut in proportion, but get on.
		body = cut(body, min(runes-1, runes*limit/len(encoded)))
	}
}

// cut shortens s to at most n runes.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}
