package catcher

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
)

//go:embed page.html
var pageHTML string

//go:embed style.css
var styleCSS []byte

var pages = template.Must(template.New("page").Parse(pageHTML))

// The policy says which resources the pages may load. The e-mail's own HTML is shown in a frame
// with a stricter policy; see showHTML.
const pagePolicy = "default-src 'none'; style-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const shown = 200 // lines of the list

type tab struct {
	Kind   Kind
	Name   string
	Total  int
	Active bool
}

type listPage struct {
	Kind     Kind
	To       string
	Paused   bool
	Total    int
	Tabs     []tab
	Messages []message
}

// Link keeps the filter when another choice changes.
func (p listPage) Link(kind Kind, paused bool) string {
	q := url.Values{"kind": {string(kind)}}
	if p.To != "" {
		q.Set("to", p.To)
	}
	if paused {
		q.Set("paused", "1")
	}
	return "/?" + q.Encode()
}

func (c *Catcher) showList(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p := listPage{Kind: Kind(q.Get("kind")), To: q.Get("to"), Paused: q.Get("paused") != ""}
	if p.Kind != SMS && p.Kind != Webhook && p.Kind != Push {
		p.Kind = Mail
	}
	p.Messages, p.Total = c.store.list(p.Kind, p.To, shown)
	for _, t := range []tab{{Kind: Mail, Name: "E-mail"}, {Kind: SMS, Name: "SMS"}, {Kind: Webhook, Name: "Webhook"}, {Kind: Push, Name: "Push"}} {
		_, t.Total = c.store.list(t.Kind, p.To, 0)
		t.Active = t.Kind == p.Kind
		p.Tabs = append(p.Tabs, t)
	}
	render(w, "list", p)
}

func (c *Catcher) showMessage(w http.ResponseWriter, r *http.Request) {
	m, raw, ok := c.find(r)
	if !ok {
		http.NotFound(w, r)
		return
	}
	l := letter{Subject: m.Title, Text: string(raw)}
	if m.Kind == Mail {
		l = parseLetter(raw)
	}
	render(w, "message", struct {
		message
		Letter letter
	}{m, l})
}

// showHTML serves the HTML of an e-mail for a frame. The HTML may run no scripts, load nothing
// from the network, and has an origin of its own.
func (c *Catcher) showHTML(w http.ResponseWriter, r *http.Request) {
	m, raw, ok := c.find(r)
	if !ok || m.Kind != Mail {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy",
		"sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'")
	writeHTML(w, []byte(parseLetter(raw).HTML))
}

func (c *Catcher) showStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(styleCSS) // the reader left
}

func (c *Catcher) find(r *http.Request) (message, []byte, bool) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return message{}, nil, false
	}
	return c.store.read(id)
}

func render(w http.ResponseWriter, name string, data any) {
	var page bytes.Buffer
	if err := pages.ExecuteTemplate(&page, name, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Security-Policy", pagePolicy)
	writeHTML(w, page.Bytes())
}

func writeHTML(w http.ResponseWriter, html []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(html) // the reader left
}
