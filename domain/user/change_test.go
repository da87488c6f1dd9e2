package user

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChangesNameEveryField: a field of a change stands in the audit log, and a later change
// overwrites it.
func TestChangesNameEveryField(t *testing.T) {
	var all Change
	for i := range reflect.TypeFor[Change]().NumField() {
		if f := reflect.ValueOf(&all).Elem().Field(i); f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
		}
	}
	want := []string{"name", "email", "phone", "phone_verified", "locale", "timezone", "household", "push", "opt_outs", "quiet_hours", "attributes"}
	if diff := cmp.Diff(want, all.fields()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(all, Change{}.then(all)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"attributes"}, Change{Patch: map[string]any{"tier": "gold"}}.fields()); diff != "" {
		t.Error(diff)
	}
}

// TestTablesSetEveryField: a column of a table can hold each field of a change, except
// subscriptions, which only browsers know, and attributes, which have columns of their own.
func TestTablesSetEveryField(t *testing.T) {
	cells := map[Target]string{ToVerified: "true", ToOptOuts: "sms", ToQuietHours: "22:00-08:00"}
	for _, name := range changes.Names() {
		if name == "push" || name == "attributes" {
			continue
		}
		m := Mapping{ToID, Target(name)}
		c, err := m.change([]string{"1", cells[Target(name)]}, true)
		if err != nil || m.Check() != nil || !cmp.Equal(c.fields(), []string{name}) {
			t.Errorf("%s: %v, %v, %v", name, c.fields(), err, m.Check())
		}
	}
}
