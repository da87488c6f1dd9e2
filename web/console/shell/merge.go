package shell

import (
	"maps"
	"net/http"
	"slices"

	"dropbell/domain/fault"
)

// Merge brings a form that was filled in for a while up to what is stored by
// now: what the form leaves as it had shown it stays as somebody else may have
// made it meanwhile. Returned are the fields that both have changed, each with
// what it is now. A form that does not say what it had shown overwrites.
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

// named writes a field's value as people call it.
func named(r *http.Request, field, value string) string {
	switch {
	case value == "":
		return "–"
	case field == "role":
		return Say(r, "role."+value)
	}
	return value
}
