package shell

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// TypedUser reads a user id, which may be left empty.
func TypedUser(text string, broken *fault.Fields) user.ID {
	if text == "" {
		return 0
	}
	id, err := user.ParseID(Narrow(text))
	if err != nil {
		broken.Add("user", "rule.user_id", "must be a positive whole number")
	}
	return id
}

// TypedNumber reads a positive number, such as an id, which may be left empty.
func TypedNumber(name, text string, broken *fault.Fields) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(Narrow(text), 10, 64)
	if err != nil || n <= 0 {
		broken.Add(name, "rule.user_id", "must be a positive whole number")
	}
	return n
}

// ShownRate is the rate per second that the form had shown; nil if the form does
// not say.
func ShownRate(r *http.Request) *int {
	n, err := strconv.Atoi(r.PostFormValue("was_rate_per_second"))
	if err != nil {
		return nil
	}
	return &n
}

// InOrder sorts faults by the order of their fields in the form.
func InOrder(list []fault.Field, names []string) {
	slices.SortStableFunc(list, func(a, b fault.Field) int {
		return cmp.Compare(slices.Index(names, a.Name), slices.Index(names, b.Name))
	})
}

// DateIn returns midnight UTC of the date that t has in zone.
func DateIn(t time.Time, zone *time.Location) time.Time {
	t = t.In(zone)
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}
