// Package pictures serves the pictures of messages to mail programs and pages of shops. The address
// of a picture has a hash of its content, so that an answer never changes.
package pictures

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/fault"
	"dropbell/domain/picture"
)

// caching lets clients keep a picture for a year without asking again.
const caching = "public, max-age=31536000, immutable"

// Files returns the files of pictures.
type Files interface {
	Get(ctx context.Context, p picture.Picture) ([]byte, error)
}

// Handler answers requests below [picture.Prefix]. It reads and sets no cookies.
type Handler struct {
	Files Files
	Log   *slog.Logger
}

// ServeHTTP answers a picture.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	p, ok := parse(r.URL.Path)
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	tag := `"` + p.Hash + `"`
	if r.Header.Get("If-None-Match") == tag {
		head.Set("Cache-Control", caching)
		head.Set("ETag", tag)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content, err := h.Files.Get(r.Context(), p)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		http.NotFound(w, r)
		return
	case err != nil:
		if r.Context().Err() == nil {
			h.Log.ErrorContext(r.Context(), "a picture could not be read", "error", err)
		}
		head.Set("Retry-After", "5")
		http.Error(w, "the picture cannot be read right now; try again", http.StatusServiceUnavailable)
		return
	}
	head.Set("Cache-Control", caching)
	head.Set("ETag", tag)
	head.Set("Content-Type", p.ContentType())
	head.Set("Content-Length", strconv.Itoa(len(content)))
	head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	head.Set("Cross-Origin-Resource-Policy", "cross-origin")
	head.Set("Access-Control-Allow-Origin", "*")
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the client may be gone
	}
}

// parse reads the path of an address, which is exactly that of a picture.
func parse(path string) (p picture.Picture, ok bool) {
	rest, ok := strings.CutPrefix(path, picture.Prefix+"/")
	shop, name, _ := strings.Cut(rest, "/")
	hash, kind, _ := strings.Cut(name, ".")
	number, err := strconv.ParseInt(shop, 10, 64)
	p = picture.Picture{Shop: number, Hash: hash, Type: kind}
	return p, ok && err == nil && number > 0 && picture.Hashed(hash) && (kind == "jpeg" || kind == "png") && p.Path() == path
}
