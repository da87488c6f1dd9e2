package delivery

import (
	"context"
	"time"

	"dropbell/domain/task"
	"dropbell/domain/user"
)

// Store keeps batches.
type Store interface {
	// LeaseNext leases the most urgent ready batch of the channel, nearest
	// deadline first, or returns [ErrNoWork].
	LeaseNext(ctx context.Context, c Channel, lasting time.Duration) (Lease, error)
	// Recipients returns those of the users, given in ascending order, who
	// are known, in the same order and perhaps with others between them:
	// language, zone, and what reaching them over the channel takes.
	Recipients(ctx context.Context, c Channel, ids []user.ID) ([]user.User, error)
}

// Queue wakes workers.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
}

// Admission decides whether a channel may be used now: paused by an operator,
// provider failing, rate used up. It costs no attempts.
type Admission interface {
	// Admit returns zero if n messages may be handed over now, else how
	// long to wait and why.
	Admit(ctx context.Context, c Channel, n int) (wait time.Duration, reason string)
	// Report tells how a call of the channel's provider went.
	Report(ctx context.Context, c Channel, ok bool, detail string)
}

// Service works batches off.
type Service struct {
	Store     Store
	Queue     Queue
	Admission Admission
	Senders   map[Channel]Sender
	// Parallel is how many provider calls one batch makes at once.
	Parallel map[Channel]int
	Policy   Policy
	// LeaseFor is how long a silent worker keeps its batch.
	LeaseFor time.Duration
	Random   func() float64 // in [0, 1)
	Now      func() time.Time
	// OptOutURL, if set, returns where the user can turn off the channel
	// without signing in; "" = nowhere. It is asked for messages that can show
	// an address, and never for tests.
	OptOutURL func(id user.ID, c Channel) string
	// Observe, if set, is told about every checkpoint that recorded sent messages.
	Observe func(c Channel, sent int, late time.Duration)
}
