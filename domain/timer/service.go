// Package timer keeps the queue's timers complete. Actions and their instants are
// stored in the database; a timer in the queue only makes it happen on time. A
// queue that was emptied, or restarted from an older state, gets its timers
// again within seconds; otherwise the sweeps would do everything, a second or
// two late.
package timer

import (
	"context"

	"dropbell/domain/task"
)

// A Position is how far the reading of timers has come; the zero value is the
// beginning.
type Position struct {
	// Kind is the kind of a timer; the kinds are read one after the other.
	Kind int
	// At and ID are those of the last timer read: they are ordered by the
	// instant, in microseconds since 1970, and the id.
	At, ID int64
}

// Store reads what is due at a time.
type Store interface {
	// Pending returns the next timers after the position, the soonest of each
	// kind first, and the position to continue from. Without timers it is the
	// end.
	Pending(ctx context.Context, after Position, limit int) ([]task.Task, Position, error)
}

// A Mark is what the queue keeps beside its timers: it vanishes with them, and
// does not fit a server that was started anew.
type Mark string

// Queue holds the timers.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
	// BeginArming returns a mark if timers may be missing and no other process is
	// adding them at the moment, else "".
	BeginArming(ctx context.Context) (Mark, error)
	// KeepArming extends the mark. It reports false if the mark has vanished:
	// timers that were added may have vanished, too.
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

// Keep queues every pending timer if some may be missing. Timers that are
// there are left alone. Call it every second or so, in every worker.
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
