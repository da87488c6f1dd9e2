package lookup

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/hook"
)

const (
	// wantsLife is for how long the types are reused, so that after an endpoint was
	// registered the events of at most that long are missing.
	wantsLife = time.Second
	// wantsPatience bounds one load, in whose time a request may wait.
	wantsPatience = 200 * time.Millisecond
)

// Wants caches which types of events some shop wants to be told of. Without a
// shop that does nothing is written for it.
type Wants struct {
	// Load returns the types, or that some shop wants all of them.
	Load func(ctx context.Context) (types []hook.Type, all bool, err error)

	mu    sync.Mutex
	until time.Time
	types []hook.Type
	all   bool
}

// Any reports whether some shop wants one of the types. If that cannot be told it is
// true: the writer of the events leaves out those that are not wanted.
func (w *Wants) Any(ctx context.Context, types ...hook.Type) bool {
	chosen, all := w.known(ctx)
	return all || slices.ContainsFunc(types, func(t hook.Type) bool { return slices.Contains(chosen, t) })
}

// None reports whether no shop wants to be told of anything. If that cannot be
// told it is false.
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
