// Storybook serves every page of the console in every state, theme and
// language with made-up data, for people who change how they look.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"dropbell/views/static"
	"dropbell/views/stories"
	"dropbell/views/ui"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:6006", "address to listen on")
	flag.Parse()
	book, err := stories.NewBook()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *addr, Handler: handler(book), ReadHeaderTimeout: 5 * time.Second}
	fmt.Printf("storybook: http://%s/\n", *addr)
	log.Fatal(server.ListenAndServe())
}

func handler(book *stories.Book) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, book.Assets)
	mux.HandleFunc("GET /{$}", index)
	for _, s := range stories.All() {
		mux.HandleFunc("GET /story/"+s.Name, func(w http.ResponseWriter, r *http.Request) {
			look := stories.Look{Theme: r.FormValue("theme"), Locale: r.FormValue("lang")}
			var page bytes.Buffer
			if err := s.Page.Render(book.Context(r.Context(), s, look, "story"), &page); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Security-Policy", ui.ContentSecurityPolicy("story"))
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = page.WriteTo(w) // whoever hangs up misses it
		})
	}
	return mux
}

func index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<!DOCTYPE html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Stories</title><h1>Stories</h1><table>`)
	for _, s := range stories.All() {
		fmt.Fprintf(w, "<tr><th align=left>%s", s.Name)
		for _, l := range stories.Looks() {
			fmt.Fprintf(w, `<td><a href="/story/%s?theme=%s&amp;lang=%s">%s %s</a>`, s.Name, l.Theme, l.Locale, l.Theme, l.Locale)
		}
	}
}
