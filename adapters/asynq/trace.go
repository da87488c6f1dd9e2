package asynq

import (
	"context"

	"dropbell/domain/task"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceOf returns the headers by which a task's execution joins the trace of
// whoever queued it, nil if that is not traced. A task for later gets a trace
// of its own that is linked: days may lie between, and who looks for a late
// reminder does not look below the request that published its template.
func traceOf(ctx context.Context, t task.Task) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if t.At.IsZero() {
		return carrier
	}
	return map[string]string{"tracelink": carrier["traceparent"]}
}
