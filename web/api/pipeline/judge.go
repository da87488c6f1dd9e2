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

// The refusals of bodies that hold no JSON from their first byte on, which a
// parser names badly. JSON must not begin with a byte order mark (RFC 8259,
// section 8.1); files, as users are sent, may.
var (
	errEmptyBody = ErrMalformed.Because("the body is empty; send a JSON object")
	errByteOrder = ErrMalformed.Because("remove the byte order mark at the beginning of the body")
)

// ByteOrderMark is what some programs write before text in UTF-8.
const ByteOrderMark = "\xef\xbb\xbf"

// judge refuses a body that says something where none is taken, and a JSON body that
// is empty, begins with a byte order mark or is said to be something else, and one of
// which a part would be overlooked. Any other body that is no JSON passes: the general
// way says what is wrong with it.
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

// saidToBeJSON returns ErrMediaType unless the one Content-Type is JSON in
// UTF-8. A missing Content-Type is accepted: the API takes nothing else.
// Afterwards the header contains the type in the form that the decoder accepts.
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

// unambiguous refuses a name that stands twice in one object, however deep:
// readers differ in which of its values counts, and one may be an amount.
func unambiguous(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	wrong, ok := errors.AsType[*jsontext.SyntacticError](d.SkipValue())
	if !ok || wrong.Err != jsontext.ErrDuplicateName {
		return nil
	}
	at, _ := place(d, wrong.JSONPointer)
	return Refused(Shorten(at), "is given more than once")
}

// place writes a pointer into what d is reading as problems do,
// "body.reminders[1].minutes", and as encoding/json does, "reminders.minutes".
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

// misfit says where a value is that its field cannot hold, and which values it can
// hold. [transform] takes the two apart. The rules of the schema have let it pass: 1e3
// is a whole number there, and has no largest one.
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

// WithArticle returns what a value is, as a sentence names it.
func WithArticle(value string) string {
	if strings.HasPrefix(value, "array") || strings.HasPrefix(value, "object") {
		return "an " + value
	}
	return "a " + value
}

// misfitSays stands between the place of a misfit and what is wrong there.
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
