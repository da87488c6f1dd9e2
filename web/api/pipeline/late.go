package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/detach"
)

// timely is [context.WithTimeout] for requests that are usually answered before anything waits for
// the end of the context. The first call of Done or Err sets the timer and subscribes to the
// cancellation of ctx. Before that call the context costs some dozen nanoseconds instead of some
// hundreds. Call cancel when the request has been answered.
func timely(ctx context.Context, d time.Duration) (_ context.Context, cancel context.CancelFunc) {
	l := &late{parent: ctx, deadline: time.Now().Add(d)}
	if sooner, ends := ctx.Deadline(); ends && sooner.Before(l.deadline) {
		l.deadline = sooner
	}
	return l, l.end
}

// detached returns a context like [timely] that is not cancelled with ctx.
func detached(ctx context.Context, d time.Duration) (_ context.Context, cancel context.CancelFunc) {
	l := &lateDetached{late{parent: context.WithoutCancel(ctx), deadline: time.Now().Add(d)}}
	return l, l.end
}

type lateDetached struct{ late }

// Value is part of [context.Context].
func (l *lateDetached) Value(key any) any {
	if key == (detach.Self{}) {
		return l
	}
	return l.late.Value(key)
}

// late is a context whose timer is set by the first call of Done or Err.
type late struct {
	parent   context.Context
	deadline time.Time
	timed    atomic.Pointer[timer] // nil = not asked for yet

	mu    sync.Mutex
	ended bool
}

type timer struct {
	context.Context
	cancel context.CancelFunc
}

// Deadline is part of [context.Context].
func (l *late) Deadline() (time.Time, bool) { return l.deadline, true }

// Done is part of [context.Context].
func (l *late) Done() <-chan struct{} { return l.timer().Done() }

// Err is part of [context.Context].
func (l *late) Err() error { return l.timer().Err() }

// Value is part of [context.Context]. After the timer is set, the timer's context answers: derived
// contexts find it by this call.
func (l *late) Value(key any) any {
	if t := l.timed.Load(); t != nil {
		return t.Value(key)
	}
	return l.parent.Value(key)
}

// timer returns the context with the deadline; the first call makes it. If it is made after both
// the deadline and the end of the parent, its error is the parent's, whichever came first.
func (l *late) timer() *timer {
	if t := l.timed.Load(); t != nil {
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.timed.Load(); t != nil {
		return t
	}
	t := new(timer)
	if l.ended {
		t.Context, t.cancel = context.WithCancel(l.parent)
		t.cancel()
	} else {
		t.Context, t.cancel = context.WithDeadline(l.parent, l.deadline)
	}
	l.timed.Store(t)
	return t
}

// end cancels the timer's context, or marks the context as ended if the timer is not set yet.
func (l *late) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if t := l.timed.Load(); t != nil {
		t.cancel()
	}
}
