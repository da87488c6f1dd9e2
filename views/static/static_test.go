package static

import (
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dropbell/musttest"
)

// The vendored files equal the published files byte by byte.
func TestVendoredFilesAreUnmodified(t *testing.T) {
	for name, want := range map[string]string{
		"files/vendor/htmx-4.0.1.min.js":                            "Qp9rdC8H7EqOoX+nR0P3RPG2Noji+qdwJlGpfzwQJsfOpp3sGwIdSP9xO3+UlEhn",
		"files/vendor/hx-sse-4.0.1.min.js":                          "v8HvucQ+ohQhMg0arboXc5049yNR46QKMjphs7YDch+Wm7zpfK5XVS01f26mQDJV",
		"files/vendor/uPlot-1.6.32.iife.min.js":                     "Gx3t0zdBAuQOuvvmaLZj7HKEiSgWTAs+VdtNY7wt19QDPTDQjFIwAuXDj0zeN00c",
		"files/vendor/uPlot-1.6.32.min.css":                         "IfV0B7MIOYuO95kO9G5ySKPz/85zqFNOAs8iy4tkK5zd9izhJAB8b7lHrwYqqmYE",
		"files/vendor/noble-2.4.0/curves/abstract/bls.js":           "G78S+4av4n1Nk/iB1X9zD/xZ3aqQg5qYaJVM1p4zXz3kE/jQWvNOhcIFmO4iKNxl",
		"files/vendor/noble-2.4.0/curves/abstract/curve.js":         "ODBjqSp7TMelg02mZvanGq1sBERWplsIpg71lXQGdGGmvz3xqxFHWZPKRlw0jX9u",
		"files/vendor/noble-2.4.0/curves/abstract/der.js":           "nmgcSppyI4H5wlh6t5rbNbUQ9roHCzJTksBZXrW4ijru9ad9fx8E2pkwcjRtNiyQ",
		"files/vendor/noble-2.4.0/curves/abstract/hash-to-curve.js": "3jJUzXTuQ5UGhTEqaS82kE/lQkdp0S1r7P3RW+fittWKDwtFPZiNU2bZ3qKhoQuY",
		"files/vendor/noble-2.4.0/curves/abstract/modular.js":       "xR7s2u9uY85mOtRdE4RBg4QC7mI1CUwjMWOLGFwxx+LGd9Xzg6T8c5/u/3K/x6fk",
		"files/vendor/noble-2.4.0/curves/abstract/tower.js":         "PsfBNcXjprFx1tLqehuemzmtjtTRL16cUNJjTRwFxYtd9ysF3dNeEh9KTxbHMxGp",
		"files/vendor/noble-2.4.0/curves/abstract/weierstrass.js":   "gUDGHQik38cTMZJ/GFp60hw1gr9fem5PhIIOQwXAijs3GoQlKBURbUxkyfZoJBIp",
		"files/vendor/noble-2.4.0/curves/bls12-381.js":              "6bTCE37D861ydzcuI+PsKX3MeXCcuucG2Ni3MJdDAlWmK/oefeQU01BAbjLgtqBF",
		"files/vendor/noble-2.4.0/curves/utils.js":                  "yxyxAjWSOk1k91XdLdph2I73SDcpeqSnrkUr5ru3cOL6csP8uAhQ0qgD2y7s85BT",
		"files/vendor/noble-2.4.0/hashes/_md.js":                    "+inj+kU2SrziXaCzySRcSf7kOiLEfScN7pI3vq97++FGKDRSw3MJ0t0l37dQWmKc",
		"files/vendor/noble-2.4.0/hashes/_u64.js":                   "SPLtaj6mblQ3NtLCy4eidRByUQWvhD8+J1MpyW8ejRRfwyGrzdElsKxcrcBmGjZY",
		"files/vendor/noble-2.4.0/hashes/hmac.js":                   "T+vGWnGryWubEFH8lQdk8LN00eOX+mpsmHwdXuC6L6KIIn46POY/2hauzVrdjZNH",
		"files/vendor/noble-2.4.0/hashes/sha2.js":                   "YXgpTrphhgj/WMtfF9PcPZQOE57vqATkv4wTjdFflOBTMR5ro2T6S/MkCc9vVH5q",
		"files/vendor/noble-2.4.0/hashes/utils.js":                  "YFMR8BWPimRHARZs0bAtgjKOWPQL0ND/lZk6QwHVzhzx71FWSqzQb1ToPgVtqapB",
	} {
		content, err := files.ReadFile(name)
		musttest.OK(t, err)
		sum := sha512.Sum384(content)
		if got := base64.StdEncoding.EncodeToString(sum[:]); got != want {
			t.Errorf("%s: sha384 %s, want %s", name, got, want)
		}
	}
}

func TestAssetsAreServedUnderTheirHash(t *testing.T) {
	a, err := Load()
	musttest.OK(t, err)
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
	musttest.OK(t, err)
	return string(content)
}
