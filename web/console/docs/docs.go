// Package docs holds the pages about the HTTP API: the reference, which is made from the OpenAPI
// document, the first steps, the requests of the webhook channel, and the web components. The pages
// need no sign-in.
package docs

import (
	"cmp"
	"net/http"
	"strings"
	"sync"

	documents "dropbell/docs"
	docpages "dropbell/views/pages/docs"
	"dropbell/web/api/pipeline"
	"dropbell/web/console/shell"
)

// Path is where the pages are.
const Path = "/docs"

// Deps are the dependencies of the pages of this package.
type Deps struct {
	// API is described by the pages.
	API *pipeline.Pipeline
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	// reference is made once, for the first request.
	reference func() docpages.Reference
}

// Routes returns the routes of the pages about the API.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, reference: sync.OnceValue(reference{d.API}.page)}
	return []shell.Route{
		shell.Open(shell.Get(Path, "", h.showReference)),
		shell.Open(shell.Get(Path+"/start", "", h.showFirstSteps)),
		shell.Open(shell.Get(Path+"/webhooks", "", h.showWebhooks)),
		shell.Open(shell.Get(Path+"/components", "", h.showComponents)),
		shell.Open(shell.Get(assistantsPath, "", h.showForAssistants)),
		shell.Open(shell.Get(Path+"/fair.md", "", h.showFile)),
		shell.Open(shell.Get(Path+"/fair/{name}", "", h.showFile)),
	}
}

func (h *handlers) showReference(w http.ResponseWriter, r *http.Request) error {
	return h.Show(w, r, http.StatusOK, h.reference().Page())
}

func (h *handlers) showFirstSteps(w http.ResponseWriter, r *http.Request) error {
	page := docpages.FirstSteps{Address: h.address(r), Steps: firstSteps(h.Now())}
	return h.Show(w, r, http.StatusOK, page.Page())
}

func (h *handlers) showWebhooks(w http.ResponseWriter, r *http.Request) error {
	return h.Show(w, r, http.StatusOK, webhooks().Page())
}

func (h *handlers) showComponents(w http.ResponseWriter, r *http.Request) error {
	return h.Show(w, r, http.StatusOK, docpages.ComponentsAt(h.address(r)).Page())
}

// showFile answers with one of the documents that are served as they are.
func (h *handlers) showFile(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(r.URL.Path, Path+"/")
	text, err := documents.Files.ReadFile(name)
	if err != nil {
		return shell.ErrNoPage
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if strings.HasSuffix(name, ".json") {
		w.Header().Set("Content-Type", "application/json")
	}
	_, err = w.Write(text)
	return err
}

// address is where the reader reaches this server.
func (h *handlers) address(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return strings.TrimRight(cmp.Or(h.PublicURL, scheme+"://"+r.Host), "/")
}
