package telemetry

import (
	"context"
	"net/http"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// LinkKey is the key in a carrier that replaces "traceparent" when the work may begin long after
// its cause. The work then has a trace of its own, linked to the trace of the cause.
const LinkKey = "tracelink"

// probes are asked every few seconds by machines.
var probes = []string{"/livez", "/readyz", "/metrics"}

// Request begins the span of an HTTP request; done ends it. The span continues the client's own
// trace. Probes are not traced.
func (t *Tracing) Request(r *http.Request) (ctx context.Context, done func(method, route string, status int)) {
	if t == nil || slices.Contains(probes, r.URL.Path) {
		return r.Context(), func(string, string, int) {}
	}
	ctx = propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(method, route string, status int) {
		if span.IsRecording() {
			span.SetName(method + " " + route)
			span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
				attribute.Int("http.response.status_code", status))
			if status >= 500 {
				span.SetStatus(codes.Error, "")
			}
		}
		span.End()
	}
}

// Event begins the span of an event's handler in the trace that metadata names; done ends it. If
// metadata names no trace, Event begins no span.
func (t *Tracing) Event(ctx context.Context, name string, metadata map[string]string) (_ context.Context, done func(error)) {
	if t == nil || metadata["traceparent"] == "" {
		return ctx, func(error) {}
	}
	return t.consume(extract(ctx, metadata), name)
}

// Task begins the span of a task's execution, in the trace that headers name or in a trace of
// its own; done ends it.
func (t *Tracing) Task(ctx context.Context, name string, headers map[string]string) (_ context.Context, done func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	if cause := headers[LinkKey]; cause != "" {
		earlier := trace.SpanContextFromContext(extract(ctx, map[string]string{"traceparent": cause}))
		return t.consume(ctx, name, trace.WithLinks(trace.Link{SpanContext: earlier}))
	}
	return t.consume(extract(ctx, headers), name)
}

func extract(ctx context.Context, carrier map[string]string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(carrier))
}

func (t *Tracing) consume(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, func(error)) {
	ctx, span := t.tracer.Start(ctx, name, append(options, trace.WithSpanKind(trace.SpanKindConsumer))...)
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}
