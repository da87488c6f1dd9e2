// Package components serves the web components for shops' pages: one script without dependencies,
// and the service worker of push messages, at permanent addresses.
package components

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/tdewolff/minify/v2"
	"github.com/tdewolff/minify/v2/js"
)

// Path is the address of the script, PushPath the address of the service worker. A change that
// shops' pages would have to follow gets another address.
const (
	Path     = "/components/v1.js"
	PushPath = "/components/v1-push.js"
)

// caching lets browsers keep the script for a day, and use it for a week more while they fetch a
// newer script.
const caching = "public, max-age=86400, stale-while-revalidate=604800"

//go:embed v1.js
var script []byte

//go:embed v1-push.js
var pushWorker []byte

// Handler serves a script to pages of every origin.
type Handler struct {
	script []byte
	packed []byte // by gzip
	tag    string
}

// New returns the handler of the web components.
func New() *Handler { return newHandler(script) }

// NewPush returns the handler of the service worker.
func NewPush() *Handler { return newHandler(pushWorker) }

// newHandler returns the handler of a script, which is sent without comments and with short local
// names.
func newHandler(script []byte) *Handler {
	var short, b bytes.Buffer
	if err := js.Minify(minify.New(), &short, bytes.NewReader(script), nil); err == nil { // otherwise as it is
		script = short.Bytes()
	}
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(script) // a buffer takes everything
	_ = z.Close()
	sum := sha256.Sum256(script)
	return &Handler{script: script, packed: b.Bytes(), tag: base64.RawURLEncoding.EncodeToString(sum[:9])}
}

// ServeHTTP answers the script.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head, content, tag := w.Header(), h.script, `"`+h.tag+`"`
	head.Set("Content-Type", "text/javascript; charset=utf-8")
	head.Set("Cache-Control", caching)
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Cross-Origin-Resource-Policy", "cross-origin")
	head.Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		content, tag = h.packed, `"`+h.tag+`-gzip"`
		head.Set("Content-Encoding", "gzip")
	}
	head.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		head.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the client may be gone
	}
}
