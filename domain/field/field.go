// Package field reads the fields of a struct from its tags. A struct such as template.Spec names
// each field once; columns, forms, bodies of the API and files are made from these names.
//
// A tag is the name of the field, followed by options:
//
//	Note string `field:"note,max=500,lines"`
//
// The name is the name of the column, of the form's field, of the field in bodies of the API and
// in messages about broken rules, and the end of the key of its label ("field.note").
// An embedded struct has no tag; its fields are fields of the struct.
package field

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Field is one field of a struct.
type Field struct {
	Name    string
	Type    reflect.Type
	index   []int
	options map[string]string
}

// The options of fields.
const (
	// Max is the greatest number of characters of a text.
	Max = "max"
	// Lines marks a text that may have several lines.
	Lines = "lines"
	// Fixed marks a field that cannot change after the object was published.
	Fixed = "fixed"
	// Kept is the name of the field in stored JSON, if it is another name; see [Table.Marshal].
	Kept = "kept"
	// Found marks a text that the search of a list reads.
	Found = "found"
)

var options = []string{Max, Lines, Fixed, Kept, Found}

// Has reports whether the tag has the option.
func (f Field) Has(option string) bool {
	_, ok := f.options[option]
	return ok
}

// Max returns the greatest number of characters; 0 = the tag names none.
func (f Field) Max() int {
	n, _ := strconv.Atoi(f.options[Max])
	return n
}

// Of returns the field of the struct that v points to. The result can be set.
func (f Field) Of(v any) reflect.Value { return reflect.ValueOf(v).Elem().FieldByIndex(f.index) }

// kept is the name of the field in stored JSON.
func (f Field) kept() string {
	if name := f.options[Kept]; name != "" {
		return name
	}
	return f.Name
}

// A Table is the list of fields of T in the order of the struct.
type Table[T any] []Field

// Of returns the fields of T. It panics if a field has no tag, an unknown option, or the name of
// another field: such a struct is a mistake of the program.
func Of[T any]() Table[T] { return Tagged[T]("field", options...) }

// Tagged returns the fields of T with the names that a tag gives. It panics like [Of]. A field
// with the name "-" is left out.
func Tagged[T any](tag string, options ...string) (list Table[T]) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get(tag), ",")
		if name == "-" {
			continue
		}
		if name == "" || slices.ContainsFunc(list, func(o Field) bool { return o.Name == name }) {
			panic(fmt.Sprintf("%s.%s needs a tag %s with a name of its own", reflect.TypeFor[T](), f.Name, tag))
		}
		one := Field{Name: name, Type: f.Type, index: f.Index, options: map[string]string{}}
		for option := range strings.SplitSeq(rest, ",") {
			key, value, _ := strings.Cut(option, "=")
			if key != "" && !slices.Contains(options, key) {
				panic(fmt.Sprintf("%s.%s: unknown option %q", reflect.TypeFor[T](), f.Name, key))
			}
			one.options[key] = value
		}
		list = append(list, one)
	}
	return list
}

// Names returns the names of the fields.
func (t Table[T]) Names() []string {
	list := make([]string, len(t))
	for i, f := range t {
		list[i] = f.Name
	}
	return list
}

// With returns the fields that have the option.
func (t Table[T]) With(option string) Table[T] {
	return slices.DeleteFunc(slices.Clone(t), func(f Field) bool { return !f.Has(option) })
}

// Named returns the field with the name.
func (t Table[T]) Named(name string) (Field, bool) {
	i := slices.IndexFunc(t, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return t[i], true
}

// Values returns the values of v by name.
func (t Table[T]) Values(v T) map[string]any {
	m := make(map[string]any, len(t))
	for _, f := range t {
		m[f.Name] = f.Of(&v).Interface()
	}
	return m
}

// Changed returns the names of the fields in which a and b differ. Instants are compared as
// instants, in whatever zone they are.
func (t Table[T]) Changed(a, b T) (names []string) {
	for _, f := range t {
		if !same(f.Of(&a).Interface(), f.Of(&b).Interface()) {
			names = append(names, f.Name)
		}
	}
	return names
}

func same(a, b any) bool {
	switch x := a.(type) {
	case time.Time:
		return x.Equal(b.(time.Time))
	case *time.Time:
		if y := b.(*time.Time); x != nil && y != nil {
			return x.Equal(*y)
		}
	}
	return reflect.DeepEqual(a, b)
}

// Marshal returns the fields of v that are not zero as a JSON object, for storage.
func (t Table[T]) Marshal(v T) ([]byte, error) {
	m := map[string]any{}
	for _, f := range t {
		if value := f.Of(&v); !value.IsZero() {
			m[f.kept()] = value.Interface()
		}
	}
	return json.Marshal(m)
}

// Unmarshal reads what [Table.Marshal] returned, or an earlier version of the program wrote:
// unknown names are ignored, and a missing field is zero.
func (t Table[T]) Unmarshal(b []byte) (v T, err error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return v, err
	}
	for _, f := range t {
		if raw, ok := m[f.kept()]; ok {
			if err := json.Unmarshal(raw, f.Of(&v).Addr().Interface()); err != nil {
				return v, fmt.Errorf("%s: %w", f.kept(), err)
			}
		}
	}
	return v, nil
}
