package console_test

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
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
	"dropbell/web/middleware"
)

// Behind the middleware of the whole program, streams are not buffered and pages are compressed.
func TestMounted(t *testing.T) {
	g := consoletest.New(t)
	r := chi.NewRouter()
	r.Use(middleware.Requests(middleware.Options{Log: g.Console.Log}))
	r.With(middleware.Compress()).Mount("/", g.Console)
	g.Server = httptest.NewServer(r)
	t.Cleanup(g.Server.Close)
	t.Cleanup(g.Console.Close) // streams first
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	stream, _ := b.Listen(d.ID, "")
	if m := g.Next(stream); !strings.Contains(m.Data, `id="slot-1"`) {
		t.Errorf("first event: %.200s", m.Data)
	}
	g.Exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	if m := g.Next(stream); !strings.Contains(m.Data, "4,242") {
		t.Errorf("second event: %.200s", m.Data)
	}
	b.Get("/nowhere").Is(404).Has("Page not found")
	b.Get(g.Assets.URL("app.css")).Is(200)
	b.Header.Set("Accept-Encoding", "gzip")
	if a := b.Get("/").Is(200); a.Header.Get("Content-Encoding") != "gzip" || !strings.Contains(a.Header.Get("Content-Security-Policy"), "nonce-") {
		t.Errorf("headers %v", a.Header)
	}
}

// HEAD is answered like GET behind any middleware, and does not consume a message that waits to be
// shown.
func TestHead(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	r := chi.NewRouter()
	r.Use(middleware.All(middleware.Options{Log: g.Console.Log}, new(atomic.Bool))...)
	r.With(middleware.Compress()).Mount("/", g.Console)
	mounted := httptest.NewServer(r)
	t.Cleanup(mounted.Close)
	for _, server := range []*httptest.Server{mounted, g.Server} {
		g.Server = server
		head := func(b *consoletest.Browser, path string) consoletest.Answer { return b.Do(http.MethodHead, path, nil) }
		b := g.As(staff.Admin)
		for _, path := range []string{"/", "/templates", shell.TemplateURL(d.ID), "/templates.csv", "/monitor/queues", g.Assets.URL("app.css"), "/live?of=%2F", shell.TemplateURL(d.ID) + "/cockpit/live"} {
			if a := head(b, path).Is(http.StatusOK); a.Body != "" || a.Header.Get("Content-Type") == "" {
				t.Errorf("%s: %q, %v", path, a.Body, a.Header)
			}
		}
		head(b, "/nowhere").Is(http.StatusNotFound)
		head(b, "/templates/preview").Is(http.StatusNotFound)
		head(b, "/templates/99999").Is(http.StatusNotFound)
		head(g.As(staff.Viewer), "/staff").Is(http.StatusForbidden)
		head(g.Browser(), "/templates?q=moon").To("/signin?return=%2Ftemplates%3Fq%3Dmoon")
		b.Post("/keys", url.Values{"name": {"checkout"}, "scopes": {"read"}, "request_key": {rand.Text()}}).To("/keys")
		head(b, "/keys").Is(http.StatusOK)
		b.Get("/keys").Is(http.StatusOK).Has("Copy it now")
	}
}
