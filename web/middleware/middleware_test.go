package middleware_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"dropbell/web/middleware"
)

// site is a small server behind the middleware, with its log.
type site struct {
	http.Handler
	log      *bytes.Buffer
	registry *prometheus.Registry
}

func newSite(o middleware.Options) site {
	s := site{log: &bytes.Buffer{}, registry: prometheus.NewRegistry()}
	o.Log, o.Metrics = slog.New(slog.NewJSONHandler(s.log, nil)), middleware.NewMetrics(s.registry)
	r := chi.NewMux()
	r.Use(middleware.Requests(o))
	r.Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") })
	r.Get("/hot", func(w http.ResponseWriter, r *http.Request) {
		middleware.From(r.Context()).Hot = true
		if r.URL.RawQuery != "" {
			w.WriteHeader(http.StatusConflict)
		}
	})
	r.Get("/ip", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, middleware.From(r.Context()).ClientIP(r).String())
	})
	r.Get("/endless", func(_ http.ResponseWriter, r *http.Request) { middleware.From(r.Context()).Stream = true })
	r.Get("/panic", func(http.ResponseWriter, *http.Request) { panic("secret detail") })
	r.Get("/late-panic", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic("secret detail")
	})
	r.Get("/stream", func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if c.SetWriteDeadline(time.Now().Add(time.Minute)) != nil || c.Flush() != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	s.Handler = r
	return s
}

func (s site) get(path string, headers ...string) *httptest.ResponseRecorder {
	q := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(headers); i += 2 {
		q.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, q)
	return w
}

func TestLogLine(t *testing.T) {
	s := newSite(middleware.Options{})
	w := s.get("/users/4711?token=hunter2", "Authorization", "Bearer hunter2", "X-Request-ID", "abc-1")
	var line map[string]any
	if err := json.Unmarshal(s.log.Bytes(), &line); err != nil {
		t.Fatalf("not one line of JSON: %v: %s", err, s.log)
	}
	if line["route"] != "/users/{id}" || line["status"] != 200.0 || line["bytes"] != 5.0 || line["method"] != "GET" || line["request_id"] != "abc-1" {
		t.Fatalf("line: %v", line)
	}
	for _, private := range []string{"4711", "hunter2", "192.0.2.1"} {
		if strings.Contains(s.log.String(), private) {
			t.Fatalf("%s is in the log: %s", private, s.log)
		}
	}
	if w.Header().Get("X-Request-ID") != "abc-1" || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("X-Frame-Options") != "DENY" {
		t.Fatalf("headers: %v", w.Header())
	}
}

// TestHeadersForPages: answers that may be pages have the headers for browsers; data has not. An
// address of data in another spelling is treated as a page.
func TestHeadersForPages(t *testing.T) {
	s := newSite(middleware.Options{})
	for path, want := range map[string]string{"/users/1": "DENY", "/api/v1/templates": "", "/api/v2/templates": "DENY",
		"/%61pi/v1/templates": "DENY", "/api/v1%2F..%2Fusers": "DENY"} {
		h := s.get(path).Header()
		if h.Get("X-Frame-Options") != want || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestHotRequests(t *testing.T) {
	s := newSite(middleware.Options{})
	s.get("/hot")
	if s.log.Len() != 0 {
		t.Fatalf("a success on the hot path is logged: %s", s.log)
	}
	if s.get("/hot?fail"); !strings.Contains(s.log.String(), `"status":409`) {
		t.Fatalf("a failure on the hot path is not logged: %q", s.log)
	}
}

func TestRequestID(t *testing.T) {
	s := newSite(middleware.Options{})
	seen := map[string]bool{}
	for _, given := range []string{"", strings.Repeat("a", 65), "a b", "a\"b", "<x>", "ü"} {
		id := s.get("/hot", "X-Request-ID", given).Header().Get("X-Request-ID")
		if id == given || len(id) != 16 || seen[id] {
			t.Fatalf("%q became %q", given, id)
		}
		seen[id] = true
	}
}

func TestPanics(t *testing.T) {
	s := newSite(middleware.Options{Panicked: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500); _, _ = io.WriteString(w, "sorry") }})
	w := s.get("/panic")
	if w.Code != 500 || w.Body.String() != "sorry" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if strings.Count(s.log.String(), "secret detail") != 1 || !strings.Contains(s.log.String(), `"status":500`) {
		t.Fatalf("log: %s", s.log)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	answer, err := http.Get(server.URL + "/late-panic")
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		answer.Body.Close()
	}
	if err == nil {
		t.Fatal("half an answer looks complete")
	}
}

func TestClientIP(t *testing.T) {
	direct, proxied := newSite(middleware.Options{}), newSite(middleware.Options{TrustedProxies: []string{"192.0.2.0/24"}})
	other := newSite(middleware.Options{TrustedProxies: []string{"10.0.0.0/8"}})
	for name, c := range map[string]struct {
		s    site
		xff  string
		want string
	}{
		"no proxies trusted":      {direct, "203.0.113.9", "192.0.2.1"},
		"behind one":              {proxied, "203.0.113.9", "203.0.113.9"},
		"client forges the chain": {proxied, "1.2.3.4, 203.0.113.9", "203.0.113.9"},
		"not from the proxy":      {other, "203.0.113.9", "192.0.2.1"},
		"nonsense":                {proxied, "unknown", "invalid IP"},
	} {
		if got := c.s.get("/ip", "X-Forwarded-For", c.xff).Body.String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWriterKeepsAbilities(t *testing.T) {
	server := httptest.NewServer(newSite(middleware.Options{}))
	defer server.Close()
	answer, err := http.Get(server.URL + "/stream")
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v %v", answer, err)
	}
	answer.Body.Close()
}

func TestMetrics(t *testing.T) {
	s := newSite(middleware.Options{})
	s.get("/users/1")
	s.get("/users/2")
	s.get("/nothing/3")
	s.get("/endless")
	q := httptest.NewRequest("BREW", "/users/1", nil)
	s.ServeHTTP(httptest.NewRecorder(), q)
	counts := map[string]uint64{}
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		key := ""
		for _, l := range m.GetLabel() {
			key += l.GetValue() + " "
		}
		counts[key] = m.GetHistogram().GetSampleCount()
	}
	if counts["GET /users/{id} 2xx "] != 2 || counts["GET none 4xx "] != 1 || len(counts) != 3 {
		t.Fatalf("series: %v", counts)
	}
}

