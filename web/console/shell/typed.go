package shell

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/fault"
)

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
