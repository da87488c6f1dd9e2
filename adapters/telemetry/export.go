package telemetry

import (
	"context"
	"log/slog"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// quiet is how long after a log line about failed exports no further such line is written.
const quiet = time.Minute

// patient is an exporter that logs its failures at most once a minute. The library would report
// them to a process-wide error handler, which bypasses the log.
type patient struct {
	sdk.SpanExporter
	log    *slog.Logger
	toldAt time.Time // needs no lock: exports run one at a time
}

// ExportSpans never fails: spans that cannot be delivered are gone either way.
func (p *patient) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := p.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && time.Since(p.toldAt) > quiet {
		p.toldAt = time.Now()
		p.log.Warn("traces cannot be exported", "spans", len(spans), "error", err)
	}
	return nil
}
