package shell

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
)

// A Filter reads the conditions of a list. A condition that cannot be read is an error of its
// field: without the condition the list would select more rows than asked for, and a bulk step
// would change all of them.
type Filter struct {
	r      *http.Request
	Zone   *time.Location
	Broken fault.Fields
}

// Filter returns a filter that reads days in the zone of the viewer's browser.
func (sh *Shell) Filter(r *http.Request) *Filter { return &Filter{r: r, Zone: Frame(r).Zone} }

func (f *Filter) typed(name string) string { return strings.TrimSpace(f.r.FormValue(name)) }

// Days returns the beginning of the first day and the end of the last one.
func (f *Filter) Days() (from, to *time.Time) {
	return f.day("from", Day), f.day("to", dayAfter)
}

func (f *Filter) day(name string, read func(string, *time.Location) *time.Time) *time.Time {
	text := f.typed(name)
	at := read(text, f.Zone)
	if at == nil && text != "" {
		breaks(&f.Broken, name, "rule.date_format")
	}
	return at
}

// Shop returns the number of a shop, which need not exist; 0 = none is named.
func (f *Filter) Shop() int64 {
	text := f.typed("shop")
	n, err := strconv.ParseInt(Narrow(text), 10, 64)
	if text != "" && (err != nil || n <= 0) {
		f.Broken.Add("shop", "rule.shop_number", "must be a positive number")
		return 0
	}
	return n
}

// Choice returns which of the choices the named field holds; empty is none.
func Choice[S ~string](r *http.Request, name string, choices []S, broken *fault.Fields) S {
	s := S(strings.TrimSpace(r.FormValue(name)))
	if s == "" || slices.Contains(choices, s) {
		return s
	}
	broken.Add(name, "rule.kind", "must be one of the choices")
	return ""
}

// Chosen returns the ticked choices.
func Chosen[S ~string](f *Filter, name string, choices []S) (list []S) {
	ticked := f.r.Form[name]
	for _, s := range choices {
		if slices.Contains(ticked, string(s)) {
			list = append(list, s)
		}
	}
	if slices.ContainsFunc(ticked, func(s string) bool { return s != "" && !slices.Contains(choices, S(s)) }) {
		f.Broken.Add(name, "rule.kind", "must be one of the choices")
	}
	return list
}
