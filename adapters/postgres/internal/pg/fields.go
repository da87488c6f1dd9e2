package pg

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/field"
)

// FieldColumns returns the columns of the fields of a row alias: "t.name, t.stock". instead names
// columns whose value is read by another expression.
func FieldColumns[T any](t field.Table[T], alias string, instead map[string]string) string {
	list := t.Names()
	for i, name := range list {
		if list[i] = alias + "." + name; instead[name] != "" {
			list[i] = instead[name]
		}
	}
	return strings.Join(list, ", ")
}

// FieldPlaces returns the places in v that [FieldColumns] are read into.
func FieldPlaces[T any](t field.Table[T], v *T) []any {
	list := make([]any, len(t))
	for i, f := range t {
		list[i] = f.Of(v).Addr().Interface()
	}
	return list
}

// FieldNames returns the columns of an insert and their parameters: "name, stock" and
// "@name, @stock". more are columns beside the fields.
func FieldNames[T any](t field.Table[T], more ...string) (columns, params string) {
	names := slices.Concat(t.Names(), more)
	return strings.Join(names, ", "), "@" + strings.Join(names, ", @")
}

// FieldSets returns the assignments of an update: "name = @name, stock = @stock".
func FieldSets[T any](t field.Table[T], more ...string) string {
	names := slices.Concat(t.Names(), more)
	for i, name := range names {
		names[i] = name + " = @" + name
	}
	return strings.Join(names, ", ")
}

// FieldArgs returns the parameters of [FieldNames] and [FieldSets].
func FieldArgs[T any](t field.Table[T], v T) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs(t.Values(v))
}
