package lookup

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"dropbell/domain/template"
)

const (
	// roundEvery is the shortest time between the beginnings of two rounds. It limits the cost
	// of many refused requests to one statement per interval and process, for any number of
	// requests and templates. A request waits at most one roundEvery.
	roundEvery = 5 * time.Millisecond
	// maxRound is the largest number of templates in one statement.
	maxRound = 1000
)

// A round is one reading of the templates that were asked for before it began.
type round struct {
	ids   map[int64]struct{}
	done  chan struct{} // closed when found and err are set
	found map[int64]*template.Template
	err   error
}

// rounds are the readings of one cache. At most one round runs. Requests that arrive during a
// round share the next round.
type rounds struct {
	mu      sync.Mutex
	waiting []*round // that have not begun, in order; the last may be joined
	running bool
}

// Current returns the template as it was stored at some moment after the call began, or
// [template.ErrNotFound]. Concurrent calls share one statement. Callers must not change the
// result.
func (t *Templates) Current(ctx context.Context, id int64) (*template.Template, error) {
	if id <= 0 {
		return nil, template.ErrNotFound
	}
	r := t.join(id)
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.err != nil {
		return nil, r.err
	}
	if found := r.found[id]; found != nil {
		return found, nil
	}
	return nil, template.ErrNotFound
}

// join adds id to the round that begins next, and starts the rounds if none runs.
func (t *Templates) join(id int64) *round {
	t.rounds.mu.Lock()
	defer t.rounds.mu.Unlock()
	var r *round
	if n := len(t.rounds.waiting); n > 0 && len(t.rounds.waiting[n-1].ids) < maxRound {
		r = t.rounds.waiting[n-1]
	} else {
		r = &round{ids: map[int64]struct{}{}, done: make(chan struct{})}
		t.rounds.waiting = append(t.rounds.waiting, r)
	}
	r.ids[id] = struct{}{}
	if !t.rounds.running {
		t.rounds.running = true
		go t.runRounds()
	}
	return r
}

// runRounds runs rounds until no request waits for one.
func (t *Templates) runRounds() {
	for r := t.rounds.next(); r != nil; r = t.rounds.next() {
		began := time.Now()
		t.runRound(r)
		time.Sleep(time.Until(began.Add(roundEvery))) // requests that come meanwhile share the next round
	}
}

// next returns the round to run, nil if no request waits.
func (r *rounds) next() *round {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.running, r.waiting = false, nil
		return nil
	}
	first := r.waiting[0]
	r.waiting = r.waiting[1:]
	return first
}

func (t *Templates) runRound(r *round) {
	defer close(r.done)
	// No caller's: its hanging up must not fail the others.
	ctx, cancel := context.WithTimeout(context.Background(), loadFor)
	defer cancel()
	var list []template.Template
	if list, r.err = t.source.TemplatesNow(ctx, slices.Collect(maps.Keys(r.ids))); r.err != nil {
		return
	}
	r.found = make(map[int64]*template.Template, len(list))
	for i := range list {
		r.found[list[i].ID] = &list[i]
	}
}
