package user

import (
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaskEmail masks an address except for the first letters of its parts:
// "ann@example.com" becomes "a…@e…".
func MaskEmail(s string) string {
	local, domain, found := strings.Cut(s, "@")
	if !found {
		return first(s) + "…"
	}
	return first(local) + "…@" + first(domain) + "…"
}

// MaskPhone returns a number of which only the last two digits are left.
func MaskPhone(s string) string { return "…" + s[max(0, len(s)-2):] }

func first(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

var (
	emailInText = regexp.MustCompile(`[\p{L}\p{N}._%+'-]+@[\p{L}\p{N}.-]+`)
	phoneInText = regexp.MustCompile(`\+[0-9][0-9 ()-]{5,18}[0-9]`)
)

// MaskText masks every e-mail address and every number in international form
// inside a text, such as a provider's answer.
func MaskText(s string) string {
	return phoneInText.ReplaceAllStringFunc(emailInText.ReplaceAllStringFunc(s, MaskEmail), MaskPhone)
}

// Masked returns u for staff who may not see contacts. Attribute values that
// look like a contact are masked too.
func (u User) Masked() User {
	if u.Email != "" {
		u.Email = MaskEmail(u.Email)
	}
	if u.Phone != "" {
		u.Phone = MaskPhone(u.Phone)
	}
	u.Name, u.Attributes = MaskText(u.Name), maps.Clone(u.Attributes)
	for name, value := range u.Attributes {
		if text, ok := value.(string); ok {
			u.Attributes[name] = MaskText(text)
		}
	}
	return u
}
