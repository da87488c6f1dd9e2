package telemetry

import (
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// sampler decides at a trace's root. A request is sampled by its trace id, whatever its caller
// decided; otherwise callers could have everything traced. A task without a parent is traced:
// there are a few such tasks per slot. A call without a parent (polling) is not traced.
type sampler struct {
	requests, inherited sdk.Sampler
}

func newSampler(ratio float64) sampler {
	return sampler{requests: sdk.TraceIDRatioBased(ratio), inherited: sdk.ParentBased(sdk.AlwaysSample())}
}

// ShouldSample is part of the library's interface.
func (s sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	switch {
	case p.Kind == trace.SpanKindServer:
		return s.requests.ShouldSample(p)
	case p.Kind == trace.SpanKindClient && !trace.SpanContextFromContext(p.ParentContext).IsValid():
		return sdk.NeverSample().ShouldSample(p)
	}
	return s.inherited.ShouldSample(p)
}

// Description is part of the library's interface.
func (s sampler) Description() string { return "dropbell(" + s.requests.Description() + ")" }
