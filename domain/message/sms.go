package message

import (
	"strings"
	"unicode/utf16"
)

// The characters of GSM 03.38 that take one of the 160 places of an SMS, and the characters that
// take two.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmTwo   = "\f^{}\\[~]|€"
)

// MaxSMSParts is the most parts of an SMS; networks refuse longer messages or deliver their parts
// separately.
const MaxSMSParts = 9

// SMSSize is how long a text is as an SMS.
type SMSSize struct {
	// UCS2 says that a character is not in the GSM alphabet, so that a part has 70 places instead
	// of 160. Foreign is the first such character.
	UCS2    bool
	Foreign string
	Places  int // taken, of which a part has PerPart
	PerPart int
	Parts   int
}

// SizeOf returns the size of text as an SMS. In a message of several parts, each part uses some
// places for its number, and no character is divided between parts.
func SizeOf(text string) SMSSize {
	s := SMSSize{}
	var widths []int
	for _, r := range text {
		switch {
		case strings.ContainsRune(gsmBasic, r):
			widths = append(widths, 1)
		case strings.ContainsRune(gsmTwo, r):
			widths = append(widths, 2)
		default:
			s.UCS2, s.Foreign = true, string(r)
		}
		if s.UCS2 {
			break
		}
	}
	single, several := 160, 153
	if s.UCS2 {
		single, several, widths = 70, 67, nil
		for _, r := range text {
			widths = append(widths, utf16.RuneLen(r))
		}
	}
	for _, w := range widths {
		s.Places += w
	}
	if s.PerPart = single; s.Places <= single {
		if s.Places > 0 {
			s.Parts = 1
		}
		return s
	}
	s.PerPart, s.Parts = several, 1
	room := several
	for _, w := range widths {
		if room < w {
			s.Parts++
			room = several
		}
		room -= w
	}
	return s
}
