package console

import (
	"context"
	"sync"
	"time"
)

// hub looks after the templates that somebody watches: one look per template
// and interval, however many people watch it, and none when nobody does.
type hub struct {
	look  func(ctx context.Context, templateID int64) (snapshot, error)
	every time.Duration

	mu      sync.Mutex
	watched map[int64]*watch
	closed  bool
}

type watch struct {
	stop    context.CancelFunc
	viewers map[chan snapshot]struct{}
	last    *snapshot
}

func newHub(look func(context.Context, int64) (snapshot, error), every time.Duration) *hub {
	return &hub{look: look, every: every, watched: map[int64]*watch{}}
}

// join returns a channel on which the template's state arrives whenever it
// has changed, always the newest; a slow viewer misses states, never the
// last. The channel is closed when the state cannot be had any more. leave
// must be called once.
func (h *hub) join(templateID int64) (states <-chan snapshot, leave func()) {
	ch := make(chan snapshot, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(ch)
		return ch, func() {}
	}
	w := h.watched[templateID]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &watch{stop: stop, viewers: map[chan snapshot]struct{}{}}
		h.watched[templateID] = w
		go h.follow(ctx, templateID, w)
	}
	w.viewers[ch] = struct{}{}
	if w.last != nil {
		ch <- *w.last
	}
	return ch, func() { h.leave(templateID, w, ch) }
}

func (h *hub) leave(templateID int64, w *watch, ch chan snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(w.viewers, ch)
	if len(w.viewers) == 0 {
		h.drop(templateID, w)
	}
}

// drop ends a watch; mu is held.
func (h *hub) drop(templateID int64, w *watch) {
	w.stop()
	if h.watched[templateID] == w {
		delete(h.watched, templateID)
	}
	for ch := range w.viewers {
		close(ch)
		delete(w.viewers, ch)
	}
}

func (h *hub) follow(ctx context.Context, templateID int64, w *watch) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		s, err := h.look(ctx, templateID)
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
func (w *watch) tell(s snapshot) {
	if w.last != nil && w.last.sum == s.sum {
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

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for id, w := range h.watched {
		h.drop(id, w)
	}
}
