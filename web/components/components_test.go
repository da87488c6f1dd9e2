package components

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dropbell/adapters/localstack"
)

// TestScripts: pages of every origin get the scripts, compressed if the client accepts it. They may
// cache them, and revalidate them.
func TestScripts(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]*Handler{"customElements.define": New(), "showNotification": NewPush()} {
		t.Run(name, func(t *testing.T) { testScript(t, h, name) })
	}
}

func testScript(t *testing.T, h *Handler, says string) {
	t.Helper()
	get := func(headers ...string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, Path, nil), httptest.NewRecorder()
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		h.ServeHTTP(w, r)
		return w
	}
	plain, packed := get(), get("Accept-Encoding", "br, gzip")
	for name, want := range map[string]string{"Content-Type": "text/javascript; charset=utf-8", "Access-Control-Allow-Origin": "*",
		"Cross-Origin-Resource-Policy": "cross-origin", "Cache-Control": caching, "Vary": "Accept-Encoding"} {
		if plain.Header().Get(name) != want || packed.Header().Get(name) != want {
			t.Errorf("%s: %q, %q", name, plain.Header().Get(name), packed.Header().Get(name))
		}
	}
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(z); err != nil || string(unpacked) != plain.Body.String() || packed.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("packed: %v", err)
	}
	for _, w := range []*httptest.ResponseRecorder{plain, packed} {
		again := get("Accept-Encoding", w.Header().Get("Content-Encoding"), "If-None-Match", w.Header().Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("Content-Encoding") != "" {
			t.Errorf("again: %d, %d bytes", again.Code, again.Body.Len())
		}
	}
	if !strings.Contains(plain.Body.String(), says) {
		t.Errorf("the script lacks %s", says)
	}
	if plain.Header().Get("ETag") == packed.Header().Get("ETag") {
		t.Error("one ETag for two contents")
	}
}

// TestScriptIsSmall: the script that a browser downloads has at most 15 KB.
func TestScriptIsSmall(t *testing.T) {
	t.Parallel()
	if n := len(New().packed); n > 15_000 {
		t.Errorf("%d bytes are sent", n)
	}
}

// TestBothLanguages: each text is there in English and in Chinese, with the same values.
func TestBothLanguages(t *testing.T) {
	t.Parallel()
	en, zh, found := strings.Cut(string(script), "  zh: {")
	_, en, ok := strings.Cut(en, "  en: {")
	zh, _, ended := strings.Cut(zh, "\n  },\n};")
	if !found || !ok || !ended {
		t.Fatal("the texts are not where they were")
	}
	entry := regexp.MustCompile(`(\w+): "([^"]+)"`)
	value := regexp.MustCompile(`\{\w+\}`)
	read := func(block string) map[string]string {
		texts := map[string]string{}
		for _, m := range entry.FindAllStringSubmatch(block, -1) {
			values := value.FindAllString(m[2], -1)
			slices.Sort(values)
			if _, twice := texts[m[1]]; twice {
				t.Errorf("%s: two texts have this name, and the second one is shown for both", m[1])
			}
			texts[m[1]] = strings.Join(values, " ")
		}
		return texts
	}
	english, chinese := read(en), read(zh)
	if len(english) < 30 || len(english) != len(chinese) {
		t.Errorf("%d texts in English, %d in Chinese", len(english), len(chinese))
	}
	for name, values := range english {
		if got, ok := chinese[name]; !ok || got != values {
			t.Errorf("%s: values %q in English, %q in Chinese (there: %v)", name, values, got, ok)
		}
	}
}

// TestBehaviour runs the scripts in Node.js against answers and a clock of their own.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	localstack.NPMPackages(t, filepath.Join("..", "..", "sdk", "typescript")) // skips where there is no Node.js
	if said, err := exec.CommandContext(t.Context(), "node", "--test", filepath.Join("testdata", "v1.test.mjs"), filepath.Join("testdata", "v1-push.test.mjs")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}
