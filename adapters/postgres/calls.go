package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"
)

// LimitCalls returns a context in which each call to the database ends after
// d: waiting for a connection, and each statement or batch. Work that must
// not end so early is done in a context of its own, as the groups of a
// committer are.
func LimitCalls(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, callLimitKey{}, d)
}

// unlimited takes the limit of [LimitCalls] away and keeps the deadline.
func unlimited(ctx context.Context) context.Context {
	return context.WithValue(ctx, callLimitKey{}, time.Duration(0))
}

// finishing returns a context for a transaction of a caller with limited
// calls: a client that hangs up does not undo what is being stored for it. The
// deadline stays. cancel must be called.
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

// callLimiter applies [LimitCalls]. The driver tells its tracers when a call
// begins and ends, and makes the call in the context that they return.
type callLimiter struct{}

// limitingCalls adds the limiter to what traces, nil if nothing does.
func limitingCalls(tracer pgx.QueryTracer) pgx.QueryTracer {
	if tracer == nil {
		return callLimiter{}
	}
	return multitracer.New(callLimiter{}, tracer)
}

func begin(ctx context.Context) context.Context {
	d := callLimit(ctx)
	if d == 0 {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return context.WithValue(ctx, callCancelKey{}, cancel)
}

func end(ctx context.Context) {
	if callLimit(ctx) == 0 {
		return
	}
	if cancel, ok := ctx.Value(callCancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

// TraceQueryStart is part of [pgx.QueryTracer].
func (callLimiter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return begin(ctx)
}

// TraceQueryEnd is part of [pgx.QueryTracer].
func (callLimiter) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) { end(ctx) }

// TraceBatchStart is part of [pgx.BatchTracer].
func (callLimiter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return begin(ctx)
}

// TraceBatchQuery is part of [pgx.BatchTracer].
func (callLimiter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd is part of [pgx.BatchTracer].
func (callLimiter) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) { end(ctx) }

// TraceAcquireStart is part of [pgxpool.AcquireTracer].
func (callLimiter) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	return begin(ctx)
}

// TraceAcquireEnd is part of [pgxpool.AcquireTracer].
func (callLimiter) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireEndData) {
	end(ctx)
}
