package shell

import (
	"context"
	"sync"
	"time"
)

// Recent is something that is looked at for everybody at once: whoever asks
// within its life gets what the last look found. Nobody asks, nobody looks.
type Recent[T any] struct {
	life time.Duration
	look func(context.Context) (T, error)

	mu    sync.Mutex
	at    time.Time
	value T
}

// NewRecent returns what look finds, which is believed for life.
func NewRecent[T any](life time.Duration, look func(context.Context) (T, error)) *Recent[T] {
	return &Recent[T]{life: life, look: look}
}

// Get returns what is known, or looks. Those who ask meanwhile wait for it.
func (r *Recent[T]) Get(ctx context.Context) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < r.life {
		return r.value, nil
	}
	value, err := r.look(ctx)
	if err == nil {
		r.value, r.at = value, time.Now()
	}
	return value, err
}

// Forget makes the next who asks look.
func (r *Recent[T]) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = time.Time{}
}
