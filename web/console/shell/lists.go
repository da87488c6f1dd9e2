package shell

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/a-h/templ"

	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// WithQuery is the page's own address with one parameter changed.
func WithQuery(r *http.Request, name, value string) string {
	q := url.Values{}
	for k, v := range r.URL.Query() {
		if k != name && !(len(v) == 1 && v[0] == "") {
			q[k] = v
		}
	}
	if value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return r.URL.Path
	}
	return r.URL.Path + "?" + q.Encode()
}

// ShopsOf lists the shops the viewer is in charge of.
func (sh *Shell) ShopsOf(r *http.Request) ([]template.Shop, error) {
	all, err := sh.shops.Shops(r.Context())
	return slices.DeleteFunc(all, func(s template.Shop) bool { return !Actor(r).Can(staff.View, s.Number) }), err
}

const (
	// PageSize is how many rows a page of a list has.
	PageSize = 25
	// ExportPage is how many rows of an export are read at once.
	ExportPage = 500
	// MaxSearch bounds the length of a search text, in characters.
	MaxSearch = 200
)

// ExportURL is the file of everything that the page's filter selects.
func ExportURL(r *http.Request) string {
	q := r.URL.Query()
	for name, values := range q {
		if name == "after" || name == "before" || len(values) == 1 && values[0] == "" {
			delete(q, name)
		}
	}
	if len(q) == 0 {
		return r.URL.Path + ".csv"
	}
	return r.URL.Path + ".csv?" + q.Encode()
}

// Listed is [Shell.Either] for lists with filters. The address that the browser then shows has only
// the filters that are set.
func (sh *Shell) Listed(w http.ResponseWriter, r *http.Request, part, whole templ.Component) error {
	if Partial(r) {
		w.Header().Set("HX-Push-Url", WithQuery(r, "", ""))
	}
	return sh.Either(w, r, part, whole)
}

// Shop returns the shop in the address if the viewer may change its templates. The error is
// [ErrNoPage] for a shop that the viewer may not see.
func (sh *Shell) Shop(r *http.Request) (template.Shop, error) {
	number, err := PathID(r)
	if err != nil {
		return template.Shop{}, err
	}
	list, err := sh.ShopsOf(r)
	for _, s := range list {
		if s.Number == number {
			return s, Actor(r).May(staff.ManageTemplates, number)
		}
	}
	if err == nil {
		err = ErrNoPage
	}
	return template.Shop{}, err
}
