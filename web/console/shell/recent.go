package shell

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Recent is a value that is loaded once for concurrent and recent requests: a request within the
// value's life gets the result of the last load. Without requests the value is not loaded.
type Recent[T any] struct {
	life   time.Duration
	look   func(context.Context) (T, error)
	flight singleflight.Group

	mu    sync.Mutex
	at    time.Time
	value T
	// forgotten counts calls of Forget: the result of a load that began before the last call is not
	// cached.
	forgotten int
}

// NewRecent returns a value that look loads and that is cached for life.
func NewRecent[T any](life time.Duration, look func(context.Context) (T, error)) *Recent[T] {
	return &Recent[T]{life: life, look: look}
}

// Get returns the cached value, or loads it. Concurrent requests wait for the same load and share
// its error. A request whose context ends returns at once. The load itself ends after
// [WriteTimeout] at the latest.
func (r *Recent[T]) Get(ctx context.Context) (T, error) {
	value, turn, known := r.known()
	if known {
		return value, nil
	}
	looked := r.flight.DoChan("", func() (any, error) { return r.attempt(ctx, turn) })
	select {
	case res := <-looked:
		value, _ = res.Val.(T)
		return value, res.Err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// Look loads the value for this request alone, and does not change the cached value.
func (r *Recent[T]) Look(ctx context.Context) (T, error) { return r.look(ctx) }

func (r *Recent[T]) known() (value T, turn int, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < r.life {
		return r.value, r.forgotten, true
	}
	return value, r.forgotten, false
}

// attempt loads the value for all waiting requests. It is not cancelled with the first request. It
// recovers a panic, which no caller would catch and which would end the program.
func (r *Recent[T]) attempt(ctx context.Context, turn int) (value T, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), WriteTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("looking: panic: %v\n%s", p, debug.Stack())
		}
	}()
	value, err = r.look(ctx)
	if err != nil {
		return value, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forgotten == turn {
		r.value, r.at = value, time.Now()
	}
	return value, nil
}

// Forget makes the next request load the value, even if a load is under way.
func (r *Recent[T]) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = time.Time{}
	r.forgotten++
	r.flight.Forget("")
}
