package pg

import (
	"context"
	"sync"
	"time"
)

// A Room identifies operations that may wait for the same locks, such as the payments with
// coupons of one template.
type Room struct {
	Of string
	ID int64
}

// rooms limit the connections of a pool that wait for locks.
type rooms struct {
	places int
	mu     sync.Mutex
	full   map[Room]*fullRoom
}

// A fullRoom is a [Room] with an operation that met a lock in the last seconds.
type fullRoom struct {
	until  time.Time
	places chan struct{} // holds one for each operation under way
}

// Apart runs do, an operation of the room that may fail with a lock timeout; see
// [LockTimedOut]. After a lock timeout at most a quarter of the connections serve the room,
// for some seconds. Further operations of the room wait for [LockWait] at most and are then
// refused.
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

// limit returns the places of the room, or nil if the room is not limited.
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
