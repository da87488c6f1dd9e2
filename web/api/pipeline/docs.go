package pipeline

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/web/middleware"
)

//go:embed page/docs.html page/docs.css
var pages embed.FS

// docsPolicy allows nothing but the page's own style sheet.
const docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type docsPage struct {
	Title, Version, Description, Base string
	Credentials                       []docsText
	Groups                            []docsGroup
	Codes                             []code
}

type docsText struct{ Name, Text string }

type docsGroup struct {
	Name, Text string
	Operations []docsOperation
}

type docsOperation struct {
	ID, Method, Class, Path, Summary, Description, Curl string
	Parameters, Body, Answer                            []docsField
	Answers                                             []docsAnswer
}

type docsField struct {
	Name, Type, Text, Values, Example string
	Required                          bool
}

type docsAnswer struct {
	Status, Class, Text string
	Codes               []string
}

// Docs returns the readable page and its style sheet; mount it at /docs and
// below. The page is made once, from the document, for the first request.
func (pl *Pipeline) Docs() http.Handler {
	page := sync.OnceValue(func() []byte {
		var b bytes.Buffer
		if err := template.Must(template.ParseFS(pages, "page/docs.html")).Execute(&b, pl.docsPage()); err != nil {
			panic(err) // the page is made of constants
		}
		return b.Bytes()
	})
	style, err := pages.ReadFile("page/docs.css")
	if err != nil {
		panic(err) // it is embedded
	}
	return middleware.Compress()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Cache-Control", "public, max-age=300")
		if strings.HasSuffix(r.URL.Path, "/docs.css") {
			h.Set("Content-Type", "text/css; charset=utf-8")
			_, _ = w.Write(style) // the client may be gone
			return
		}
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page()) // the client may be gone
	}))
}

func (pl *Pipeline) docsPage() docsPage {
	doc := pl.huma.OpenAPI()
	p := docsPage{Title: doc.Info.Title, Version: doc.Info.Version, Description: doc.Info.Description, Base: doc.Servers[0].URL, Codes: codes}
	for _, name := range []string{"userToken", "serviceKey"} {
		p.Credentials = append(p.Credentials, docsText{name, doc.Components.SecuritySchemes[name].Description})
	}
	for _, tag := range doc.Tags {
		g := docsGroup{Name: tag.Name, Text: tag.Description}
		for _, op := range pl.Operations() {
			if op.Tags[0] == tag.Name {
				g.Operations = append(g.Operations, pl.docsOperation(op))
			}
		}
		p.Groups = append(p.Groups, g)
	}
	return p
}

// Operations lists the document's operations by path.
func (pl *Pipeline) Operations() []*huma.Operation {
	var all []*huma.Operation
	for _, item := range pl.huma.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				all = append(all, op)
			}
		}
	}
	order := []string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete}
	slices.SortFunc(all, func(x, y *huma.Operation) int {
		if c := strings.Compare(x.Path, y.Path); c != 0 {
			return c
		}
		return slices.Index(order, x.Method) - slices.Index(order, y.Method)
	})
	return all
}

func (pl *Pipeline) docsOperation(op *huma.Operation) docsOperation {
	d := docsOperation{ID: op.OperationID, Method: op.Method, Class: strings.ToLower(op.Method), Path: op.Path,
		Summary: op.Summary, Description: op.Description, Curl: curl(op)}
	for _, p := range op.Parameters {
		f := pl.docsField(p.Name, p.Schema)
		f.Type, f.Required = p.In+", "+f.Type, p.Required
		f.Text = strings.TrimSpace(p.Description + " " + strings.TrimPrefix(f.Text, p.Description))
		d.Parameters = append(d.Parameters, f)
	}
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content {
			d.Body = pl.docsFields("", media.Schema)
		}
	}
	for status, r := range op.Responses {
		d.Answers = append(d.Answers, docsAnswerOf(status, r))
		if media := r.Content["application/json"]; media != nil {
			d.Answer = pl.docsFields("", media.Schema)
		}
	}
	slices.SortFunc(d.Answers, func(x, y docsAnswer) int { return strings.Compare(x.Status, y.Status) })
	return d
}

