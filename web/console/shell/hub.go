package shell

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// A view is the state of a watched object. Equal views have equal digests.
type view interface{ Digest() string }

// Hub polls states for their viewers: one look per key and interval, whatever the number of
// viewers, and no look without viewers. Each look gets the result of the previous look; the first
// look gets a zero view.
type Hub[K comparable, S view] struct {
	look func(ctx context.Context, key K, before S) (S, error)
	// every returns the delay after a look.
	every func(S) time.Duration

	mu      sync.Mutex
	watched map[K]*watch[S]
	closed  bool
}

type watch[S view] struct {
	stop    context.CancelFunc
	viewers map[chan S]struct{}
	last    *S
	err     error // why there are no more states, if the last look failed
}

// NewHub returns a hub that polls with look. every returns the delay after each state.
func NewHub[K comparable, S view](look func(context.Context, K, S) (S, error), every func(S) time.Duration) *Hub[K, S] {
	return &Hub[K, S]{look: look, every: every, watched: map[K]*watch[S]{}}
}

// Always returns the same delay after every look.
func Always[S view](d time.Duration) func(S) time.Duration { return func(S) time.Duration { return d } }

// Join returns a channel that receives the state whenever it has changed, always the newest state.
// A slow viewer may miss states, but never the last state. The channel is closed when the state can
// no longer be read. leave must be called once.
func (h *Hub[K, S]) Join(key K) (states <-chan S, leave func()) {
	ch, w := h.enter(key)
	return ch, func() { h.leave(key, w, ch) }
}

// enter is join; the watch is empty if the hub is closed.
func (h *Hub[K, S]) enter(key K) (chan S, *watch[S]) {
	ch := make(chan S, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(ch)
		return ch, &watch[S]{stop: func() {}}
	}
	w := h.watched[key]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &watch[S]{stop: stop, viewers: map[chan S]struct{}{}}
		h.watched[key] = w
		go h.follow(ctx, key, w)
	}
	w.viewers[ch] = struct{}{}
	if w.last != nil {
		ch <- *w.last
	}
	return ch, w
}

// Peek returns the state as its viewers see it, or looks if there are none.
func (h *Hub[K, S]) Peek(ctx context.Context, key K) (S, error) {
	states, w := h.enter(key)
	defer h.leave(key, w, states)
	var none S
	select {
	case s, ok := <-states:
		if ok {
			return s, nil
		}
	case <-ctx.Done():
		return none, ctx.Err()
	}
	if err := h.failure(w); err != nil {
		return none, err // all callers that waited for this look get its error
	}
	return h.attempt(ctx, key, none) // the hub is closed
}

func (h *Hub[K, S]) failure(w *watch[S]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return w.err
}

func (h *Hub[K, S]) ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// attempt calls look and turns a panic into an error, because no handler would recover the panic.
func (h *Hub[K, S]) attempt(ctx context.Context, key K, before S) (s S, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("looking at %v: panic: %v\n%s", key, p, debug.Stack())
		}
	}()
	return h.look(ctx, key, before)
}

func (h *Hub[K, S]) leave(key K, w *watch[S], ch chan S) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(w.viewers, ch)
	if len(w.viewers) == 0 {
		h.drop(key, w)
	}
}

// drop ends a watch; mu is held.
func (h *Hub[K, S]) drop(key K, w *watch[S]) {
	w.stop()
	if h.watched[key] == w {
		delete(h.watched, key)
	}
	for ch := range w.viewers {
		close(ch)
		delete(w.viewers, ch)
	}
}

func (h *Hub[K, S]) follow(ctx context.Context, key K, w *watch[S]) {
	var s S
	for {
		next, err := h.attempt(ctx, key, s)
		if ctx.Err() != nil {
			return
		}
		h.mu.Lock()
		if err != nil {
			// Viewers reconnect, and get the error.
			w.err = err
			h.drop(key, w)
			h.mu.Unlock()
			return
		}
		s = next
		w.tell(s)
		h.mu.Unlock()
		select {
		case <-time.After(h.every(s)):
		case <-ctx.Done():
			return
		}
	}
}

// tell sends the state if it differs from the previous state; mu is held.
func (w *watch[S]) tell(s S) {
	if w.last != nil && (*w.last).Digest() == s.Digest() {
		return
	}
	w.last = &s
	for ch := range w.viewers {
		select {
		case <-ch: // the state before was not taken yet
		default:
		}
		ch <- s
	}
}

// Watching returns how many keys have viewers.
func (h *Hub[K, S]) Watching() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watched)
}

// Close ends every watch; nothing can be watched from then on.
func (h *Hub[K, S]) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for key, w := range h.watched {
		h.drop(key, w)
	}
}
