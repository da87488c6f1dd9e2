package pg

import (
	"context"
	"sync"
	"time"
)

// A Room is what operations have in common that may wait for the same locks, such as the
// payments with coupons of one template.
type Room struct {
	Of string
	ID int64
}

// rooms keep operations that wait for locks from taking all connections of a pool.
type rooms struct {
	places int
	mu     sync.Mutex
	full   map[Room]*fullRoom
}

// A fullRoom has operations that met a lock lately.
type fullRoom struct {
	until  time.Time
	places chan struct{} // holds one for each operation under way
}

// Apart runs do, which meets a lock as [LockTimedOut] says. Once an operation of the room has
// met one, no more than a quarter of the connections serve the room for some seconds; others
// wait a moment and are refused.
func (db *DB) Apart(ctx context.Context, room Room, do func() error) error {
	if places := db.rooms.limit(room); places != nil {
		late := time.NewTimer(LockWait)
		defer late.Stop()
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-late.C:
			return errLocked
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := do()
	if LockTimedOut(err) {
		db.rooms.meet(room)
	}
	return err
}

// limit returns the room's places, nil if they are not limited.
func (r *rooms) limit(room Room) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.full[room]; f != nil && time.Now().Before(f.until) {
		return f.places
	}
	return nil
}

func (r *rooms) meet(room Room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.full == nil {
		r.full = map[Room]*fullRoom{}
	}
	for other, f := range r.full {
		if now.After(f.until) {
			delete(r.full, other)
		}
	}
	if r.full[room] == nil {
		r.full[room] = &fullRoom{places: make(chan struct{}, r.places)}
	}
	r.full[room].until = now.Add(apartFor)
}
