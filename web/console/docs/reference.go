package docs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	docpages "dropbell/views/pages/docs"
	"dropbell/web/api/pipeline"
)

// reference makes the content of the reference page from the OpenAPI document.
type reference struct{ *pipeline.Pipeline }

func (p reference) page() docpages.Reference {
	doc := p.Document()
	made := docpages.Reference{Version: doc.Info.Version, Text: doc.Info.Description, Base: doc.Servers[0].URL}
	for _, name := range []string{"userToken", "serviceKey"} {
		made.Credentials = append(made.Credentials, docpages.Text{Name: name, Text: doc.Components.SecuritySchemes[name].Description})
	}
	for i, tag := range doc.Tags {
		g := docpages.Group{ID: "group-" + strconv.Itoa(i+1), Name: tag.Name, Text: tag.Description}
		for _, op := range p.Operations() {
			if op.Tags[0] == tag.Name {
				g.Operations = append(g.Operations, p.operation(op))
			}
		}
		made.Groups = append(made.Groups, g)
	}
	for _, c := range pipeline.Codes() {
		made.Codes = append(made.Codes, docpages.Code{Code: c.Code, Status: c.Status, Meaning: c.Meaning})
	}
	return made
}

func (p reference) operation(op *huma.Operation) docpages.Operation {
	d := docpages.Operation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description,
		Examples: examples(callOf(op))}
	for _, param := range op.Parameters {
		f := p.field(param.Name, param.Schema)
		f.Type, f.Required = param.In+", "+f.Type, param.Required
		f.Text = strings.TrimSpace(param.Description + " " + strings.TrimPrefix(f.Text, param.Description))
		d.Parameters = append(d.Parameters, f)
	}
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content {
			d.Body = p.fields("", media.Schema)
		}
	}
	for status, r := range op.Responses {
		d.Answers = append(d.Answers, answerOf(status, r))
		if media := r.Content["application/json"]; media != nil {
			d.Answer = p.fields("", media.Schema)
		}
	}
	slices.SortFunc(d.Answers, func(x, y docpages.Answer) int { return strings.Compare(x.Status, y.Status) })
	return d
}

func answerOf(status string, r *huma.Response) docpages.Answer {
	a := docpages.Answer{Status: status, Text: r.Description}
	for _, c := range pipeline.Codes() {
		if strconv.Itoa(c.Status) == status && strings.Contains(r.Description, "`"+c.Code+"`") {
			a.Codes = append(a.Codes, c.Code)
		}
	}
	return a
}

func (p reference) resolve(s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = p.Schemas().SchemaFromRef(s.Ref)
	}
	return s
}

// fields flattens a schema: "reminders[].minutes".
func (p reference) fields(prefix string, s *huma.Schema) []docpages.Field {
	s = p.resolve(s)
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
	var list []docpages.Field
	for _, name := range names {
		f := p.field(prefix+name, s.Properties[name])
		f.Required = slices.Contains(s.Required, name)
		list = append(list, f)
		inner, mark := p.resolve(s.Properties[name]), "."
		if inner.Type == huma.TypeArray {
			inner, mark = p.resolve(inner.Items), "[]."
		}
		list = append(list, p.fields(prefix+name+mark, inner)...)
	}
	return list
}

func (p reference) field(name string, s *huma.Schema) docpages.Field {
	f := docpages.Field{Name: name, Text: s.Description}
	inner := p.resolve(s)
	f.Type = inner.Type
	switch {
	case inner.Format == "date-time":
		f.Type = "instant"
	case inner.Type == huma.TypeArray:
		f.Type = "list of " + p.resolve(inner.Items).Type
		inner = p.resolve(inner.Items)
	case inner.Pattern == pipeline.IDPattern:
		f.Type = "id"
	}
	values := make([]string, len(inner.Enum))
	for i, v := range inner.Enum {
		values[i] = fmt.Sprint(v)
	}
	if len(values) > 0 {
		f.Text = strings.TrimSpace(f.Text + " One of " + strings.Join(values, ", ") + ".")
	}
	if inner.Minimum != nil && inner.Maximum != nil {
		f.Text = strings.TrimSpace(fmt.Sprintf("%s %v to %v.", f.Text, *inner.Minimum, *inner.Maximum))
	}
	if s.Default != nil {
		f.Text = strings.TrimSpace(fmt.Sprintf("%s %v if left out.", f.Text, s.Default))
	}
	if len(s.Examples) > 0 && len(values) == 0 {
		b, _ := json.Marshal(s.Examples[0]) // it came from JSON
		f.Example = string(b)
	}
	return f
}
