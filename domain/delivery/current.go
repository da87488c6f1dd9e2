package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/user"
)

const (
	// refusalsFor is the greatest age of the opt-outs and suppressions that a call uses. Calls
	// that begin within this time after the lease use the refusals that were read with the lease.
	refusalsFor = 500 * time.Millisecond
	// runFor is how long after its start a run begins further calls. Then it releases its batch,
	// and the next run reads contacts, the screen and the other inputs of a run anew.
	runFor = 30 * time.Second
)

// Refusals maps recipients who may no longer be sent to, to the reason.
type Refusals map[user.ID]string

// refusals caches the refusals of a run's recipients. All calls of the run share it.
type refusals struct {
	store Store
	mu    sync.Mutex
	// among are the recipients of the run. at is the instant, by the database's clock, as of
	// which known was read.
	among []user.ID
	at    time.Time
	known Refusals
}

// current returns the refusals among the recipients of the run, at most [refusalsFor] old. Calls
// that need newer refusals share one query. clock returns the database's time.
func (r *refusals) current(ctx context.Context, c Channel, clock func() time.Time) (Refusals, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := clock()
	if now.Sub(r.at) <= refusalsFor {
		return r.known, nil
	}
	known, err := r.store.Refusals(ctx, c, slices.Clone(r.among))
	if err != nil {
		return nil, err
	}
	r.at, r.known = now, known
	return known, nil
}
