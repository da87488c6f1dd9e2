package pipeline

import (
	"fmt"
	"reflect"
)

// Overwrite sets the fields of spec that a patch has. The patch has a pointer for each field of
// spec, nil if the field stays as it is; named types of texts and lists of texts are converted.
// Overwrite panics if the patch lacks a field of spec, so that a forgotten field fails the first
// test.
func Overwrite[Spec, Patch any](spec *Spec, patch Patch) {
	to, from := reflect.ValueOf(spec).Elem(), reflect.ValueOf(patch)
	for _, f := range reflect.VisibleFields(to.Type()) {
		given := from.FieldByName(f.Name)
		if !given.IsValid() {
			panic(fmt.Sprintf("%s has no field %s", from.Type(), f.Name))
		}
		if !given.IsNil() {
			to.FieldByIndex(f.Index).Set(converted(given.Elem(), f.Type))
		}
	}
}

// converted returns v as a value of t. A list is never nil.
func converted(v reflect.Value, t reflect.Type) reflect.Value {
	if t.Kind() != reflect.Slice {
		return v.Convert(t)
	}
	list := reflect.MakeSlice(t, v.Len(), v.Len())
	for i := range v.Len() {
		list.Index(i).Set(v.Index(i).Convert(t.Elem()))
	}
	return list
}
