package console

import (
	"context"
	"sync"
	"time"
)

// A view is the state of a template's page. Equal views have equal digests.
type view interface{ digest() string }

// hub looks after the templates that somebody watches: one look per template
// and interval, however many people watch it, and none when nobody does. Each
// look is given what the one before has found, the first a zero view.
type hub[S view] struct {
	look  func(ctx context.Context, templateID int64, before S) (S, error)
	every time.Duration

	mu      sync.Mutex
	watched map[int64]*watch[S]
	closed  bool
}

type watch[S view] struct {
	stop    context.CancelFunc
	viewers map[chan S]struct{}
	last    *S
}

func newHub[S view](look func(context.Context, int64, S) (S, error), every time.Duration) *hub[S] {
	return &hub[S]{look: look, every: every, watched: map[int64]*watch[S]{}}
}

// join returns a channel on which the template's state arrives whenever it
// has changed, always the newest; a slow viewer misses states, never the
// last. The channel is closed when the state cannot be had any more. leave
// must be called once.
func (h *hub[S]) join(templateID int64) (states <-chan S, leave func()) {
	ch := make(chan S, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(ch)
		return ch, func() {}
	}
	w := h.watched[templateID]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &watch[S]{stop: stop, viewers: map[chan S]struct{}{}}
		h.watched[templateID] = w
		go h.follow(ctx, templateID, w)
	}
	w.viewers[ch] = struct{}{}
	if w.last != nil {
		ch <- *w.last
	}
	return ch, func() { h.leave(templateID, w, ch) }
}

// peek returns the template's state as it is shown to those who watch it, or
// looks if nobody does.
func (h *hub[S]) peek(ctx context.Context, templateID int64) (S, error) {
	states, leave := h.join(templateID)
	defer leave()
	select {
	case s, ok := <-states:
		if ok {
			return s, nil
		}
		var none S // find out why
		return h.look(ctx, templateID, none)
	case <-ctx.Done():
		var none S
		return none, ctx.Err()
	}
}

func (h *hub[S]) leave(templateID int64, w *watch[S], ch chan S) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(w.viewers, ch)
	if len(w.viewers) == 0 {
		h.drop(templateID, w)
	}
}

// drop ends a watch; mu is held.
func (h *hub[S]) drop(templateID int64, w *watch[S]) {
	w.stop()
	if h.watched[templateID] == w {
		delete(h.watched, templateID)
	}
	for ch := range w.viewers {
		close(ch)
		delete(w.viewers, ch)
	}
}

func (h *hub[S]) follow(ctx context.Context, templateID int64, w *watch[S]) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	var s S
	for {
		next, err := h.look(ctx, templateID, s)
		if ctx.Err() != nil {
			return
		}
		h.mu.Lock()
		if err != nil {
			// Viewers come back, and are told why it is not possible.
			h.drop(templateID, w)
			h.mu.Unlock()
			return
		}
		s = next
		w.tell(s)
		h.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tell passes a state on if it is another than before; mu is held.
func (w *watch[S]) tell(s S) {
	if w.last != nil && (*w.last).digest() == s.digest() {
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

func (h *hub[S]) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for id, w := range h.watched {
		h.drop(id, w)
	}
}
