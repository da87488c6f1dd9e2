package delivery

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// BatchSize is how many recipients a batch has at most.
const BatchSize = 1000

// BatchParts is how many parts a full batch counts as where several small ones are
// dealt with as one: as much work as the parts say is leased, woken for and worked on.
const BatchParts = 16

// Parts returns how many parts a batch of so many recipients counts as, from 1 to
// [BatchParts].
func Parts(recipients int) int {
	return min(max(1, BatchParts*recipients/BatchSize), BatchParts)
}

// Faults of working on batches.
var (
	// ErrNoWork is returned when no batch of the channel is ready.
	ErrNoWork = fault.New(fault.NotFound, "no_work", "no batch is ready")
	// ErrLeaseLost is returned when another worker has taken the batch over.
	// Work since the last checkpoint is not recorded.
	ErrLeaseLost = fault.New(fault.Conflict, "lease_lost", "the batch was taken over by another worker")
)

// A Batch is a range of recipients, as leased by a worker.
type Batch struct {
	ID             int64
	Owner          int64 // the slot, announcement, campaign or notice it belongs to
	Priority       int
	Subject        Subject
	Channel        Channel
	WorthlessAfter time.Time
	// PlannedAt is from when on the batch is late: when it was due, or later, if
	// it could not have been delivered then.
	PlannedAt time.Time
	// RatePerSecond is the most messages per second of the owner; 0 = no limit
	// of its own.
	RatePerSecond int
	// StopReason, if set, says why no further recipient is to be reached.
	StopReason string
	// Left are the recipients without a sent mark, in ascending order.
	Left []user.ID
	// Accepted are those among Left whose message a former run handed over, which
	// ended before its checkpoint, as the journal or a provider's report says;
	// ascending, none with a final outcome.
	Accepted []user.ID
	// AcceptedVia are the providers of those of Accepted that were handed to
	// another one than the environment's. A report does not name the provider: its
	// message has that of all others of the batch, if that is one; else it is unknown.
	AcceptedVia map[user.ID]int64
	// Exceptions are the rows of those among Left that have one.
	Exceptions map[user.ID]Exception
	// OptedOut are those among the batch's users who do not want the channel.
	OptedOut map[user.ID]bool
	// Asked are those of Left to whom messages are to be sent now, and Known
	// their stored data, both ascending. They are nil where the id is all that
	// the channel needs.
	Asked []user.ID
	Known []user.User
	// Consents are those of Asked who have consented to this one message.
	Consents map[user.ID]bool
	// Now is the database's clock when the batch was leased.
	Now time.Time
}

// Plan divides the recipients who are left at now: those to send to now, and
// the next instant at which a recipient can be tried again (zero = none waits).
func (b *Batch) Plan(now time.Time) (ready []user.ID, next time.Time) {
	for _, id := range b.Left {
		e, tried := b.Exceptions[id]
		switch {
		case tried && e.Outcome.Final():
		case tried && e.NextRetryAt.After(now):
			if next.IsZero() || e.NextRetryAt.Before(next) {
				next = e.NextRetryAt
			}
		default:
			ready = append(ready, id)
		}
	}
	return ready, next
}

// lateFrom is the time after which a message is late: PlannedAt, or the end of
// the last quiet hours that recipients of the batch waited for.
func (b *Batch) lateFrom(now time.Time) time.Time {
	from := b.PlannedAt
	for _, e := range b.Exceptions {
		if e.Reason == ReasonQuietHours && e.NextRetryAt.After(from) && !e.NextRetryAt.After(now) {
			from = e.NextRetryAt
		}
	}
	return from
}

// Settled reports whether each recipient has a final outcome.
func (b *Batch) Settled() bool {
	for _, id := range b.Left {
		if e, ok := b.Exceptions[id]; !ok || !e.Outcome.Final() {
			return false
		}
	}
	return true
}

// record applies what was checkpointed to the batch in memory.
func (b *Batch) record(p Progress) {
	sent := make(map[user.ID]struct{}, len(p.Sent))
	for _, id := range p.Sent {
		sent[id] = struct{}{}
	}
	b.Left = slices.DeleteFunc(b.Left, func(id user.ID) bool { _, ok := sent[id]; return ok })
	for _, e := range p.Exceptions {
		b.Exceptions[e.UserID] = e
	}
}

// Progress is what one checkpoint records.
type Progress struct {
	Sent []user.ID
	// Via are the providers of those in Sent that another one than the
	// environment's took.
	Via        map[user.ID]int64
	Exceptions []Exception // including Recovered ones for users in Sent
	// ConsentsUsed are the recipients whose consent to the message, if they have given
	// one, is used up.
	ConsentsUsed []user.ID
	// Rest, if not empty, is the outcome (Skipped or Expired) of all recipients
	// without one, and RestReason its reason; it ends the batch.
	Rest       Outcome
	RestReason string
	// Done ends the batch: each recipient has a final outcome.
	Done bool
	// ReleaseUntil gives the lease back and makes the batch ready at that
	// instant. Zero keeps the lease.
	ReleaseUntil time.Time
}

// sent adds a recipient whose message the provider has taken.
func (p *Progress) sent(id user.ID, via int64) {
	p.Sent = append(p.Sent, id)
	if via == 0 {
		return
	}
	if p.Via == nil {
		p.Via = map[user.ID]int64{}
	}
	p.Via[id] = via
}

// Held is the stop reason of a batch whose owner is paused: the batch is to be
// released, and cannot be leased until its owner is resumed.
const Held = "held"

// A Lease is the exclusive right to work on one batch. It expires unless
// extended, and every method returns [ErrLeaseLost] once another worker has it.
type Lease interface {
	Batch() *Batch
	// Checkpoint records progress durably and extends the lease if less than half
	// of it is left. stop is the reason to stop that appeared meanwhile, if any, or [Held].
	Checkpoint(ctx context.Context, p Progress) (stop string, err error)
	// Extend lets the lease begin anew, without progress.
	Extend(ctx context.Context) (stop string, err error)
	// Accepted records durably that the provider has taken the message to one of
	// the recipients. Checkpoints need not know of it.
	// via is the provider's id, see [Result].
	Accepted(ctx context.Context, id user.ID, via int64) error
}

// CutIntoBatches divides ascending user ids into batches of at most size.
// Ranges in covered, ascending and disjoint, exist already: their users are
// left out and no new range reaches across one, so that cutting again after
// a crash repeats no recipient and misses none.
func CutIntoBatches(ids []user.ID, covered []Range, size int) [][]user.ID {
	var cut [][]user.ID
	flush := func(part []user.ID) {
		for chunk := range slices.Chunk(part, size) {
			cut = append(cut, chunk)
		}
	}
	start := 0
	for _, c := range covered {
		from, _ := slices.BinarySearch(ids, c.From)
		to, found := slices.BinarySearch(ids, c.To)
		if found {
			to++
		}
		if from > start {
			flush(ids[start:from])
		}
		start = max(start, to)
	}
	if start < len(ids) {
		flush(ids[start:])
	}
	return cut
}

// Range is an inclusive range of user ids.
type Range struct{ From, To user.ID }
