// Package static holds the console's style sheet, scripts and images. Every file is served under a
// name that contains a hash of its content, so that browsers may cache it forever.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// Names of modules may begin with _.
//
//go:embed all:files
var files embed.FS

// Prefix begins the path of every asset.
const Prefix = "/static/"

// Assets are the files by their hashed names.
type Assets struct {
	byName map[string]string // "app.css" → "/static/app.3f2a….css"
	byPath map[string]asset
}

type asset struct {
	content []byte
	kind    string
}

// Sheet is the style sheet: app.css and the sheets of the parts of the console,
// as one file, so that a page needs one request.
const Sheet = "app.css"

// Load reads the files that are part of the program.
func Load() (*Assets, error) {
	a := &Assets{byName: map[string]string{}, byPath: map[string]asset{}}
	sheet, err := files.ReadFile("files/" + Sheet)
	if err != nil {
		return a, err
	}
	err = fs.WalkDir(files, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "files/"+Sheet {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".css" {
			sheet = append(append(sheet, '\n'), content...)
			return nil
		}
		return a.add(strings.TrimPrefix(name, "files/"), content)
	})
	if err != nil {
		return a, err
	}
	if err := a.add(Sheet, sheet); err != nil {
		return a, err
	}
	manifest, err := a.manifest()
	if err != nil {
		return a, err
	}
	return a, a.add(Manifest, manifest)
}

func (a *Assets) add(name string, content []byte) error {
	kind, ok := map[string]string{
		".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
		".txt": "text/plain; charset=utf-8", ".webmanifest": "application/manifest+json",
	}[path.Ext(name)]
	if !ok {
		return fmt.Errorf("asset %s: no content type is known for it", name)
	}
	sum := sha256.Sum256(content)
	ext := path.Ext(name)
	hashed := Prefix + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	a.byName[name], a.byPath[hashed] = hashed, asset{content, kind}
	return nil
}

// URL returns the address of the file name. It panics if there is no such file; any test that
// renders the page finds that.
func (a *Assets) URL(name string) string {
	url, ok := a.byName[name]
	if !ok {
		panic("no asset " + name)
	}
	return url
}

// Content returns the content of the file; name is the name without a hash. It is nil if there is
// no such file.
func (a *Assets) Content(name string) []byte { return a.byPath[a.byName[name]].content }

// ServeHTTP answers GET and HEAD below [Prefix].
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := a.byPath[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", fmt.Sprint(len(f.content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.content) // an error means that the client has gone
	}
}
