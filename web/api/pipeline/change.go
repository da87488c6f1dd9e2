package pipeline

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/domain/field"
)

// Change is the body of a change of what a W describes: absent fields stay as they are. More has
// the fields that only the change has. Embed it in a named struct, whose name is the name in the
// document. The schema is made of W: every field can be left out and may be null. The tag patch of
// a field describes the field in changes.
type Change[W, More any] struct {
	More More `json:"-"`
	wish W
	// given are the names of the fields that are not absent.
	given map[string]bool
}

// UnmarshalJSON reads the fields of W and of More.
func (c *Change[W, More]) UnmarshalJSON(b []byte) error {
	var names map[string]json.RawMessage
	if err := json.Unmarshal(b, &names); err != nil {
		return err
	}
	c.given = map[string]bool{}
	for name := range names {
		c.given[name] = true
	}
	if err := json.Unmarshal(b, &c.wish); err != nil {
		return err
	}
	return json.Unmarshal(b, &c.More)
}

// On overwrites the fields of w that the change has; null is the zero value.
func (c Change[W, More]) On(w W) W {
	for _, f := range field.Tagged[W]("json", bodyOptions...) {
		if c.given[f.Name] {
			f.Of(&w).Set(f.Of(&c.wish))
		}
	}
	return w
}

// nullable returns the names of the fields that may be null; see [saidSchemas].
func (c Change[W, More]) nullable() []string { return field.Tagged[W]("json", bodyOptions...).Names() }

// TransformSchema is part of [huma.SchemaTransformer].
func (c *Change[W, More]) TransformSchema(r huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties, s.Required = map[string]*huma.Schema{}, nil
	for name, p := range huma.SchemaFromType(r, reflect.TypeFor[More]()).Properties {
		s.Properties[name] = p
	}
	whole := r.SchemaFromRef(r.Schema(reflect.TypeFor[W](), true, "").Ref)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[W]()) {
		if name := bodyName(f); name != "" {
			said := *whole.Properties[name]
			said.Description, said.Default, said.Examples, said.Minimum, said.MaxItems = f.Tag.Get("patch"), nil, nil, nil, nil
			said.Nullable = said.Type != "" // a schema without a type: see sayNull
			said.PrecomputeMessages()
			s.Properties[name] = &said
		}
	}
	return s
}
