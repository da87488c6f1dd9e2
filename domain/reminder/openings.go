package reminder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// OpeningStore records which users opened the link in a message of a drop.
type OpeningStore interface {
	// Open records the readers. A reader is recorded once for a drop, whatever the message;
	// repeating changes nothing. It returns [LockedOpenings] if rows of some drops were locked;
	// the readers of all other drops are recorded then.
	Open(ctx context.Context, readers []Reader) error
}

// LockedOpenings are drops whose rows another session has locked.
type LockedOpenings struct{ Drops []int64 }

func (e *LockedOpenings) Error() string {
	return fmt.Sprintf("another session has locked rows of the drops %v", e.Drops)
}

const (
	// openingGroup is how many openings one statement stores.
	openingGroup = 500
	// openingQueue is how many openings may wait while the store does not answer: 10 MB.
	openingQueue = 200_000
	// openingTimeout bounds one statement; openingPause is the pause after a statement that
	// failed.
	openingTimeout = 5 * time.Second
	openingPause   = time.Second
)

// Openings records the users who opened links, in groups. Callers wait for a bounded time, so
// that a store that does not answer delays no user. An opening that is not stored by then stays
// in the queue and is tried until it is stored. [Openings.Close] ends the recording.
type Openings struct {
	Store OpeningStore
	// Failed, if set, is called after every statement that failed, with its error and the number
	// of openings that wait for the next statement.
	Failed func(err error, waiting int)
	// Pause is the pause after a statement that failed; 0 = [openingPause].
	Pause time.Duration

	mu      sync.Mutex
	waiting []openingOf
	// locked are openings of drops whose rows were locked. They are tried again when again fires;
	// only [Openings.run] uses again.
	locked  []openingOf
	again   <-chan time.Time
	wake    chan struct{}
	stop    chan struct{}
	stopped chan struct{}
	closed  bool
}

type openingOf struct {
	reader Reader
	stored chan struct{}
}

// Start begins to store the openings passed to [Openings.Note].
func (o *Openings) Start() {
	o.wake, o.stop, o.stopped = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	if o.Pause == 0 {
		o.Pause = openingPause
	}
	go o.run()
}

// Note queues the opening and reports whether it was stored before ctx ended. An opening that was
// not stored is stored later, unless the queue was full or closed.
func (o *Openings) Note(ctx context.Context, r Reader) bool {
	o.mu.Lock()
	if o.closed || len(o.waiting)+len(o.locked) >= openingQueue {
		o.mu.Unlock()
		return false
	}
	w := openingOf{r, make(chan struct{})}
	o.waiting = append(o.waiting, w)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
	select {
	case <-w.stored:
		return true
	case <-ctx.Done():
		return false
	}
}

// Close stores the waiting openings, until ctx ends.
func (o *Openings) Close(ctx context.Context) {
	o.mu.Lock()
	first := !o.closed
	o.closed = true
	o.mu.Unlock()
	if first {
		close(o.stop)
	}
	select {
	case <-o.stopped:
	case <-ctx.Done():
	}
}

// run stores one group after another. After a stop it ends with the first group that fails, or
// when no opening waits. Openings of drops that are still locked then are lost.
func (o *Openings) run() {
	defer close(o.stopped)
	for ending := false; ; {
		select {
		case <-o.again:
			o.retry()
		default:
		}
		group := o.group()
		if len(group) == 0 {
			if ending {
				if !o.retry() {
					return
				}
				continue
			}
			select {
			case <-o.wake:
			case <-o.again:
				o.retry()
			case <-o.stop:
				ending = true
			}
			continue
		}
		if n, ok := o.store(group); ok && (n > 0 || !ending) {
			continue
		}
		if ending {
			return
		}
		select {
		case <-time.After(o.Pause):
		case <-o.stop:
			ending = true // one last attempt
		}
	}
}

// group returns the openings that have waited longest.
func (o *Openings) group() []openingOf {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting[:min(len(o.waiting), openingGroup)]
}

// retry puts openings of locked drops back into the queue. It returns false if there are none.
func (o *Openings) retry() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	some := len(o.locked) > 0
	o.waiting, o.locked, o.again = append(o.waiting, o.locked...), nil, nil
	return some
}

// store returns how many openings it stored; false if the store has failed.
func (o *Openings) store(group []openingOf) (int, bool) {
	readers := make([]Reader, len(group))
	for i, w := range group {
		readers[i] = w.reader
	}
	ctx, cancel := context.WithTimeout(context.Background(), openingTimeout)
	defer cancel()
	err := o.Store.Open(ctx, readers)
	stored := group
	locked, some := errors.AsType[*LockedOpenings](err)
	o.mu.Lock()
	if err == nil || some {
		if o.waiting = o.waiting[len(group):]; len(o.waiting) == 0 {
			o.waiting = nil // so that the array goes
		}
	}
	if some {
		of := func(w openingOf) bool { return slices.Contains(locked.Drops, w.reader.TemplateID) }
		stored = slices.DeleteFunc(slices.Clone(group), of)
		for _, w := range group {
			if of(w) {
				o.locked = append(o.locked, w)
			}
		}
		if o.again == nil {
			o.again = time.After(o.Pause)
		}
	}
	left := len(o.waiting) + len(o.locked)
	o.mu.Unlock()
	if err != nil && o.Failed != nil {
		o.Failed(err, left)
	}
	if err != nil && !some {
		return 0, false
	}
	for _, w := range stored {
		close(w.stored)
	}
	return len(stored), true
}
