package telemetry

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"dropbell/domain/delivery"
)

// Sender returns s with a span around every call of the provider, or s itself
// if t is nil.
func (t *Tracing) Sender(s delivery.Sender) delivery.Sender {
	if t == nil {
		return s
	}
	return tracedSender{s, t.tracer}
}

type tracedSender struct {
	delivery.Sender
	tracer trace.Tracer
}

// Send calls Send of the wrapped sender in a span.
func (s tracedSender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	ctx, span := s.tracer.Start(ctx, "send "+s.Channel().String(), trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	results := s.Sender.Send(ctx, messages)
	if span.IsRecording() {
		span.SetAttributes(s.describe(messages)...)
		outcome(span, results)
	}
	return results
}

func (s tracedSender) describe(messages []delivery.Message) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("dropbell.channel", s.Channel().String()), attribute.Int("dropbell.messages", len(messages))}
	if len(messages) == 0 || messages[0].Subject == nil {
		return list
	}
	about := messages[0].Subject // the same for all
	return append(list, attribute.String("dropbell.kind", string(about.Kind)), attribute.Int("dropbell.slot", about.Slot),
		attribute.String("dropbell.template_id", strconv.FormatInt(about.TemplateID, 10)))
}

// outcome counts the results by class. A call that reached no recipient is marked as an error.
func outcome(span trace.Span, results []delivery.Result) {
	var counts [delivery.Permanent + 1]int
	for _, r := range results {
		counts[r.Status]++
	}
	span.SetAttributes(attribute.Int("dropbell.delivered", counts[delivery.Delivered]), attribute.Int("dropbell.transient", counts[delivery.Transient]),
		attribute.Int("dropbell.throttled", counts[delivery.Throttled]), attribute.Int("dropbell.permanent", counts[delivery.Permanent]))
	if len(results) > 0 && counts[delivery.Delivered] == 0 {
		span.SetStatus(codes.Error, "nobody was reached")
	}
}
