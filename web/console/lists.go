package console

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/a-h/templ"

	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// withQuery is the page's own address with one parameter changed.
func withQuery(r *http.Request, name, value string) string {
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

// shopsOf lists the shops the viewer is in charge of.
func (sh *Shell) shopsOf(r *http.Request) ([]template.Shop, error) {
	all, err := sh.shops.Shops(r.Context())
	return slices.DeleteFunc(all, func(s template.Shop) bool { return !actor(r).Can(staff.View, s.Number) }), err
}

const (
	// pageSize is how many rows a page of a list has.
	pageSize = 25
	// exportPage is how many rows of an export are read at once.
	exportPage = 500
	// maxSearch bounds what is searched for, in characters.
	maxSearch = 200
)

// exportURL is the file of everything that the page's filter selects.
func exportURL(r *http.Request) string {
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

// listed is either for lists with filters: the address that the browser then
// shows has only the filters that are set.
func (sh *Shell) listed(w http.ResponseWriter, r *http.Request, part, whole templ.Component) error {
	if partial(r) {
		w.Header().Set("HX-Push-Url", withQuery(r, "", ""))
	}
	return sh.either(w, r, part, whole)
}
