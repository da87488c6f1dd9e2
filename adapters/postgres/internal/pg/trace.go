package pg

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// TraceOf returns the W3C traceparent of ctx, "" if ctx is not traced. Events
// carry the traceparent, so that their handlers belong to the same trace.
func TraceOf(ctx context.Context) string {
	if !sampled(ctx) {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

func sampled(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsSampled() }
