package static

import (
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The vendored files equal the published files byte by byte.
func TestVendoredFilesAreUnmodified(t *testing.T) {
	for name, want := range map[string]string{
		"files/vendor/htmx-4.0.1.min.js":        "Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn",
		"files/vendor/hx-sse-4.0.1.min.js":      "v8HvucQ+ohQhMg0arboXc5049yNR46QKMjphs7YDch+Wm7zpfK5XVS01f26mQDJV",
		"files/vendor/uPlot-1.6.32.iife.min.js": "Gx3t0zdBAuQOuvvmaLZj7HKEiSgWTAs+VdtNY7wt19QDPTDQjFIwAuXDj0zeN00c",
		"files/vendor/uPlot-1.6.32.min.css":     "IfV0B7MIOYuO95kO9G5ySKPz/85zqFNOAs8iy4tkK5zd9izhJAB8b7lHrwYqqmYE",
	} {
		content, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha512.Sum384(content)
		if got := base64.StdEncoding.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: sha384 %s, want %s", name, got, want)
		}
	}
}

func TestAssetsAreServedUnderTheirHash(t *testing.T) {
	a, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	url := a.URL("app.css")
	if !strings.HasPrefix(url, "/static/app.") || url == "/static/app.css" {
		t.Fatalf("URL = %q has no hash", url)
	}
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	if sheet := get(url).Body.String(); !strings.Contains(sheet, "/* The cockpit") || !strings.HasPrefix(sheet, first(t)) {
		t.Errorf("%s is not all sheets, the common one first", url)
	}
	if w := get(url); w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("%s: %d %v", url, w.Code, w.Header())
	}
	for _, path := range []string{"/static/app.css", "/static/", "/static/../static.go", "/static/app.000000000000.css"} {
		if w := get(path); w.Code != 404 {
			t.Errorf("%s: %d, want 404", path, w.Code)
		}
	}
}

func first(t *testing.T) string {
	t.Helper()
	content, err := files.ReadFile("files/" + Sheet)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
