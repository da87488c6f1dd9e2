package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/fault"
)

// A filter reads what a list is narrowed down to. What cannot be read is an
// error of its field: left out it would select more than was asked for, and
// what is then done with all that is selected would be done with everything.
type filter struct {
	r      *http.Request
	zone   *time.Location
	broken fault.Fields
}

func (sh *Shell) filter(r *http.Request) *filter { return &filter{r: r, zone: sh.DefaultZone} }

func (f *filter) typed(name string) string { return strings.TrimSpace(f.r.FormValue(name)) }

// days returns the beginning of the first day and the end of the last one.
func (f *filter) days() (from, to *time.Time) {
	return f.day("from", day), f.day("to", dayAfter)
}

func (f *filter) day(name string, read func(string, *time.Location) *time.Time) *time.Time {
	text := f.typed(name)
	at := read(text, f.zone)
	if at == nil && text != "" {
		breaks(&f.broken, name, "rule.date_format")
	}
	return at
}

// shop returns the number of a shop, which need not exist; 0 = none is named.
func (f *filter) shop() int64 {
	text := f.typed("shop")
	n, err := strconv.ParseInt(narrow(text), 10, 64)
	if text != "" && (err != nil || n <= 0) {
		f.broken.Add("shop", "rule.shop_number", "must be a positive number")
		return 0
	}
	return n
}

// choice returns which of the choices the named field holds; empty is none.
func choice[S ~string](r *http.Request, name string, choices []S, broken *fault.Fields) S {
	s := S(strings.TrimSpace(r.FormValue(name)))
	if s == "" || slices.Contains(choices, s) {
		return s
	}
	broken.Add(name, "rule.kind", "must be one of the choices")
	return ""
}

// chosen returns those of the choices that are ticked.
func chosen[S ~string](f *filter, name string, choices []S) (list []S) {
	ticked := f.r.Form[name]
	for _, s := range choices {
		if slices.Contains(ticked, string(s)) {
			list = append(list, s)
		}
	}
	if slices.ContainsFunc(ticked, func(s string) bool { return s != "" && !slices.Contains(choices, S(s)) }) {
		f.broken.Add(name, "rule.kind", "must be one of the choices")
	}
	return list
}
