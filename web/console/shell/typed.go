package shell

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// ShownRate returns the rate per second that the form showed; nil if the form has no rate.
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

// TypedCount reads a number that may have thousands separators and full-width digits. The error is
// the error of [strconv.ParseInt].
func TypedCount(s string) (int64, error) {
	return strconv.ParseInt(strings.NewReplacer(",", "", " ", "", "\u00a0", "").Replace(Narrow(s)), 10, 64)
}

// TypedShops reads the numbers or names of shops, separated by commas; numbers may be separated by
// spaces. ok is false if a part is neither a number nor a name.
func TypedShops(text string, known []template.Shop) (list []int64, ok bool) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;，、；\t\r\n", r) }) {
		word = strings.TrimSpace(word)
		if i := slices.IndexFunc(known, func(s template.Shop) bool { return strings.EqualFold(s.Name, word) }); i >= 0 {
			list = append(list, known[i].Number)
			continue
		}
		for _, digits := range strings.Fields(word) {
			n, err := strconv.ParseInt(Narrow(digits), 10, 64)
			if err != nil {
				return nil, false
			}
			list = append(list, n)
		}
	}
	return list, true
}
