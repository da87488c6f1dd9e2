package access

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	accesspages "dropbell/views/pages/access"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// savedFilters are the filters of each list that a view stores. Customers, and texts that may name
// a customer, are not stored: they would outlive an erasure.
var savedFilters = map[string][]string{
	"templates":    {"q", "state", "shop", "from", "to", "sort"},
	"campaigns":    {"q", "state", "from", "to"},
	"deliveries":   {"kind", "slot", "channel", "state", "outcome", "template", "from", "to"},
	"dead-letters": {"channel", "template", "campaign"},
	"audit":        {"security", "action", "kind", "shop", "from", "to"},
	"segments":     {"q"},
	"jobs":         {"state"},
}

// filtersOf returns the values that a view of the list stores, and whether other values were left
// out.
func filtersOf(list string, values url.Values) (kept url.Values, others bool) {
	kept = url.Values{}
	for name, vs := range values {
		vs = slices.DeleteFunc(slices.Clone(vs), func(v string) bool { return v == "" })
		switch {
		case len(vs) == 0 || name == "list" || name == "after" || name == "before":
		case slices.Contains(savedFilters[list], name):
			kept[name] = vs
		default:
			others = true
		}
	}
	return kept, others
}

// listAt is the address of the list with the filters.
func listAt(list string, filters url.Values) string {
	if len(filters) == 0 {
		return "/" + list
	}
	return "/" + list + "?" + filters.Encode()
}

func (h *handlers) listViews(w http.ResponseWriter, r *http.Request) error {
	list := r.FormValue("list")
	if savedFilters[list] == nil {
		return shell.ErrNoPage
	}
	kept, others := filtersOf(list, r.URL.Query())
	return h.drawViews(w, r, http.StatusOK, accesspages.Views{List: list, Query: kept.Encode(), LeftOut: others})
}

func (h *handlers) drawViews(w http.ResponseWriter, r *http.Request, status int, p accesspages.Views) (err error) {
	if p.Views, err = h.Views.Of(r.Context(), shell.Frame(r).Member, p.List); err != nil {
		return err
	}
	p.Back = "/" + p.List
	if p.Query != "" {
		p.Back += "?" + p.Query
	}
	if shell.Partial(r) {
		return h.Show(w, r, status, p.Part())
	}
	return h.Show(w, r, status, p.Page())
}

func (h *handlers) saveView(w http.ResponseWriter, r *http.Request) error {
	list := r.PostFormValue("list")
	values, err := url.ParseQuery(r.PostFormValue("query"))
	if savedFilters[list] == nil || err != nil {
		return shell.ErrMalformed
	}
	kept, _ := filtersOf(list, values)
	v := staff.SavedView{List: list, Name: strings.TrimSpace(r.PostFormValue("name")), Query: kept.Encode(), Shared: r.PostFormValue("shared") != ""}
	err = h.Views.Save(r.Context(), shell.Frame(r).Member, v)
	if fields := shell.FieldsOf(err); fields != nil || errors.Is(err, staff.ErrTooManyViews) {
		p := accesspages.Views{List: list, Query: v.Query, Name: v.Name, Shared: v.Shared, Errors: fields}
		if fields == nil {
			p.Errors = []fault.Field{{Name: "name", Key: "fault." + fault.CodeOf(err), Message: err.Error()}}
		}
		return h.drawViews(w, r, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, listAt(list, kept), ui.Good, shell.Say(r, "views.saved", v.Name))
}

// openView redirects to the list with the view's filters. Filters that the list no longer has are
// left out, and the page says so.
func (h *handlers) openView(w http.ResponseWriter, r *http.Request, id int64) error {
	v, err := h.Views.Open(r.Context(), shell.Frame(r).Member, id)
	if err != nil {
		return err
	}
	values, bad := url.ParseQuery(v.Query)
	if savedFilters[v.List] == nil {
		return staff.ErrViewNotFound
	}
	kept, others := filtersOf(v.List, values)
	if others || bad != nil {
		return h.Done(w, r, listAt(v.List, kept), ui.Info, shell.Say(r, "views.outdated", v.Name))
	}
	shell.Redirect(w, r, listAt(v.List, kept))
	return nil
}

func (h *handlers) renameView(w http.ResponseWriter, r *http.Request, id int64) error {
	v, err := h.Views.Rename(r.Context(), shell.Frame(r).Member, id, r.PostFormValue("name"))
	if fields := shell.FieldsOf(err); fields != nil || errors.Is(err, staff.ErrViewTaken) {
		if fields == nil {
			fields = []fault.Field{{Name: "name", Key: "fault." + fault.CodeOf(err), Message: err.Error()}}
		}
		return h.drawViews(w, r, http.StatusUnprocessableEntity, accesspages.Views{List: v.List, Renaming: id, NewName: r.PostFormValue("name"), Errors: fields})
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, viewsOf(v.List), ui.Good, shell.Say(r, "views.renamed"))
}

func (h *handlers) deleteView(w http.ResponseWriter, r *http.Request, id int64) error {
	v, err := h.Views.Delete(r.Context(), shell.Frame(r).Member, id)
	if err != nil {
		return err
	}
	return h.Done(w, r, viewsOf(v.List), ui.Good, shell.Say(r, "views.deleted", v.Name))
}

func viewsOf(list string) string { return "/views?" + url.Values{"list": {list}}.Encode() }
