package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// Version is the version of the contract.
const Version = "1.0.0"

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

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
				{Name: tagUsers, Description: "Called by the shop's app with the user's token, or by the shop's services with a key that acts as the user."},
				{Name: tagPayment, Description: "Called by the payment service with a key that has the scope payment: try, confirm, cancel, and refund."},
				{Name: tagStaff, Description: "Called with a service key; the same rules hold as in the console."},
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

// finishDocument fixes the document when all operations are known.
func (a *API) finishDocument() {
	doc := a.huma.OpenAPI()
	schemas := doc.Components.Schemas.Map()
	// huma registers its own error types, which never go out.
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
	list := make([]any, len(codes))
	for i, c := range codes {
		list[i] = c.Code
	}
	schemas["Problem"].Properties["code"].Enum = list
	spec, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		panic(err) // the document is made of constants
	}
	a.spec = spec
}

// OpenAPI returns the document in JSON.
func (a *API) OpenAPI() []byte { return a.spec }

// ServeOpenAPI serves the document; mount it at /openapi.json.
func (a *API) ServeOpenAPI(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/openapi+json")
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("Access-Control-Allow-Origin", "*") // it is public; tools load it from elsewhere
	_, _ = w.Write(a.spec)                    // the client may be gone
}
