// Package telemetry traces one piece of work through both programs: from a
// request through events and tasks to the call of a provider. Spans go to an
// OpenTelemetry collector over OTLP/HTTP; between processes the context travels
// as W3C traceparent, in headers and never in payloads.
//
// A nil [Tracing] does nothing and costs nothing. No attribute identifies a
// person: no user ids, addresses, contacts or texts.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/extra/redisotel/v9"
	goredis "github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// shutdownFor is how long the last spans may take to be exported.
const shutdownFor = 5 * time.Second

// Options configure [Start].
type Options struct {
	// Service is the program's name.
	Service string
	// Endpoint is the collector's base address, such as http://localhost:4318. Spans are posted
	// to /v1/traces below this address. An empty Endpoint turns tracing off.
	Endpoint string
	// Ratio is the share of requests that is traced, 0…1. Work that no request caused (timers,
	// deliveries) is always traced.
	Ratio float64
	Log   *slog.Logger
}

// Tracing makes spans and sends them away in the background. All its methods
// may be called on nil.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Start returns the tracing of this process, nil if o names no endpoint. Start does not connect:
// if the collector is unavailable, spans are dropped, and nothing else is affected. The
// exporter's other settings (OTEL_EXPORTER_OTLP_HEADERS, …_TIMEOUT, OTEL_RESOURCE_ATTRIBUTES)
// are read from the environment as OpenTelemetry specifies.
func Start(ctx context.Context, o Options) (*Tracing, error) {
	if o.Endpoint == "" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/")+"/v1/traces"))
	if err != nil {
		return nil, fmt.Errorf("trace exporter: %w", err)
	}
	host, _ := os.Hostname()
	about, err := resource.New(ctx, resource.WithFromEnv(), resource.WithAttributes(
		attribute.String("service.name", o.Service), attribute.String("service.namespace", "dropbell"),
		attribute.String("service.instance.id", fmt.Sprintf("%s-%d", host, os.Getpid()))))
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("trace resource: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(&patient{SpanExporter: exporter, log: o.Log}), sdk.WithResource(about),
		sdk.WithSampler(newSampler(o.Ratio)))
	return &Tracing{provider, provider.Tracer("dropbell")}, nil
}

// Shutdown exports the remaining spans, for at most five seconds.
func (t *Tracing) Shutdown() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownFor)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Queries returns a tracer of SQL statements; nil if t is nil. Statements are traced only as
// part of a traced request or task, with their text and without their arguments.
func (t *Tracing) Queries() pgx.QueryTracer {
	if t == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(t.provider), otelpgx.WithDisableConnectionDetailsInAttributes(),
		otelpgx.WithDisableAcquireTracer())
}

// Redis traces the client's commands by name, without their arguments.
func (t *Tracing) Redis(client goredis.UniversalClient) error {
	if t == nil {
		return nil
	}
	return redisotel.InstrumentTracing(client, redisotel.WithTracerProvider(t.provider), redisotel.WithDBStatement(false),
		redisotel.WithCallerEnabled(false), redisotel.WithDialFilter(true))
}
