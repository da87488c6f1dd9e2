package console

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/staff"
	"dropbell/web/middleware"
)

// Behind the middleware of the whole program streams still flow and pages are
// compressed.
func TestMounted(t *testing.T) {
	g := newRig(t)
	r := chi.NewRouter()
	r.Use(middleware.Requests(middleware.Options{Log: g.Console.Deps.Log}))
	r.With(middleware.Compress()).Mount("/", g.Console)
	g.server = httptest.NewServer(r)
	t.Cleanup(g.server.Close)
	t.Cleanup(g.Console.Close) // streams first
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	stream, _ := b.listen(d.ID, "")
	if m := g.next(stream); !strings.Contains(m.data, `id="slot-1"`) {
		t.Errorf("first event: %.200s", m.data)
	}
	g.exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	if m := g.next(stream); !strings.Contains(m.data, "4,242") {
		t.Errorf("second event: %.200s", m.data)
	}
	b.get("/nowhere").is(404).has("Page not found")
	b.get(g.Assets.URL("app.css")).is(200)
	b.header.Set("Accept-Encoding", "gzip")
	if a := b.get("/").is(200); a.header.Get("Content-Encoding") != "gzip" || !strings.Contains(a.header.Get("Content-Security-Policy"), "nonce-") {
		t.Errorf("headers %v", a.header)
	}
}

// HEAD is answered like GET, whatever stands before the console, and takes
// nothing away that waits to be shown.
func TestHead(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	r := chi.NewRouter()
	r.Use(middleware.All(middleware.Options{Log: g.Console.Deps.Log}, new(atomic.Bool))...)
	r.With(middleware.Compress()).Mount("/", g.Console)
	mounted := httptest.NewServer(r)
	t.Cleanup(mounted.Close)
	for _, server := range []*httptest.Server{mounted, g.server} {
		g.server = server
		head := func(b *browser, path string) answer { return b.do(http.MethodHead, path, nil) }
		b := g.as(staff.Admin)
		for _, path := range []string{"/", "/templates", templateURL(d.ID), "/templates.csv", "/monitor/queues", g.Assets.URL("app.css"), "/live?of=%2F", templateURL(d.ID) + "/cockpit/live"} {
			if a := head(b, path).is(http.StatusOK); a.body != "" || a.header.Get("Content-Type") == "" {
				t.Errorf("%s: %q, %v", path, a.body, a.header)
			}
		}
		head(b, "/nowhere").is(http.StatusNotFound)
		head(b, "/templates/preview").is(http.StatusNotFound)
		head(b, "/templates/99999").is(http.StatusNotFound)
		head(g.as(staff.Viewer), "/staff").is(http.StatusForbidden)
		head(g.browser(), "/templates?q=moon").to("/signin?return=%2Ftemplates%3Fq%3Dmoon")
		b.post("/keys", url.Values{"name": {"checkout"}, "scopes": {"read"}, "request_key": {rand.Text()}}).to("/keys")
		head(b, "/keys").is(http.StatusOK)
		b.get("/keys").is(http.StatusOK).has("Copy it now")
	}
}
