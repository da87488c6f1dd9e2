package asynq

import (
	"context"

	"dropbell/domain/task"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceOf returns the headers by which a task's execution joins the trace of the caller that
// enqueued the task, nil if the caller is not traced. A task for a later instant gets a linked
// trace of its own, because it may run days later: the trace of a late reminder should not be
// the trace of the request that published its template.
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
