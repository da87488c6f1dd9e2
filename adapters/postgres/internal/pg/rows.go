package pg

import (
	"reflect"
	"regexp"
	"strings"
)

var wordEnd = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// RowColumns returns the columns of the row alias for a struct whose fields have the names of the
// columns in camel case: "c.id, c.template_id".
func RowColumns[Row any](alias string) string {
	t := reflect.TypeFor[Row]()
	list := make([]string, t.NumField())
	for i := range list {
		list[i] = alias + "." + strings.ToLower(wordEnd.ReplaceAllString(t.Field(i).Name, "${1}_$2"))
	}
	return strings.Join(list, ", ")
}

// RowPlaces returns the places in row that [RowColumns] are read into.
func RowPlaces[Row any](row *Row) []any {
	v := reflect.ValueOf(row).Elem()
	list := make([]any, v.NumField())
	for i := range list {
		list[i] = v.Field(i).Addr().Interface()
	}
	return list
}
