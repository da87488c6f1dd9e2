package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/go-chi/chi/v5"

	"dropbell/views/stories"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/docs"
	"dropbell/web/middleware"
)

// maxWeight is the greatest size of a page in bytes for a browser with an empty cache, with style
// sheet, scripts and images: as sent over the wire, compressed.
const maxWeight = 120 << 10

// maxOperation is the greatest share of one operation of the API in the size of its reference, in
// bytes, with examples in four languages and with its share of the files. The reference grows with
// the API, so its limit does too.
const maxOperation = 1100

var asset = regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`)

// wire counts the bytes of answers on the wire.
type wire struct {
	t      *testing.T
	client *http.Client
	base   string
	assets map[string]int
}

func newWire(t *testing.T, h http.Handler) *wire {
	t.Helper()
	r := chi.NewRouter()
	r.With(middleware.Compress()).Mount("/", h)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return &wire{t, &http.Client{Transport: &http.Transport{}}, server.URL, map[string]int{}}
}

// get returns an answer's text and its length on the wire.
func (w *wire) get(path string) (string, int) {
	w.t.Helper()
	plain := w.ask(path, "identity")
	return plain, len(w.ask(path, "gzip"))
}

func (w *wire) ask(path, encoding string) string {
	w.t.Helper()
	q, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.base+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	q.Header.Set("Accept-Encoding", encoding) // set by hand, the answer stays as it is
	a, err := w.client.Do(q)
	if err != nil {
		w.t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: %d %v", path, a.StatusCode, err)
	}
	return string(body)
}

// weight returns the size of the page with its files, in bytes.
func (w *wire) weight(path string) int {
	w.t.Helper()
	page, total := w.get(path)
	for _, m := range asset.FindAllStringSubmatch(page, -1) {
		if w.assets[m[1]] == 0 {
			_, w.assets[m[1]] = w.get(m[1])
		}
		total += w.assets[m[1]]
	}
	return total
}

// Every page in every state, and the whole reference of the API, is light.
func TestEveryPageIsLight(t *testing.T) {
	book, err := stories.NewBook()
	if err != nil {
		t.Fatal(err)
	}
	heaviest, most := "", 0
	light := func(name string, weight, limit int) {
		if weight > limit {
			t.Errorf("%s weighs %d bytes with its files, at most %d are wanted", name, weight, limit)
		}
		if weight > most {
			heaviest, most = name, weight
		}
	}
	w := newWire(t, book.Handler())
	for _, s := range stories.All() {
		light(s.Name, w.weight("/story/"+s.Name+"?theme=light&lang=zh-CN"), maxWeight)
	}
	g := consoletest.New(t)
	real := newWire(t, g.Console)
	for _, path := range []string{docs.Path, docs.Path + "/start", docs.Path + "/webhooks", "/signin"} {
		n := real.weight(path)
		t.Logf("%s weighs %d bytes", path, n)
		limit := maxWeight
		if path == docs.Path {
			limit = max(limit, maxOperation*len(g.Given.Docs.API.Operations()))
		}
		light(path, n, limit)
	}
	t.Logf("the heaviest page is %s with %d bytes", heaviest, most)
}
