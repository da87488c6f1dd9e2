package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The refusals of bodies that are no JSON from their first byte on, because a parser describes them
// badly. JSON must not begin with a byte order mark (RFC 8259, section 8.1). Uploaded files of
// users may begin with it.
var (
	errEmptyBody = ErrMalformed.Because("the body is empty; send a JSON object")
	errByteOrder = ErrMalformed.Because("remove the byte order mark at the beginning of the body")
)

// ByteOrderMark is the prefix that some programs write before UTF-8 text.
const ByteOrderMark = "\xef\xbb\xbf"

// judge refuses these bodies: a body with content where the operation takes none; and, where it
// takes JSON, an empty body, a body that begins with a byte order mark, a wrong Content-Type, and a
// body of which a part would be ignored. Any other body that is no JSON passes: the decoder reports
// the error.
func (t Traits) judge(r *http.Request, body []byte) error {
	switch {
	case t.bodiless && !saysNothing(body):
		return errBody()
	case !t.json, len(body) == 0 && !t.needsBody:
		return nil
	case len(bytes.TrimSpace(body)) == 0:
		return errEmptyBody
	}
	if err := saidToBeJSON(r.Header); err != nil {
		return err
	}
	if bytes.HasPrefix(body, []byte(ByteOrderMark)) {
		return errByteOrder
	}
	return unambiguous(body)
}

// saidToBeJSON returns ErrMediaType unless the header has one Content-Type, and that is JSON in
// UTF-8. A missing Content-Type is accepted: the API takes nothing but JSON. Afterwards the header
// contains the type in the form that the decoder accepts.
func saidToBeJSON(h http.Header) error {
	kinds := h["Content-Type"]
	switch {
	case len(kinds) > 1:
		return ErrMediaType.Because("Content-Type is given %d times; send it once, as application/json", len(kinds))
	case len(kinds) == 0 || kinds[0] == "" || kinds[0] == JSONType[0]:
		return nil
	}
	kind, params, err := mime.ParseMediaType(kinds[0])
	if err != nil || kind != JSONType[0] {
		return ErrMediaType
	}
	if charset, given := params["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return ErrMediaType.Because("send the body in UTF-8, as application/json")
	}
	h["Content-Type"] = JSONType
	return nil
}

// unambiguous refuses a name that occurs twice in one object, at any depth. Readers differ in which
// of the two values counts, and the value may be an amount.
func unambiguous(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	wrong, ok := errors.AsType[*jsontext.SyntacticError](d.SkipValue())
	if !ok || wrong.Err != jsontext.ErrDuplicateName {
		return nil
	}
	at, _ := place(d, wrong.JSONPointer)
	return Refused(Shorten(at), "is given more than once")
}

// place writes a pointer into the JSON that d is reading in two forms: location as problems write
// it, "body.reminders[1].minutes", and field as encoding/json writes it, "reminders.minutes".
func place(d *jsontext.Decoder, to jsontext.Pointer) (location, field string) {
	location = "body"
	var names []string
	level := 0
	for token := range to.Tokens() {
		level++
		if kind, _ := d.StackIndex(level); kind == '[' {
			location += "[" + token + "]"
			continue
		}
		location += "." + token
		names = append(names, token)
	}
	return location, strings.Join(names, ".")
}

// misfit describes a value that its field cannot hold: its place, and the values that the field can
// hold. [transform] splits the text into these two parts. The schema has accepted the value: for a
// schema 1e3 is a whole number, and a whole number has no upper bound.
func misfit(body []byte, wrong *json.UnmarshalTypeError) error {
	text := WithArticle(wrong.Value) + " does not fit here"
	switch wrong.Type.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		text += "; write a whole number below 2^63, in digits alone"
	}
	if wrong.Field == "" {
		return errors.New(text)
	}
	return errors.New(misfitAt(body, wrong) + misfitSays + text)
}

// WithArticle returns the name of a JSON value with its article, such as "an array".
func WithArticle(value string) string {
	if strings.HasPrefix(value, "array") || strings.HasPrefix(value, "object") {
		return "an " + value
	}
	return "a " + value
}

// misfitSays separates the place of a misfit from its description.
const misfitSays = ": "

// misfitAt adds to the field which element of a list the value is in.
func misfitAt(body []byte, wrong *json.UnmarshalTypeError) string {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return "body." + wrong.Field
		}
		if token.Kind() != '0' || wrong.Value != "number "+token.String() {
			continue
		}
		if at, field := place(d, d.StackPointer()); field == wrong.Field {
			return at
		}
	}
}
