package middleware

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCORS: pages of the allowed origins may call the paths of end users, and preflights are
// answered. Other origins and other paths get no CORS headers.
func TestCORS(t *testing.T) {
	t.Parallel()
	const shop = "https://shop.example"
	h := CORS([]string{"https://other.example", shop}, func(path string) bool { return strings.HasPrefix(path, "/api/v1/admin") })(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	for _, c := range []struct {
		method, path, origin, asks string
		status                     int
		allowed                    string
	}{
		{"OPTIONS", "/api/v1/claims", shop, "POST", 204, shop},
		{"POST", "/api/v1/claims", shop, "", 418, shop},
		{"OPTIONS", "/api/v1/claims", shop, "", 418, shop},
		{"OPTIONS", "/api/v1/claims", "https://evil.example", "POST", 418, ""},
		{"OPTIONS", "/api/v1/claims", "https://SHOP.example", "POST", 418, ""},
		{"OPTIONS", "/api/v1/claims", "null", "POST", 418, ""},
		{"POST", "/api/v1/claims", "https://evil.example", "", 418, ""},
		{"GET", "/api/v1/claims", "", "", 418, ""},
		{"OPTIONS", "/api/v1/admin/templates", shop, "POST", 418, ""},
		{"GET", "/api/v1/admin/templates", shop, "", 418, ""},
	} {
		r, w := httptest.NewRequest(c.method, c.path, nil), httptest.NewRecorder()
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.asks != "" {
			r.Header.Set("Access-Control-Request-Method", c.asks)
		}
		h.ServeHTTP(w, r)
		got := w.Header()
		if w.Code != c.status || got.Get("Access-Control-Allow-Origin") != c.allowed || got.Get("Vary") != "Origin" || got.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%+v: %d %v", c, w.Code, got)
		}
		if preflight := c.status == 204; preflight != (got.Get("Access-Control-Allow-Methods") != "") || preflight != (got.Get("Access-Control-Max-Age") == corsSeconds) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	w := httptest.NewRecorder()
	CORS(nil, nil)(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("OPTIONS", "/", nil))
	if w.Code != 404 || len(w.Header()["Vary"]) > 0 {
		t.Errorf("without origins: %d %v", w.Code, w.Header())
	}
}
