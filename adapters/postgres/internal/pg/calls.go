package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"
)

// LimitCalls returns a context in which each database call ends after d. A call
// is a statement, a batch, or the wait for a connection. Work that must not end
// so early, such as the groups of a committer, runs in a context of its own.
func LimitCalls(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, callLimitKey{}, d)
}

// Unlimited removes the limit of [LimitCalls] from the context; the deadline
// stays.
func Unlimited(ctx context.Context) context.Context {
	return context.WithValue(ctx, callLimitKey{}, time.Duration(0))
}

// finishing returns the context for a transaction of a caller with limited calls.
// A client that disconnects does not cancel this context, so the transaction
// still completes. The deadline stays. cancel must be called.
func finishing(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	deadline, ends := ctx.Deadline()
	if callLimit(ctx) == 0 || !ends || ctx.Err() != nil {
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}

type (
	callLimitKey  struct{}
	callCancelKey struct{}
)

func callLimit(ctx context.Context) time.Duration {
	d, _ := ctx.Value(callLimitKey{}).(time.Duration)
	return d
}

// callLimiter applies [LimitCalls] as a tracer: the driver tells its tracers when
// a call begins and ends, and makes the call in the context that they return.
type callLimiter struct {
	// most is the limit of a statement or batch whose context has no limit or a
	// longer limit; 0 = no limit.
	most time.Duration
	// failed is called with the errors of statements; nil = not called.
	failed func(error)
}

// with combines the limiter with tracer, which may be nil.
func (l callLimiter) with(tracer pgx.QueryTracer) pgx.QueryTracer {
	if tracer == nil {
		return l
	}
	return multitracer.New(l, tracer)
}

func (l callLimiter) begin(ctx context.Context) context.Context {
	d := callLimit(ctx)
	if l.most > 0 && (d == 0 || d > l.most) {
		d = l.most
	}
	return within(ctx, d)
}

// within returns a context that ends after d, or ctx if d is 0.
func within(ctx context.Context, d time.Duration) context.Context {
	if d == 0 {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return context.WithValue(ctx, callCancelKey{}, cancel)
}

func (l callLimiter) end(ctx context.Context, err error) {
	if err != nil && l.failed != nil {
		l.failed(err)
	}
	if l.most > 0 || callLimit(ctx) > 0 {
		end(ctx)
	}
}

func end(ctx context.Context) {
	if cancel, ok := ctx.Value(callCancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart is part of [pgx.QueryTracer].
func (l callLimiter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return l.begin(ctx)
}

// TraceQueryEnd is part of [pgx.QueryTracer].
func (l callLimiter) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryEndData) {
	l.end(ctx, d.Err)
}

// TraceBatchStart is part of [pgx.BatchTracer].
func (l callLimiter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return l.begin(ctx)
}

// TraceBatchQuery is part of [pgx.BatchTracer].
func (callLimiter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is part of [pgx.BatchTracer].
func (l callLimiter) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchEndData) {
	l.end(ctx, d.Err)
}

// TraceAcquireStart is part of [pgxpool.AcquireTracer].
func (callLimiter) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	return within(ctx, callLimit(ctx))
}

// TraceAcquireEnd is part of [pgxpool.AcquireTracer].
func (callLimiter) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireEndData) {
	if callLimit(ctx) > 0 {
		end(ctx)
	}
}
