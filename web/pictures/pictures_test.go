package pictures_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dropbell/domain/picture"
	"dropbell/web/pictures"
)

type files func(picture.Picture) ([]byte, error)

func (f files) Get(_ context.Context, p picture.Picture) ([]byte, error) { return f(p) }

func TestAnswers(t *testing.T) {
	stored := picture.Picture{Shop: 10, Hash: strings.Repeat("a", 64), Type: "png"}
	down := stored
	down.Shop = 11
	h := pictures.Handler{Log: slog.New(slog.DiscardHandler), Files: files(func(p picture.Picture) ([]byte, error) {
		switch p.Path() {
		case stored.Path():
			return []byte("PNG"), nil
		case down.Path():
			return nil, errors.New("down")
		}
		return nil, picture.ErrNotFound
	})}
	for path, want := range map[string]int{
		stored.Path(): 200, down.Path(): 503,
		"/pictures/10/" + strings.Repeat("b", 64) + ".png": 404, "/pictures/10/" + strings.Repeat("a", 64) + ".svg": 404,
		"/pictures/10/" + strings.Repeat("A", 64) + ".png": 404, "/pictures/010/" + strings.Repeat("a", 64) + ".png": 404, "/pictures/10/x.png": 404, "/pictures/": 404,
	} {
		for _, method := range []string{"GET", "HEAD"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
			head := w.Result().Header
			if w.Code != want || head.Get("X-Content-Type-Options") != "nosniff" || head.Get("Set-Cookie") != "" {
				t.Errorf("%s %s: %d %v", method, path, w.Code, head)
			}
			immutable := head.Get("Cache-Control") == "public, max-age=31536000, immutable"
			if immutable != (want == 200) || want == 200 && (head.Get("Content-Type") != "image/png" || (w.Body.String() == "PNG") != (method == "GET")) {
				t.Errorf("%s %s: %q %v", method, path, w.Body, head)
			}
		}
	}
	r := httptest.NewRequest(http.MethodGet, stored.Path(), nil)
	r.Header.Set("If-None-Match", `"`+stored.Hash+`"`)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != 304 || w.Body.Len() > 0 {
		t.Errorf("a picture that the client has: %d, %d bytes", w.Code, w.Body.Len())
	}
}
