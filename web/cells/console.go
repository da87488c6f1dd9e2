package cells

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// listed are the collections of the console whose second part is an id that names a cell.
var listed = []string{"templates", "campaigns", "coupons", "deliveries", "reviews", "grants", "jobs", "webhooks", "series"}

// cellParam is the parameter of the console with the name of the cell that a page is about.
const cellParam = "cell"

// ofDrops are the first parts of addresses of pages of all cells that may be about a drop or a campaign,
// which the query or the form names.
var ofDrops = []string{"templates", "dead-letters", "dead-letters.csv", "reviews", "reviews.csv", "results.csv"}

// ofConsole returns the target of a page of the console. Pages about an id are of its cell. Pages about
// one cell, as the console says, are of the cell that the address names or the member has chosen. All
// other pages are home's, whose console asks the other cells.
func (f *Front) ofConsole(r *http.Request, path string, q url.Values) target {
	part := strings.Split(strings.TrimPrefix(path, "/"), "/")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if path == ChoicePath && r.Method == http.MethodPost {
		return target{all: (*Front).choose}
	}
	if of, err := url.Parse(q.Get("of")); path == "/live" && err == nil && of.Path != "" && of.Path != path {
		return f.ofConsole(r, of.Path, of.Query())
	}
	if len(part) > 1 {
		id, ok := parse(part[1])
		switch {
		case ok && slices.Contains(listed, part[0]):
			return f.ofID(id)
		case ok && part[0] == "shops":
			return f.ofShop(id)
		}
	}
	if len(part) > 2 && (part[0] == "dead-letters" && part[1] == "jobs" || part[0] == "templates" && part[1] == "models") {
		return f.ofText(part[2])
	}
	if !f.OfOne(r.Method, path) {
		if !slices.Contains(ofDrops, part[0]) || !reads && len(part) == 1 {
			return target{}
		}
		t, _ := f.byDrop(q)
		t.form = !reads && t.id == 0
		return t
	}
	if n, ok := f.cellNamed(q.Get(cellParam)); ok {
		return target{cell: n}
	}
	if t, ok := f.byQuery(q); ok {
		return t
	}
	if c, err := r.Cookie(CellCookie); err == nil {
		if n, ok := f.cellNamed(c.Value); ok {
			return target{cell: n}
		}
	}
	return target{}
}

// choose stores the cell that a member has chosen in a cookie, and leads back to the list.
func (f *Front) choose(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if n, ok := f.cellNamed(r.PostFormValue("cell")); ok {
		http.SetCookie(w, &http.Cookie{Name: CellCookie, Value: f.cells[n].Name, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: 365 * 24 * 3600})
	}
	to := r.PostFormValue("return")
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) {
		to = "/"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}
