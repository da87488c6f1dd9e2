// Package detach lets a write continue after its caller hangs up. If a write were
// cancelled half-way, neither the caller nor the audit log would know whether it
// was stored.
package detach

import (
	"context"
	"time"
)

// Longest bounds a write whose caller set no deadline.
const Longest = 30 * time.Second

// Context returns a context with the values of ctx that is not cancelled with ctx.
// It ends at the deadline of ctx or, without a deadline, after [Longest]. Call
// cancel when the write has returned.
func Context(ctx context.Context) (detached context.Context, cancel context.CancelFunc) {
	// A context derived from a detached context may end sooner, unless it only adds
	// values.
	if self, ok := ctx.Value(Self{}).(context.Context); ok && (self == ctx || self.Done() == ctx.Done()) {
		return ctx, func() {}
	}
	detached = context.WithoutCancel(ctx)
	if deadline, ends := ctx.Deadline(); ends {
		return context.WithDeadline(detached, deadline)
	}
	return context.WithTimeout(detached, Longest)
}

// Self is the key under which a detached context with a deadline returns itself.
// [Context] returns such a context unchanged, so that a request needs one timer only.
type Self struct{}

// Write calls write with the context that [Context] returns, and returns its
// results.
func Write[T any](ctx context.Context, write func(context.Context) (T, error)) (T, error) {
	detached, cancel := Context(ctx)
	defer cancel()
	return write(detached)
}
