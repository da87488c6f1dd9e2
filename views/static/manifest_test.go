package static

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"testing"

	"dropbell/musttest"
)

// The console is installable: the manifest has the fields that browsers require, and its icons
// exist in the sizes that it names.
func TestManifest(t *testing.T) {
	a, err := Load()
	musttest.OK(t, err)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	w := get(a.URL(Manifest))
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/manifest+json" || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	var m struct {
		ID, Name, Scope, Display string
		Short                    string `json:"short_name"`
		Start                    string `json:"start_url"`
		Theme                    string `json:"theme_color"`
		Icons                    []struct{ Src, Sizes, Type, Purpose string }
	}
	musttest.OK(t, json.Unmarshal(w.Body.Bytes(), &m))
	if m.ID != "/" || m.Name == "" || m.Short == "" || m.Scope != "/" || m.Start != "/" || m.Display != "standalone" || m.Theme == "" {
		t.Errorf("%+v", m)
	}
	sizes := map[string]bool{}
	for _, icon := range m.Icons {
		file := get(icon.Src)
		if file.Code != 200 || file.Header().Get("Content-Type") != icon.Type {
			t.Errorf("%s: %d %v", icon.Src, file.Code, file.Header())
		}
		if icon.Type != "image/png" {
			continue
		}
		drawn, err := png.Decode(bytes.NewReader(file.Body.Bytes()))
		musttest.OK(t, err)
		b := drawn.Bounds()
		if got := fmt.Sprintf("%dx%d", b.Dx(), b.Dy()); got != icon.Sizes {
			t.Errorf("%s is %s, not %s", icon.Src, got, icon.Sizes)
		}
		_, _, _, corner := drawn.At(0, 0).RGBA()
		if (corner == 0) != (icon.Purpose == "any") { // a mask cuts what is drawn to the edges
			t.Errorf("%s for %s: the corner's opacity is %d", icon.Src, icon.Purpose, corner)
		}
		sizes[icon.Purpose+icon.Sizes] = true
	}
	for _, want := range []string{"any192x192", "any512x512", "maskable192x192", "maskable512x512"} {
		if !sizes[want] {
			t.Errorf("there is no icon %s", want)
		}
	}
}
