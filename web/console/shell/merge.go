package shell

import (
	"maps"
	"net/http"
	"slices"

	"dropbell/domain/fault"
)

// Merge updates a form that was open for a while with the stored values: fields that the member has
// not changed take the stored value. It returns the fields that the member and another member have
// both changed, each with the stored value. A form that does not contain its original values
// overwrites.
func Merge(r *http.Request, typed, now map[string]string) (both []fault.Field) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		was, told := r.PostForm["was_"+name]
		switch {
		case !told || was[0] == now[name] || typed[name] == now[name]:
		case typed[name] == was[0]:
			typed[name] = now[name]
		default:
			both = append(both, fault.Field{Name: name, Message: Say(r, "rule.overtaken", named(r, name, now[name]))})
		}
	}
	return both
}

// named formats a field's value for display.
func named(r *http.Request, field, value string) string {
	switch {
	case value == "":
		return "–"
	case field == "role":
		return Say(r, "role."+value)
	}
	return value
}
