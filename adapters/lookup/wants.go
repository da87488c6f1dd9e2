package lookup

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/event/hook"
)

const (
	// wantsLife is how long the types are reused. After the registration of an endpoint, events
	// may be missing for this time.
	wantsLife = time.Second
	// wantsPatience bounds one load, in whose time a request may wait.
	wantsPatience = 200 * time.Millisecond
)

// Wants caches the types of events for which some shop has an endpoint. No event of another type
// is written.
type Wants struct {
	// Load returns the types, or that some shop wants all of them.
	Load func(ctx context.Context) (types []hook.Type, all bool, err error)

	mu    sync.Mutex
	until time.Time
	types []hook.Type
	all   bool
}

// Any reports whether some shop wants one of the types. If the types cannot be loaded, Any
// returns true: the writer of the events then leaves out unwanted events.
func (w *Wants) Any(ctx context.Context, types ...hook.Type) bool {
	chosen, all := w.known(ctx)
	return all || slices.ContainsFunc(types, func(t hook.Type) bool { return slices.Contains(chosen, t) })
}

// None reports whether no shop wants any event. If the types cannot be loaded, None returns
// false.
func (w *Wants) None(ctx context.Context) bool {
	chosen, all := w.known(ctx)
	return !all && len(chosen) == 0
}

// known returns the types, or that some shop wants all of them.
func (w *Wants) known(ctx context.Context) (types []hook.Type, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); !now.Before(w.until) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wantsPatience)
		defer cancel()
		chosen, all, err := w.Load(ctx)
		if err != nil {
			w.types, w.all, w.until = nil, true, now.Add(wantsLife)
			return nil, true
		}
		w.types, w.all, w.until = chosen, all, now.Add(wantsLife)
	}
	return w.types, w.all
}
