package work

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// payloadText returns JSON indented, and other content unchanged if it is text.
func payloadText(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") == nil {
		return b.String()
	}
	if !utf8.Valid(raw) {
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	return string(raw)
}
