package work

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// payloadText shows JSON indented and anything else as it is, as far as it is text.
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
