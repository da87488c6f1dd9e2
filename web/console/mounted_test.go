package console

import (
	"net/http/httptest"
	"strings"
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
	b.get("/nowhere").is(404).has("There is nothing here")
	b.get(g.assets.URL("app.css")).is(200)
	b.header.Set("Accept-Encoding", "gzip")
	if a := b.get("/").is(200); a.header.Get("Content-Encoding") != "gzip" || !strings.Contains(a.header.Get("Content-Security-Policy"), "nonce-") {
		t.Errorf("headers %v", a.header)
	}
}
