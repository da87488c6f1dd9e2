package pipeline

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"dropbell/web/cells"
)

// A Route describes one operation, both for the pipeline and for readers of the document.
type Route struct {
	Traits
	Method      string
	Path        string
	ID          string
	Summary     string
	Description string
	// Codes are the codes of this operation beyond those that every operation of
	// its kind shares.
	Codes []string
	// Status is the usual successful status; 0 = 200. Also lists further statuses.
	Status int
	Also   map[int]string
	// Example is a request body in JSON.
	Example string
	// File is the media type of an answer that is not JSON, such as text/csv, and
	// FileText describes it.
	File, FileText string
	// Cells, if set, says how the answers of several databases become one answer. Items and Cursor are
	// those of the operation.
	Cells *cells.List
	// Complete, if set, adds to the description anything that the other fields cannot express.
	Complete func(*huma.Operation)
}

// Staff returns a route for service keys that have a role. more has the fields that
// the parameters do not set.
func Staff(method, path, id, summary string, more Route) Route {
	more.Access, more.Method, more.Path, more.ID, more.Summary = ForStaff, method, path, id, summary
	return more
}

// The groups of operations in the document.
const (
	TagUsers   = "For end users"
	TagPayment = "For payment"
	TagStaff   = "For staff and automation"
)

// tag returns the group of the operation in the document.
func (r Route) tag() string {
	switch r.Access {
	case ForStaff:
		return TagStaff
	case ForPayment:
		return TagPayment
	}
	return TagUsers
}

// operation describes the route as huma and the document need it.
func (pl *Pipeline) operation(r Route) huma.Operation {
	op := huma.Operation{
		Method: r.Method, Path: r.Path, OperationID: r.ID, Summary: r.Summary, Description: r.Description,
		Tags: []string{r.tag()}, DefaultStatus: r.Status, Metadata: map[string]any{traitsKey: r.Traits},
		MaxBodyBytes: maxBody + 2, BodyReadTimeout: -1, // the pipeline has done both
		Security: r.security(), Parameters: r.headers(), Responses: pl.responses(r),
		RejectUnknownQueryParameters: true,
	}
	if r.Example != "" {
		op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {Example: json.RawMessage(r.Example)}}}
	}
	if r.File != "" {
		op.Responses["200"] = &huma.Response{Description: r.FileText, Content: map[string]*huma.MediaType{r.File: {Schema: &huma.Schema{Type: huma.TypeString}}}}
	}
	if r.Complete != nil {
		r.Complete(&op)
	}
	return op
}

func (r Route) security() []map[string][]string {
	token, key := map[string][]string{"userToken": {}}, map[string][]string{"serviceKey": {}}
	switch r.Access {
	case ForStaff, ForPayment:
		return []map[string][]string{key}
	case ForAnybody:
		return []map[string][]string{token, key, {}}
	}
	return []map[string][]string{token, key}
}

func (r Route) headers() []*huma.Param {
	text := func(most int) *huma.Schema { return &huma.Schema{Type: huma.TypeString, MaxLength: &most} }
	var ps []*huma.Param
	if r.Access == ForUsers || r.Access == ForOwners {
		ps = append(ps, &huma.Param{Name: "X-User-ID", In: "header", Schema: text(19),
			Description: "With a service key that has the scope act-as-user: the user the request is about."})
	}
	if r.Access == ForPayment {
		ps = append(ps, &huma.Param{Name: "X-User-ID", In: "header", Schema: text(19),
			Description: "With a service key that also has the scope act-as-user: the coupon must belong to this user."})
	}
	if r.Method == http.MethodPost {
		ps = append(ps, &huma.Param{Name: "Idempotency-Key", In: "header", Schema: text(255),
			Description: "Any text of 1 to 255 printable characters that is new for every new request. Sending the same request " +
				"again with the same key " + r.remembered() + " returns the first answer, marked Idempotency-Replayed: true."})
	}
	return ps
}

// remembered says how long a repetition is recognised.
func (r Route) remembered() string {
	if r.OwnKeys {
		return "at any later time"
	}
	return "within 24 hours"
}

func (r Route) hasBody() bool {
	return r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch
}

// codes returns all codes of the route in the order of the table.
func (r Route) codes() []Code {
	names := append([]string{"invalid_request", "rate_limited", "internal", "overloaded", "unauthenticated"}, r.Codes...)
	if r.Access != ForAnybody {
		names = append(names, "forbidden")
	}
	if r.hasBody() && !r.Stream {
		names = append(names, "malformed_json", "too_large", "unsupported_media_type", "request_timeout")
	}
	if r.Method == http.MethodPost {
		names = append(names, "idempotency_conflict", "idempotency_in_progress")
	}
	return slices.DeleteFunc(slices.Clone(codes), func(c Code) bool { return !slices.Contains(names, c.Code) })
}

func (pl *Pipeline) responses(r Route) map[string]*huma.Response {
	schema := pl.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	all := map[string]*huma.Response{}
	for _, c := range r.codes() {
		status := strconv.Itoa(c.Status)
		if all[status] == nil {
			all[status] = &huma.Response{Content: map[string]*huma.MediaType{"application/problem+json": {Schema: schema}}}
			if c.Status == http.StatusTooManyRequests || c.Status == http.StatusServiceUnavailable {
				all[status].Headers = map[string]*huma.Param{"Retry-After": {Schema: &huma.Schema{Type: huma.TypeInteger},
					Description: "Seconds until a retry makes sense."}}
			}
		}
		all[status].Description = strings.TrimSpace(all[status].Description + " `" + c.Code + "`: " + c.Meaning)
	}
	for status, text := range r.Also {
		all[strconv.Itoa(status)] = &huma.Response{Description: text}
	}
	return all
}
