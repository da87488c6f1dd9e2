package console

import (
	"context"
	"sync"
	"time"
)

// recent is something that is looked at for everybody at once: whoever asks
// within its life gets what the last look found. Nobody asks, nobody looks.
type recent[T any] struct {
	life time.Duration
	look func(context.Context) (T, error)

	mu    sync.Mutex
	at    time.Time
	value T
}

// newRecent returns what look finds, which is believed for life.
func newRecent[T any](life time.Duration, look func(context.Context) (T, error)) *recent[T] {
	return &recent[T]{life: life, look: look}
}

// get returns what is known, or looks. Those who ask meanwhile wait for it.
func (r *recent[T]) get(ctx context.Context) (T, error) {
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

// forget makes the next who asks look.
func (r *recent[T]) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = time.Time{}
}