func docsAnswerOf(status string, r *huma.Response) docsAnswer {
	d := docsAnswer{Status: status, Class: status[:1], Text: r.Description}
	for _, c := range codes {
		if strconv.Itoa(c.Status) == status && strings.Contains(r.Description, "`"+c.Code+"`") {
			d.Codes = append(d.Codes, c.Code)
		}
	}
	return d
}

func (pl *Pipeline) resolve(s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = pl.huma.OpenAPI().Components.Schemas.SchemaFromRef(s.Ref)
	}
	return s
}

// docsFields flattens a schema: "reminders[].minutes".
func (pl *Pipeline) docsFields(prefix string, s *huma.Schema) []docsField {
	s = pl.resolve(s)
	if s == nil || s.Type != huma.TypeObject {
		return nil
	}
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		if rx, ry := slices.Contains(s.Required, x), slices.Contains(s.Required, y); rx != ry {
			return map[bool]int{true: -1, false: 1}[rx]
		}
		return strings.Compare(x, y)
	})
	var fields []docsField
	for _, name := range names {
		f := pl.docsField(prefix+name, s.Properties[name])
		f.Required = slices.Contains(s.Required, name)
		fields = append(fields, f)
		inner, mark := pl.resolve(s.Properties[name]), "."
		if inner.Type == huma.TypeArray {
			inner, mark = pl.resolve(inner.Items), "[]."
		}
		fields = append(fields, pl.docsFields(prefix+name+mark, inner)...)
	}
	return fields
}

func (pl *Pipeline) docsField(name string, s *huma.Schema) docsField {
	f := docsField{Name: name, Text: s.Description}
	inner := pl.resolve(s)
	f.Type = inner.Type
	switch {
	case inner.Format == "date-time":
		f.Type = "instant"
	case inner.Type == huma.TypeArray:
		f.Type = "list of " + pl.resolve(inner.Items).Type
		inner = pl.resolve(inner.Items)
	case inner.Pattern == idPattern:
		f.Type = "id"
	}
	values := make([]string, len(inner.Enum))
	for i, v := range inner.Enum {
		values[i] = fmt.Sprint(v)
	}
	f.Values = strings.Join(values, ", ")
	if inner.Minimum != nil && inner.Maximum != nil {
		f.Text = strings.TrimSpace(fmt.Sprintf("%s %v to %v.", f.Text, *inner.Minimum, *inner.Maximum))
	}
	if s.Default != nil {
		f.Text = strings.TrimSpace(fmt.Sprintf("%s %v if left out.", f.Text, s.Default))
	}
	if len(s.Examples) > 0 && f.Values == "" {
		b, _ := json.Marshal(s.Examples[0]) // it came from JSON
		f.Example = string(b)
	}
	return f
}

// curl returns a command that can be pasted into a shell.
func curl(op *huma.Operation) string {
	path := strings.NewReplacer("{template_id}", "1", "{id}", "1", "{number}", "10").Replace(op.Path)
	parts := []string{"curl"}
	if op.Method != http.MethodGet {
		parts = append(parts, "-X "+op.Method)
	}
	if op.OperationID == "inbox-stream" {
		parts = append(parts, "-N")
	}
	lines := []string{strings.Join(parts, " ") + ` "$DROPBELL/api/v1` + path + `"`}
	switch {
	case op.Tags[0] == TagStaff:
		lines = append(lines, `-H "Authorization: Bearer $KEY"`)
	case len(op.Security) < 3:
		lines = append(lines, `-H "Authorization: Bearer $TOKEN"`)
	}
	if op.Method == http.MethodPatch {
		lines = append(lines, `-H 'If-Match: "1"'`)
	}
	if op.Method == http.MethodPost {
		lines = append(lines, `-H "Idempotency-Key: $(uuidgen)"`)
	}
	if op.RequestBody != nil {
		for kind, media := range op.RequestBody.Content {
			lines = append(lines, "-H 'Content-Type: "+kind+"'", "--data-binary '"+exampleText(media.Example)+"'")
		}
	}
	return strings.Join(lines, " \\\n  ")
}

func exampleText(v any) string {
	if s, ok := v.(string); ok {
		return strings.TrimSpace(s)
	}
	b, _ := json.Marshal(v) // it is JSON already
	return string(b)
}
