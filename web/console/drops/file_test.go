package drops

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"dropbell/domain/template"
)

// Each field of a spec is set alone. The row of the file must then differ from the row of an empty
// template; a field that is missing in the file would leave the row unchanged.
func TestFileHasEveryFieldThatStaffCanSet(t *testing.T) {
	file := templateFile(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	empty := file.Cells(comparedTemplate{})
	if len(empty) != len(file.Head) || len(file.Head) != len(slices.Compact(slices.Sorted(slices.Values(file.Head)))) {
		t.Errorf("%d cells below the names %v", len(empty), file.Head)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[template.Spec]()) {
		if field.Anonymous { // its fields follow
			continue
		}
		var d template.Template
		set := reflect.ValueOf(&d.Spec).Elem().FieldByIndex(field.Index)
		switch value := set.Addr().Interface().(type) {
		case *time.Time:
			*value = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		case **time.Time:
			*value = &time.Time{}
		default:
			switch {
			case set.CanInt():
				set.SetInt(1)
			case set.CanUint():
				set.SetUint(1)
			case set.Kind() == reflect.String:
				set.SetString("x")
			default:
				t.Fatalf("the test cannot set %s", field.Name)
			}
		}
		if reflect.DeepEqual(file.Cells(comparedTemplate{Template: d}), empty) {
			t.Errorf("the file has no column for %s", field.Name)
		}
	}
}
