package cells

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// ofHome are the first parts of addresses of the console that are for the whole installation: its
// staff, keys, providers, customers and segments.
var ofHome = []string{"", "account", "login", "logout", "confirm", "password", "oidc", "sso", "staff", "keys", "sessions", "channels", "providers", "users", "segments", "imports", "suppressions", "shops", "assets", "docs", "llms.txt"}

// listed are collections of the console whose second part is an id that names a cell.
var listed = []string{"templates", "drops", "campaigns", "coupons", "deliveries", "reviews", "grants", "jobs", "webhooks", "codes", "draws", "messages", "announcements"}

// ofConsole returns the target of a page of the console: pages about an id are of its cell, pages of
// the installation are of home, and lists are of the cell that the member has chosen.
func (f *Front) ofConsole(r *http.Request, part []string) target {
	if len(part) == 1 && part[0] == "cells" {
		return target{all: (*Front).choose}
	}
	if len(part) > 1 && slices.Contains(listed, part[0]) {
		if id, ok := parse(part[1]); ok {
			return f.ofID(id)
		}
	}
	if slices.Contains(ofHome, part[0]) {
		return target{}
	}
	if t, ok := f.byQuery(r.URL.Query()); ok {
		return t
	}
	if c, err := r.Cookie(CellCookie); err == nil {
		if n, ok := f.cellNamed(c.Value); ok {
			return target{cell: n}
		}
	}
	return target{}
}

// choose shows the cells, and stores the one that was chosen.
func (f *Front) choose(w http.ResponseWriter, r *http.Request) {
	if n, ok := f.cellNamed(r.FormValue("cell")); ok && r.Method == http.MethodPost {
		http.SetCookie(w, &http.Cookie{Name: CellCookie, Value: f.cells[n].Name, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil})
		to := r.FormValue("return")
		if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) {
			to = "/"
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; form-action 'self'")
	fmt.Fprint(w, `<!doctype html><html lang="en"><title>Cells</title><h1>Cells</h1><form method="post">`)
	for _, c := range f.cells {
		fmt.Fprintf(w, `<p><button name="cell" value="%s">%s</button></p>`, c.Name, c.Name)
	}
	fmt.Fprint(w, `</form></html>`)
}
