package pipeline

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// harmless returns the value at the place of an error if it is short and plain.
func harmless(d *huma.ErrorDetail) any {
	if d.Location == "body" || strings.Contains(d.Location, "push") {
		return nil
	}
	switch v := d.Value.(type) {
	case bool, float64:
		return v
	case string:
		return Shorten(v)
	}
	return nil
}

// echoNumbers replaces numbers of the body by their original text. The schema has validated them as
// float64, and 99999999999999999999 must not be quoted as 1e20.
func echoNumbers(r *http.Request, offences []Offence) {
	b, ok := r.Body.(*body)
	if !ok {
		return
	}
	wanted, values := map[string][]int{}, map[float64]bool{}
	for i, o := range offences {
		if v, ok := o.Value.(float64); ok && strings.HasPrefix(o.Location, "body.") {
			wanted[o.Location] = append(wanted[o.Location], i)
			values[v] = true
		}
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(b.buf.Bytes()), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for len(wanted) > 0 {
		token, err := d.ReadToken()
		if err != nil {
			return
		}
		if token.Kind() != '0' {
			continue
		}
		text := token.String()
		if v, err := strconv.ParseFloat(text, 64); err != nil || !values[v] {
			continue // where it stands costs more to find out
		}
		at, _ := place(d, d.StackPointer())
		for _, i := range wanted[Shorten(at)] {
			offences[i].Value = asSent(text)
		}
		delete(wanted, Shorten(at))
	}
}

// asSent returns a number that is marshalled in its original text. A number that is too long is
// returned as a text with its beginning.
func asSent(text string) any {
	if len(text) > maxEcho {
		return Shorten(text)
	}
	return json.RawMessage(text)
}

func Shorten(s string) string {
	if len(s) <= maxEcho {
		return s
	}
	cut := maxEcho
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
