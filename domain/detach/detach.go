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
	if w, ok := ctx.Value(withinKey{}).(*within); ok && w.done == ctx.Done() {
		return ctx, func() {}
	}
	detached = context.WithoutCancel(ctx)
	if deadline, ends := ctx.Deadline(); ends {
		return context.WithDeadline(detached, deadline)
	}
	return context.WithTimeout(detached, Longest)
}

// within tells the contexts that [Within] made, and those that only add values to
// one, from those that can end sooner.
type within struct{ done <-chan struct{} }

type withinKey struct{}

// Within returns a context with the values of ctx that is not cancelled with it
// and ends after d. [Context] returns it as it is, so that a request needs one
// timer. Call cancel when the request has been answered.
func Within(ctx context.Context, d time.Duration) (detached context.Context, cancel context.CancelFunc) {
	w := &within{}
	detached, cancel = context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), withinKey{}, w), d)
	w.done = detached.Done()
	return detached, cancel
}

// Write calls write with the context that [Context] returns, and returns its
// results.
func Write[T any](ctx context.Context, write func(context.Context) (T, error)) (T, error) {
	detached, cancel := Context(ctx)
	defer cancel()
	return write(detached)
}
