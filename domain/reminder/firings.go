package reminder

import (
	"context"
	"sync"
)

// firings bounds the slots that one process cuts at a time. It also remembers which slots the
// process has cut, so that the timers of slots that were cut together end at once. The zero value
// is ready for use.
type firings struct {
	once   sync.Once
	places chan struct{}
	huge   chan struct{}

	mu    sync.Mutex
	known map[int64]struct{} // being cut here, or cut
}

// mostKnown bounds how many slots are remembered. For a forgotten slot the store is asked.
const mostKnown = 20_000

func (f *firings) prepare(places int) {
	f.once.Do(func() {
		f.places, f.huge = make(chan struct{}, max(1, places)), make(chan struct{}, 1)
	})
}

// enter waits for one of the places. release frees it, once however often it is called.
func (f *firings) enter(ctx context.Context, places int) (release func(), err error) {
	f.prepare(places)
	return take(ctx, f.places)
}

// enterHuge waits until no other huge slot is cut here.
func (f *firings) enterHuge(ctx context.Context) (release func(), err error) {
	return take(ctx, f.huge)
}

func take(ctx context.Context, places chan struct{}) (release func(), err error) {
	select {
	case places <- struct{}{}:
		return sync.OnceFunc(func() { <-places }), nil
	case <-ctx.Done():
		return func() {}, ctx.Err()
	}
}

// cutHere reports whether this process cuts the slot or has cut it.
func (f *firings) cutHere(slotID int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, yes := f.known[slotID]
	return yes
}

// remember notes slots that this process has begun to cut together.
func (f *firings) remember(cuts []Cut) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known)+len(cuts) > mostKnown {
		clear(f.known)
	}
	if f.known == nil {
		f.known = map[int64]struct{}{}
	}
	for _, c := range cuts {
		f.known[c.ID] = struct{}{}
	}
}

// forget removes slots whose cutting did not end in this process: their next timer asks the store
// again.
func (f *firings) forget(cuts []Cut) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range cuts {
		delete(f.known, c.ID)
	}
}
