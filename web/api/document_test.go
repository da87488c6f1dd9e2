package api_test

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestDocument(t *testing.T) {
	r := newFixture(t, nil)
	if wrong := r.api.Undocumented(); len(wrong) > 0 {
		t.Fatalf("routes and document differ: %v", wrong)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != 200 {
		t.Fatalf("%d %v", w.Code, err)
	}
	if !strings.Contains(w.Body.String(), `"title": "Dropbell API"`) {
		t.Error("the command up knows web by this title")
	}
	if doc.OpenAPI != "3.1.0" || doc.Paths["/reservations"]["post"] == nil || doc.Components.Schemas["Problem"] == nil || doc.Components.Schemas["ErrorModel"] != nil {
		t.Fatalf("document: %.500s", w.Body)
	}
	for _, ref := range regexp.MustCompile(`"\$ref": ?"#/components/schemas/([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		if doc.Components.Schemas[ref[1]] == nil {
			t.Fatalf("%s is referred to and not there", ref[1])
		}
	}
	for _, code := range r.api.DocumentedCodes() {
		if !strings.Contains(w.Body.String(), "`"+code+"`") && code != "not_found" && code != "method_not_allowed" {
			t.Errorf("no operation documents %s", code)
		}
	}
	// The contract that clients were given.
	for _, code := range strings.Fields(`invalid_request malformed_json unauthenticated forbidden template_not_found not_reserved already_reserved
		already_due drop_opened template_not_open channel_unavailable idempotency_conflict rate_limited overloaded
		sold_out limit_reached not_started ended`) {
		if !strings.Contains(strings.Join(r.api.DocumentedCodes(), " ")+" ", code+" ") {
			t.Errorf("%s is missing", code)
		}
	}
}

// TestEverySuccessIsDescribed: each successful status with a body has a schema, fields that null
// clears accept null, and the headers of the rate limit are described.
func TestEverySuccessIsDescribed(t *testing.T) {
	r := newFixture(t, nil)
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content, Headers map[string]any }
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Type, Default any
					AnyOf, OneOf  []any
				}
			}
		}
	}
	r.must(json.Unmarshal(r.api.OpenAPI(), &doc))
	for path, methods := range doc.Paths {
		for method, op := range methods {
			for status, answer := range op.Responses {
				if status[0] != '2' {
					continue
				}
				if (len(answer.Content) > 0) == (status == "204") {
					t.Errorf("%s %s: %s has %d kinds of content", method, path, status, len(answer.Content))
				}
				if answer.Headers["RateLimit-Remaining"] == nil {
					t.Errorf("%s %s: %s says nothing of limits", method, path, status)
				}
			}
		}
	}
	change := doc.Components.Schemas["PreferencesChange"].Properties
	if kinds, _ := change["email"].Type.([]any); len(kinds) != 2 || len(change["quiet_hours"].AnyOf) != 2 {
		t.Errorf("null is not said: %v", change)
	}
	if title := doc.Components.Schemas["CampaignPatch"].Properties["title"]; title.Type != nil || len(title.OneOf) != 3 {
		t.Errorf("a text that can be null: %v", title)
	}
	for name, schema := range doc.Components.Schemas {
		for field, p := range schema.Properties {
			if p.Default != nil {
				t.Errorf("%s.%s has a default: generated clients would demand the field", name, field)
			}
		}
	}
}
