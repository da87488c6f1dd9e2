package stories

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"dropbell/views/static"
	"dropbell/views/ui"
)

// Path is where a story is served in a look.
func (s Story) Path(l Look) string {
	path := fmt.Sprintf("/story/%s?theme=%s&lang=%s", s.Name, l.Theme, l.Locale)
	if s.At != "" {
		path += "#" + s.At
	}
	return path
}

// Handler serves every story in every look, with an index at "/".
func (b *Book) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, b.Assets)
	mux.HandleFunc("GET /{$}", index)
	// Live parts get an empty answer instead of an error for a missing page.
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("HX-Request") != "" || strings.HasSuffix(r.URL.Path, "/live") {
			nothingNew(w, r)
			return
		}
		http.NotFound(w, r)
	})
	for _, s := range All() {
		mux.HandleFunc("GET /story/"+s.Name, func(w http.ResponseWriter, r *http.Request) {
			var page bytes.Buffer
			look := Look{Theme: r.FormValue("theme"), Locale: r.FormValue("lang")}
			if err := s.Page.Render(b.Context(r.Context(), s, look, "story"), &page); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Security-Policy", ui.ContentSecurityPolicy("story"))
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = page.WriteTo(w) // an error means that the client has gone
		})
	}
	return mux
}

func index(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("HX-Request") != "" {
		nothingNew(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Stories</title><h1>Stories</h1><table>`)
	for _, s := range All() {
		fmt.Fprintf(w, "<tr><th>%s", s.Name)
		for _, l := range Looks() {
			fmt.Fprintf(w, `<td><a href="%s">%s %s</a>`, s.Path(l), l.Theme, l.Locale)
		}
	}
}

// nothingNew answers a story's request for changes.
func nothingNew(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set(ui.OwnHeader, "1")
	w.WriteHeader(http.StatusNoContent)
}
