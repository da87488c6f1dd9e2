package lookup

import (
	"context"
	"sync"
	"time"

	"dropbell/domain/user"
)

const (
	// erasedOverlap is how far before the last look the next look begins. An erasure has the
	// time at which its transaction began, but is visible only after the commit.
	erasedOverlap = time.Minute
	// erasedWhole is how often all erasures are read. Only such a reading finds lifted erasures.
	erasedWhole = 5 * time.Minute
)

// Erased knows the erased users as of the last look. It is safe for concurrent use.
type Erased struct {
	// Load returns the users who were erased since an instant of the database's clock, and the
	// present time of that clock. The zero time asks for all erased users.
	Load func(ctx context.Context, since time.Time) (ids []user.ID, now time.Time, err error)

	users sync.Map // of user.ID

	mu           sync.Mutex // held during a look
	since, whole time.Time
}

// Has reports whether the user was erased.
func (e *Erased) Has(id user.ID) bool {
	_, erased := e.users.Load(id)
	return erased
}

// Look reads the erasures since the last look. An error changes nothing.
func (e *Erased) Look(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	since := e.since
	if e.whole.IsZero() || since.Sub(e.whole) >= erasedWhole-erasedOverlap {
		since = time.Time{}
	}
	ids, now, err := e.Load(ctx, since)
	if err != nil {
		return err
	}
	for _, id := range ids {
		e.users.Store(id, nil)
	}
	if e.since = now.Add(-erasedOverlap); since.IsZero() {
		e.whole = now
		e.forget(ids)
	}
	return nil
}

// forget drops the users who are not in erased.
func (e *Erased) forget(erased []user.ID) {
	still := make(map[user.ID]bool, len(erased))
	for _, id := range erased {
		still[id] = true
	}
	e.users.Range(func(id, _ any) bool {
		if !still[id.(user.ID)] {
			e.users.Delete(id)
		}
		return true
	})
}

// Known reports whether a look has succeeded.
func (e *Erased) Known() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.whole.IsZero()
}
