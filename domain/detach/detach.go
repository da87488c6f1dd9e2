// Package detach lets a write continue when its caller hangs up. A write that is
// dropped half-way leaves the caller, and the audit log, without knowing whether
// it happened.
package detach

import (
	"context"
	"time"
)

// Longest bounds a write whose caller set no deadline.
const Longest = 30 * time.Second

// Context returns a context with the values of ctx that is not cancelled with
// it. It ends at the deadline of ctx or, if there is none, after [Longest].
// Call cancel when the write has returned.
func Context(ctx context.Context) (detached context.Context, cancel context.CancelFunc) {
	// A context derived from a detached one may end sooner, except one that only adds values.
	if self, ok := ctx.Value(Self{}).(context.Context); ok && (self == ctx || self.Done() == ctx.Done()) {
		return ctx, func() {}
	}
	detached = context.WithoutCancel(ctx)
	if deadline, ends := ctx.Deadline(); ends {
		return context.WithDeadline(detached, deadline)
	}
	return context.WithTimeout(detached, Longest)
}

// Self is the key under which a context that is detached already, and ends in time by
// itself, returns itself. [Context] returns such a context as it is, so that a request
// needs one timer.
type Self struct{}

// Write calls write with the context that [Context] returns, and returns its
// results.
func Write[T any](ctx context.Context, write func(context.Context) (T, error)) (T, error) {
	detached, cancel := Context(ctx)
	defer cancel()
	return write(detached)
}
