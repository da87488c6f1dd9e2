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

// BatchParts is the number of parts of a full batch; a smaller batch has fewer, see [Parts].
// Leasing, waking workers and working on batches count parts, so that several small batches are
// handled like one full batch.
const BatchParts = 16

// Parts returns the number of parts of a batch with so many recipients, from 1 to [BatchParts].
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
	// PlannedAt is the instant after which the batch is late: its due instant, or a later one if
	// it could not have been delivered at the due instant.
	PlannedAt time.Time
	// RatePerSecond limits the owner's messages per second; 0 = the owner has no limit.
	RatePerSecond int
	// StopReason, if set, says why no further recipient may be sent to.
	StopReason string
	// HoldOut is the percentage of the users of the drop who get no reminder; see
	// [HeldOutOfDrop].
	HoldOut int
	// Left are the recipients without a sent mark, in ascending order. A run moves the held-out
	// users to HeldOut, and never sends to them.
	Left, HeldOut []user.ID
	// Accepted are the users among Left whose message was handed over by a former run, which
	// ended before its checkpoint. They are known from the journal or from a provider's report.
	// Ascending; none has a final outcome.
	Accepted []user.ID
	// AcceptedVia maps users among Accepted to the provider that took their message, if that was
	// not the environment's provider. Reports name no provider: a user known from a report gets
	// the provider that took all other messages of the batch, or no entry if there is no such
	// provider.
	AcceptedVia map[user.ID]int64
	// Exceptions are the exceptions recorded for users among Left.
	Exceptions map[user.ID]Exception
	// OptedOut are the users of the batch who do not want the channel.
	OptedOut map[user.ID]bool
	// Asked are the users among Left to whom messages are to be sent now; Known is their stored
	// data. Both are ascending, and nil for channels that need only the user id.
	Asked []user.ID
	Known []user.User
	// Consents are the users among Asked who have consented to this one message.
	Consents map[user.ID]bool
	// Now is the database's clock when the batch was leased.
	Now time.Time
}

// Plan returns the recipients to send to now, and the next instant at which another recipient is
// tried again (zero = no recipient waits).
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

// holdOut moves the held-out users from Left to HeldOut. Their outcome is stored with the end of the
// batch, for all of them at once, so that no user costs a row.
func (b *Batch) holdOut() {
	if b.HoldOut == 0 || b.Subject.Kind != KindReminder {
		return
	}
	b.Left = slices.DeleteFunc(b.Left, func(id user.ID) bool {
		held := HeldOutOfDrop(b.Subject.TemplateID, b.HoldOut, id)
		if held {
			b.HeldOut = append(b.HeldOut, id)
		}
		return held
	})
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

// record applies a recorded checkpoint to the batch in memory.
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

// Progress is the content of one checkpoint.
type Progress struct {
	Sent []user.ID
	// Via maps users among Sent to the provider that took their message, if that was not the
	// environment's provider.
	Via        map[user.ID]int64
	Exceptions []Exception // including Recovered ones for users in Sent
	// ConsentsUsed are recipients whose consent to the message, if they gave it, is used up.
	ConsentsUsed []user.ID
	// Rest, if not empty, is the outcome (Skipped or Expired) that all recipients without an
	// outcome get, and RestReason its reason. It ends the batch.
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

// Held is the stop reason of a batch whose owner is paused. The batch is to be released, and
// cannot be leased until the owner is resumed.
const Held = "held"

// A Lease is the exclusive right to work on one batch. It expires unless it is extended. Every
// method returns [ErrLeaseLost] once another worker has leased the batch.
type Lease interface {
	Batch() *Batch
	// Checkpoint records progress durably, and extends the lease if less than half of its time is
	// left. stop is the reason to stop that was set meanwhile, [Held] for a paused owner, or
	// empty.
	Checkpoint(ctx context.Context, p Progress) (stop string, err error)
	// Extend renews the lease for its full length and records no progress.
	Extend(ctx context.Context) (stop string, err error)
	// Accepted records durably that a provider has taken the message to id; via is the id of the
	// provider, see [Result]. Checkpoints are independent of it.
	Accepted(ctx context.Context, id user.ID, via int64) error
}

// CutIntoBatches divides ascending user ids into batches of at most size users. covered are the
// ranges of batches that exist already, ascending and disjoint: their users are left out, and no
// new batch spans a covered range. So cutting again after a crash repeats no recipient and misses
// none.
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
