// Package timer keeps the queue's timers complete. Actions and their instants are
// stored in the database; a timer in the queue only makes an action happen on time.
// A queue that was emptied, or restarted from an older state, gets its timers again
// within seconds. Without timers the sweeps would execute every action a second or
// two late.
package timer

import (
	"context"

	"dropbell/domain/task"
)

// A Position is the position of the reader of timers; the zero value is the
// beginning.
type Position struct {
	// Kind is the kind of a timer; the kinds are read one after the other.
	Kind int
	// At and ID identify the last timer read. Timers are ordered by their instant,
	// in microseconds since 1970, and then by id.
	At, ID int64
}

// Store reads the timers of stored actions.
type Store interface {
	// Pending returns the next timers after the position, the soonest of each kind
	// first, and the position to continue from. No timers means the end.
	Pending(ctx context.Context, after Position, limit int) ([]task.Task, Position, error)
}

// A Mark is a value that the queue stores with its timers: it is lost together with
// them, and does not match a server that was restarted.
type Mark string

// Queue holds the timers.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
	// BeginArming returns a mark if timers may be missing and no other process is
	// adding timers now, otherwise "".
	BeginArming(ctx context.Context) (Mark, error)
	// KeepArming extends the mark. It reports false if the mark was lost: timers
	// that were added may be lost, too.
	KeepArming(ctx context.Context, m Mark) (bool, error)
	// EndArming says that all timers are there, with the same report.
	EndArming(ctx context.Context, m Mark) (bool, error)
}

// page is how many timers are read and queued at a time.
const page = 500

// Keeper holds the use case.
type Keeper struct {
	Store Store
	Queue Queue
	// Armed, if set, is called with the number of timers that were queued again.
	Armed func(timers int)
}

// Keep queues every pending timer if some timers may be missing. Existing timers
// stay unchanged. Call it about every second, in every worker.
func (k *Keeper) Keep(ctx context.Context) error {
	mark, err := k.Queue.BeginArming(ctx)
	if err != nil || mark == "" {
		return err
	}
	timers := 0
	for at := (Position{}); ; {
		list, next, err := k.Store.Pending(ctx, at, page)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		if err := k.Queue.Enqueue(ctx, list...); err != nil {
			return err
		}
		timers, at = timers+len(list), next
		if kept, err := k.Queue.KeepArming(ctx, mark); err != nil || !kept {
			return err // the next call begins anew
		}
	}
	if kept, err := k.Queue.EndArming(ctx, mark); err != nil || !kept {
		return err
	}
	if k.Armed != nil {
		k.Armed(timers)
	}
	return nil
}
