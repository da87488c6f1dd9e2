package asynq

import (
	"context"

	"dropbell/domain/task"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceOf returns the headers by which a task's execution joins the trace of the
// caller that enqueued it, nil if that is not traced. A task for later gets a
// linked trace of its own: it may run days later, and a trace that a late
// reminder is looked up in should not be the one of the request that published
// its template.
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
