package telemetry_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collection is an OpenTelemetry collector that keeps the spans it gets.
type collection struct {
	URL string

	mu    sync.Mutex
	spans []seen
}

// seen is one span as it was received.
type seen struct {
	service string
	*otlp.Span
}

func (s seen) trace() string { return hex.EncodeToString(s.TraceId) }

func (s seen) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			if a.Value.GetStringValue() != "" {
				return a.Value.GetStringValue()
			}
			return fmt.Sprint(a.Value.GetIntValue())
		}
	}
	return ""
}

func collect(t testing.TB) *collection {
	t.Helper()
	c := &collection{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *collection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(raw, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		service := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, seen{service, s})
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// all returns the spans received so far.
func (c *collection) all() []seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]seen(nil), c.spans...)
}

// find waits for a span of the service whose name begins so and that suits.
func (c *collection) find(t testing.TB, service, name string, suits func(seen) bool) seen {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for time.Now().Before(deadline) {
		for _, s := range c.all() {
			if s.service == service && strings.HasPrefix(s.Name, name) && suits(s) {
				return s
			}
		}
		<-time.After(20 * time.Millisecond)
	}
	var names []string
	for _, s := range c.all() {
		names = append(names, s.service+": "+s.Name+" in "+s.trace())
	}
	t.Fatalf("no span %q of %s among\n%s", name, service, strings.Join(names, "\n"))
	return seen{}
}

func (c *collection) named(name string) []seen {
	var list []seen
	for _, s := range c.all() {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

func anySpan(seen) bool { return true }

func within(trace string) func(seen) bool { return func(s seen) bool { return s.trace() == trace } }
