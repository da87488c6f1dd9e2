package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// Version is the version of the contract.
const Version = "1.0.0"

func config(publicURL string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Dropbell API", Version: Version,
				Description: "Reminders of coupon drops. Ids are decimal strings, instants are RFC 3339 in UTC, errors are " +
					"application/problem+json (RFC 9457) with a stable code. Unknown fields are refused."},
			Servers: []*huma.Server{{URL: strings.TrimRight(publicURL, "/") + "/api/v1"}},
			Tags: []*huma.Tag{
				{Name: TagUsers, Description: "Called by the shop's app with the user's token, or by the shop's services with a key that acts as the user."},
				{Name: TagPayment, Description: "Called by the payment service with a key that has the scope payment: try, confirm, cancel, and refund."},
				{Name: TagStaff, Description: "Called with a service key; the same rules hold as in the console."},
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"userToken": {Type: "http", Scheme: "bearer", BearerFormat: "JWT",
						Description: "A token of the shop whose sub is the user's id in decimal and which has an exp."},
					"serviceKey": {Type: "http", Scheme: "bearer",
						Description: "A service key, dbk_…, with the scopes it needs: act-as-user with X-User-ID for the calls of end users, " +
							"payment for those of payment, read or admin for those of staff."},
				},
			},
		},
		Formats:       map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{transform},
	}
}

// ForReaders adds a change of the published document that requests are not validated against.
// change replaces each part that it changes by a changed copy.
func (pl *Pipeline) ForReaders(change func(*huma.OpenAPI)) {
	pl.forReading = append(pl.forReading, change)
}

// Finish completes the document after the last operation is registered. The document's text is made
// when it is first read; most processes never read it.
func (pl *Pipeline) Finish() {
	doc := pl.huma.OpenAPI()
	schemas := doc.Components.Schemas.Map()
	// huma registers its own error types, which never go out.
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	list := make([]any, len(codes))
	for i, c := range codes {
		list[i] = c.Code
	}
	schemas["Problem"].Properties["code"].Enum = list
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post, path.Put, path.Patch, path.Delete} {
			if op != nil {
				finishAnswers(op)
			}
		}
	}
	pl.spec = sync.OnceValue(func() []byte {
		spec, err := json.MarshalIndent(pl.forReaders(), "", " ")
		if err != nil {
			panic(err) // the document is made of constants
		}
		return spec
	})
}

// forReaders returns the published document: a copy in which some parts are replaced. huma
// validates requests against the schemas of the original; with the replaced parts it would validate
// or complete requests differently.
func (pl *Pipeline) forReaders() *huma.OpenAPI {
	doc := *pl.huma.OpenAPI()
	components := *doc.Components
	said := saidSchemas{components.Schemas, maps.Clone(components.Schemas.Map())}
	components.Schemas, doc.Components, doc.Paths = said, &components, maps.Clone(doc.Paths)
	for name, schema := range said.schemas {
		copied := *schema
		copied.Properties = maps.Clone(schema.Properties)
		said.schemas[name] = &copied
	}
	said.sayNull()
	for _, schema := range said.schemas {
		for name, p := range schema.Properties {
			if p.Default == nil {
				continue
			}
			// Client generators treat a field with a default as always present, and require it in
			// requests.
			copied := *p
			copied.Default = nil
			copied.Description = strings.TrimSpace(fmt.Sprintf("%s %v if left out.", p.Description, p.Default))
			schema.Properties[name] = &copied
		}
	}
	for _, change := range pl.forReading {
		change(&doc)
	}
	return &doc
}

// saidSchemas are the schemas of the published document.
type saidSchemas struct {
	huma.Registry
	schemas map[string]*huma.Schema
}

// Map is part of [huma.Registry].
func (s saidSchemas) Map() map[string]*huma.Schema { return s.schemas }

// MarshalJSON writes the schemas by their names.
func (s saidSchemas) MarshalJSON() ([]byte, error) { return json.Marshal(s.schemas) }

// sayNull makes [Optional] fields and fields of a [Change] that hold another schema accept null in the published document.
// huma accepts null for a field that is not required anyway, and validates the field better by the
// schema alone.
func (s saidSchemas) sayNull() {
	for name, schema := range s.schemas {
		of := s.TypeFromRef("#/components/schemas/" + name)
		if of == nil || of.Kind() != reflect.Struct {
			continue
		}
		if change, ok := reflect.Zero(of).Interface().(interface{ nullable() []string }); ok {
			for _, key := range change.nullable() {
				schema.Properties[key] = orNull(schema.Properties[key])
			}
		}
		for _, f := range reflect.VisibleFields(of) {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			held := schema.Properties[key]
			if held == nil || !strings.HasPrefix(f.Type.Name(), "Optional[") {
				continue
			}
			schema.Properties[key] = orNull(held)
		}
	}
}

// orNull returns a schema that also accepts null, unless only certain values are accepted. A schema
// with a type already has null among its types.
func orNull(held *huma.Schema) *huma.Schema {
	null := &huma.Schema{Type: "null"}
	switch {
	case held.Ref != "":
		return &huma.Schema{AnyOf: []*huma.Schema{{Ref: held.Ref}, null}, Description: held.Description}
	case len(held.OneOf) > 0:
		said := *held
		said.OneOf = append(slices.Clone(held.OneOf), null)
		return &said
	case len(held.Enum) > 0 && held.Nullable:
		said := *held
		said.Nullable = false // null is none of its values
		return &said
	}
	return held
}

// finishAnswers copies the body of the usual successful answer to successful answers that differ
// only in their status. All successful answers get the headers of the rate limit.
func finishAnswers(op *huma.Operation) {
	usual := op.Responses[strconv.Itoa(cmp.Or(op.DefaultStatus, http.StatusOK))]
	for status, answer := range op.Responses {
		if status[0] != '2' || usual == nil {
			continue
		}
		if answer.Content == nil && status != strconv.Itoa(http.StatusNoContent) {
			answer.Content = usual.Content
		}
		if answer.Headers == nil {
			answer.Headers = map[string]*huma.Param{}
		}
		for name, text := range map[string]string{"RateLimit-Limit": "Requests a minute.", "RateLimit-Remaining": "Requests that are left.",
			"RateLimit-Reset": "Seconds until all are available again."} {
			answer.Headers[name] = &huma.Param{Schema: &huma.Schema{Type: huma.TypeInteger}, Description: text + " Absent where requests are not counted."}
		}
	}
}

// OpenAPI returns the document in JSON.
func (pl *Pipeline) OpenAPI() []byte { return pl.spec() }

// ServeOpenAPI serves the document; mount it at /openapi.json.
func (pl *Pipeline) ServeOpenAPI(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/openapi+json")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("Access-Control-Allow-Origin", "*") // it is public; tools load it from elsewhere
	_, _ = w.Write(pl.spec())                 // the client may be gone
}

// Document returns the description of all operations.
func (pl *Pipeline) Document() *huma.OpenAPI { return pl.huma.OpenAPI() }

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
