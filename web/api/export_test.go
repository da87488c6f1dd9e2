package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
)

// Conforms returns an error unless the document has the operation with this status, and this code
// and body for the status.
func (a *API) Conforms(method, path string, status int, body []byte) error {
	rc := chi.NewRouteContext()
	if !a.Routes().Match(rc, method, path) {
		if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			return fmt.Errorf("no route answers %d", status)
		}
		return nil
	}
	for _, op := range a.Operations() {
		if op.Method == method && op.Path == rc.RoutePattern() {
			return conforms(a.Schemas(), op.Responses[strconv.Itoa(status)], status, body)
		}
	}
	return fmt.Errorf("%s is not documented", rc.RoutePattern())
}

func conforms(schemas huma.Registry, r *huma.Response, status int, body []byte) error {
	if (status == http.StatusNoContent || status == http.StatusNotModified) && r != nil && len(body) == 0 {
		return nil
	}
	if r == nil {
		return fmt.Errorf("status %d is not documented", status)
	}
	if r.Content["text/csv"] != nil || r.Content["text/calendar"] != nil || r.Content["application/vnd.apple.pkpass"] != nil || r.Content["text/event-stream"] != nil {
		return nil // they have no schema
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
		code, _ := v.(map[string]any)["code"].(string)
		if !strings.Contains(r.Description, "`"+code+"`") {
			return fmt.Errorf("code %s is not documented for %d: %s", code, status, r.Description)
		}
	}
	if r.Content[kind] == nil {
		return nil
	}
	res := &huma.ValidateResult{}
	huma.Validate(schemas, r.Content[kind].Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, res)
	if len(res.Errors) > 0 {
		return res.Errors[0]
	}
	return nil
}

// PatternOf returns the path pattern of the document that matches the path; "" = none.
func (a *API) PatternOf(method, path string) string {
	rc := chi.NewRouteContext()
	if !a.Routes().Match(rc, method, path) {
		return ""
	}
	return rc.RoutePattern()
}

// Undocumented returns the routes that are missing in the document, and the operations of the
// document that have no route.
func (a *API) Undocumented() []string {
	routes := map[string]int{}
	_ = chi.Walk(a.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes[method+" "+route]++
		return nil
	})
	for _, op := range a.Operations() {
		routes[op.Method+" "+op.Path]--
	}
	var wrong []string
	for r, n := range routes {
		if n != 0 {
			wrong = append(wrong, r)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// DocumentedCodes returns every code of the document.
func (a *API) DocumentedCodes() []string {
	var names []string
	for _, name := range a.Schemas().Map()["Problem"].Properties["code"].Enum {
		names = append(names, name.(string))
	}
	return names
}
