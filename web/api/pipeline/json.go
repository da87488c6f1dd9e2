package pipeline

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"dropbell/domain/fault"
)

// StrictNames makes names of JSON fields case-sensitive in the whole process: "Stock" is not the
// field stock. Call it before anything is served.
func StrictNames() { huma.ValidateStrictCasing = true }

var jsonFormat = huma.Format{
	Marshal:   func(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) },
	Unmarshal: unmarshal,
}

// unmarshal decodes a body. Its errors describe the body in terms of JSON, not of Go.
func unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return misfit(data, wrong)
	}
	return err
}

// Optional is a field that can be absent, null or given.
type Optional[T any] struct {
	Set   bool // given, or null
	Null  bool
	Value T
}

// UnmarshalJSON is called only for fields that are present.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	o.Set, o.Null = true, string(b) == "null"
	if o.Null {
		return nil
	}
	return json.Unmarshal(b, &o.Value)
}

// UnmarshalJSONFrom does the same with the decoder's options, such as refusing unknown names.
func (o *Optional[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	o.Set, o.Null = true, d.PeekKind() == 'n'
	if o.Null {
		return d.SkipValue()
	}
	return strict.UnmarshalDecode(d, &o.Value)
}

// Schema returns the schema of the held value.
func (o Optional[T]) Schema(r huma.Registry) *huma.Schema {
	s := r.Schema(reflect.TypeFor[T](), true, "")
	if s.Type != "" { // else the document says it; see sayNull
		s.Nullable = true
	}
	return s
}

// Into overwrites *to with the given value; null is the zero value.
func (o Optional[T]) Into(to *T) {
	if o.Set {
		*to = o.Value
	}
}

// Pointer returns nil if the field was absent.
func (o Optional[T]) Pointer() *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

// ParseInstant reads an instant from a query parameter; nil if it is empty.
func ParseInstant(place, s string) (*time.Time, error) {
	if s == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return nil, Refused(place, "must be an RFC 3339 instant such as 2027-01-01T12:00:00Z")
	}
	if t.Year() < 1 || t.Year() > 9000 {
		return nil, Refused(place, "must lie between the years 1 and 9000")
	}
	return new(t.UTC()), nil
}

func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// Merge joins the refusals of all errors that are [fault.Fields]. It returns the first other error.
func Merge(errs ...error) error {
	e := &fault.Fields{}
	for _, err := range errs {
		if fields, ok := errors.AsType[*fault.Fields](err); ok {
			e.List = append(e.List, fields.List...)
		} else if err != nil {
			return err
		}
	}
	return e.Err()
}
