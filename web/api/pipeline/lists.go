package pipeline

import (
	"fmt"
	"reflect"
	"strings"

	"dropbell/web/cells"
)

// Lists returns the operations whose answers several databases have a part of.
func (pl *Pipeline) Lists() []cells.Operation { return pl.lists }

// list notes how the answers of several databases to the operation become one answer. The array and the
// parameter of the next page are found by the types of the operation. list panics if there is no such array.
func (pl *Pipeline) list(r Route, in, out reflect.Type) {
	if r.Cells == nil {
		return
	}
	l, path := *r.Cells, strings.TrimPrefix(r.Path, "/")
	if l.ID != "" {
		body, _ := out.FieldByName("Body")
		for _, f := range reflect.VisibleFields(body.Type) {
			if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct && has(f.Type.Elem(), l.ID) && (l.At == "" || has(f.Type.Elem(), l.At)) {
				l.Items = nameIn(f)
			}
		}
		if l.Items == "" {
			panic(fmt.Sprintf("%s has no array of items with %s and %s", r.ID, l.ID, l.At))
		}
		for _, f := range reflect.VisibleFields(in) {
			if name := f.Tag.Get("query"); name == "before" || name == "after" {
				l.Cursor = name
			}
		}
	}
	path, staff := strings.CutPrefix(path, "admin/")
	pl.lists = append(pl.lists, cells.Operation{Staff: staff, Path: path, List: l})
}

// has reports whether the struct has a field of the name in JSON.
func has(t reflect.Type, name string) bool {
	for _, f := range reflect.VisibleFields(t) {
		if nameIn(f) == name {
			return true
		}
	}
	return false
}

func nameIn(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
