package cells

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ofHome are the first parts of addresses of the console that are for the whole installation: its staff,
// keys, channels, providers and segments, and what is the same in every program.
var ofHome = []string{"account", "signin", "signout", "preferences", "staff", "keys", "channels", "providers", "segments", "suppressions", "password", "confirm", "docs", "static", "llms.txt"}

// listed are the collections of the console whose second part is an id that names a cell.
var listed = []string{"templates", "campaigns", "coupons", "deliveries", "reviews", "grants", "jobs", "webhooks", "series"}

// cellParam is the parameter of the console with the name of the cell that a page is about.
const cellParam = "cell"

// ofAllCells are the pages of the console with the rows of all cells, and the actions on them. Home's
// program answers, which asks the others.
var ofAllCells = []string{"", "templates", "templates.csv", "templates/bulk", "campaigns", "campaigns.csv", "shops", "shops.csv", "reviews", "reviews.csv",
	"dead-letters", "dead-letters.csv", "dead-letters/list", "dead-letters/jobs", "dead-letters/replay", "dead-letters/discard"}

// ofConsole returns the target of a page of the console: pages about an id are of its cell, pages of
// the installation and the lists of all cells are of home, and other lists are of the cell that the
// address names or the member has chosen.
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
		case ok && (part[0] == "shops" || part[0] == "recipes"):
			return f.ofShop(id)
		}
	}
	if len(part) > 2 && part[0] == "dead-letters" && part[1] == "jobs" {
		return f.ofText(part[2])
	}
	if slices.Contains(ofHome, part[0]) || part[0] == "users" && r.Method != http.MethodGet {
		return target{}
	}
	if n, ok := f.cellNamed(q.Get(cellParam)); ok {
		return target{cell: n}
	}
	if slices.Contains(ofAllCells, strings.Join(part, "/")) && (reads || len(part) > 1) {
		t, _ := f.byDrop(q)
		t.form = !reads && t.id == 0
		return t
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