func TestLimiter(t *testing.T) {
	l, at := middleware.NewLimiter(60), time.Now()
	key := middleware.LimitKey{Kind: 'u', Low: 1}
	for i := range 60 {
		if d := l.Allow(key, at); !d.Allowed || d.Remaining != 59-i || d.Limit != 60 {
			t.Fatalf("request %d: %+v", i, d)
		}
	}
	d := l.Allow(key, at)
	if d.Allowed || d.RetryAfter != time.Second || d.Reset != time.Minute {
		t.Fatalf("request 61: %+v", d)
	}
	if !l.Allow(middleware.LimitKey{Kind: 'k', Low: 1}, at).Allowed {
		t.Fatal("another key is limited as well")
	}
	if l.Allow(key, at.Add(999*time.Millisecond)).Allowed {
		t.Fatal("too early")
	}
	if !l.Allow(key, at.Add(time.Second)).Allowed || l.Allow(key, at.Add(time.Second)).Allowed {
		t.Fatal("after one second exactly one more must pass")
	}
	if d := l.Allow(key, at.Add(time.Hour)); d.Remaining != 59 {
		t.Fatalf("after an hour: %+v", d)
	}
	for range 1000 {
		if !middleware.NewLimiter(0).Allow(key, at).Allowed {
			t.Fatal("no limit, and yet refused")
		}
	}
}

func TestLimiterReturns(t *testing.T) {
	l, at := middleware.NewLimiter(2), time.Now()
	key := middleware.LimitKey{Kind: 'u', Low: 1}
	l.Return(key, at) // of which nothing was counted
	for range 10 {
		if !l.Allow(key, at).Allowed {
			t.Fatal("what was given back is counted")
		}
		l.Return(key, at)
	}
	if !l.Allow(key, at).Allowed || !l.Allow(key, at).Allowed || l.Allow(key, at).Allowed {
		t.Fatal("of two a minute not two pass")
	}
}

// With any number of keys, and concurrent requests.
func TestLimiterUnderFlood(t *testing.T) {
	const most = 2000
	l, at := middleware.NewSmallLimiter(5, most), time.Now()
	var all sync.WaitGroup
	for g := range uint64(4) {
		all.Go(func() {
			for i := range uint64(2 * most) {
				l.Allow(middleware.LimitKey{High: g, Low: i}, at)
			}
		})
	}
	all.Wait()
	key := middleware.LimitKey{Kind: 'u', Low: 1}
	for range 5 {
		l.Allow(key, at)
	}
	if l.Allow(key, at).Allowed {
		t.Fatal("a limiter that is full does not limit any more")
	}
	if n := middleware.Keys(l); n > most || n < most/2 {
		t.Fatalf("%d keys are kept, want %d at most and half of them at least", n, most)
	}
}

func TestAddressKey(t *testing.T) {
	key := func(s string) middleware.LimitKey { return middleware.AddressKey('a', netip.MustParseAddr(s)) }
	if key("2001:db8::1") != key("2001:db8::2") || key("2001:db8::1") == key("2001:db8:0:1::1") {
		t.Fatal("IPv6 must be counted by /64")
	}
	if key("192.0.2.1") == key("192.0.2.2") || key("192.0.2.1") != key("::ffff:192.0.2.1") {
		t.Fatal("IPv4 must be counted by address")
	}
}

// TestHeadWhereGetStands: HEAD works where GET does, also in front of a mounted handler that takes
// every other path. A route's own HEAD handler is used where there is one.
func TestHeadWhereGetStands(t *testing.T) {
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("From", text) }
	}
	links := chi.NewMux()
	links.Get("/{token}", say("links get"))
	links.Head("/{token}", say("links head"))
	sub := chi.NewMux()
	sub.Get("/page", say("sub"))
	r := chi.NewMux()
	r.Use(middleware.All(middleware.Options{Log: slog.New(slog.DiscardHandler)}, new(atomic.Bool))...)
	r.Get("/livez", say("livez"))
	r.Get("/docs/*", say("docs"))
	r.Post("/only", say("post"))
	r.Mount("/l", http.Handler(links))
	r.Mount("/hidden", struct{ http.Handler }{links})
	r.Mount("/sub", sub)
	r.Mount("/", struct{ http.Handler }{say("rest")})
	for path, want := range map[string]string{"/livez": "livez", "/docs/a.css": "docs", "/l/abc": "links head", "/hidden/abc": "links head",
		"/sub/page": "sub", "/": "rest", "/nothing": "rest", "/only": "rest"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodHead, path, nil))
		if got := w.Header().Get("From"); got != want {
			t.Errorf("HEAD %s: answered by %q, want %q", path, got, want)
		}
	}
}
