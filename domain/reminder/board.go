package reminder

import (
	"context"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/user"
)

// BoardStore reads the reminders of a drop for staff.
type BoardStore interface {
	// Board returns the template's twelve current slots, the farthest from the opening first; for
	// a draft the list is empty. Stopped slots of earlier openings that had fired are in Earlier.
	Board(ctx context.Context, templateID int64) (Board, error)
	// Growth returns the booking curve, at most points values.
	Growth(ctx context.Context, templateID int64, points int) ([]Growth, error)
	// Balance recomputes the balance sheet from bitmaps and exception rows.
	Balance(ctx context.Context, templateID int64) ([]BalanceLine, error)
	// KeptBalance returns the lines of slots whose rows were removed after their retention.
	KeptBalance(ctx context.Context, templateID int64) ([]BalanceLine, error)
}

// Board is the state of all slots of one template.
type Board struct {
	Rows    []Row
	Earlier []Row
	// DeadLetters are the current rows' dead reminders that were not discarded.
	DeadLetters int64
	// Opened is how many users opened the link in a message about the drop. Each user counts
	// once, and the number is never deleted.
	Opened int64
}

// Totals sums the board's current rows per channel; Booked as [Slot.Booked] has it.
func (b Board) Totals() [delivery.Channels]Cell {
	var sum [delivery.Channels]Cell
	for i := range sum {
		sum[i].Channel = delivery.Channel(i)
	}
	for _, r := range b.Rows {
		for i, c := range r.Cells {
			sum[i].Booked += r.Slot.Booked(c)
			sum[i].Counts = sum[i].Counts.Plus(c.Counts)
			sum[i].Reported = sum[i].Reported.Plus(c.Reported)
		}
	}
	return sum
}

// A BalanceLine compares stored counters with counts of the rows.
type BalanceLine struct {
	Slot    Slot
	Channel delivery.Channel
	// Kept is the number in the counters, Counted the number of rows.
	Kept    delivery.Counts
	Counted delivery.Counts
	// Twice is how many users are in more than one batch of the slot and channel.
	Twice int64
	// Reported are the parts of Counted.Sent of which the provider has reported.
	Reported feedback.Tally
	// Archived says that the rows were removed after their retention: Counted is then Kept, whose
	// outcomes must still add up to the recipients.
	Archived bool
}

// Difference is 0 if the line balances and counters and rows agree.
func (l BalanceLine) Difference() int64 {
	d := abs(l.Counted.Difference()) + abs(l.Kept.Reserved-l.Counted.Reserved) + l.Twice
	if l.Slot.State == Finished {
		d += abs(l.Kept.Sent-l.Counted.Sent) + abs(l.Kept.Skipped-l.Counted.Skipped) +
			abs(l.Kept.Expired-l.Counted.Expired) + abs(l.Kept.Dead-l.Counted.Dead)
	}
	return d
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// Users finds users for staff and stores their data.
type Users interface {
	// User returns [user.ErrNotFound] if nothing is known about the id.
	User(ctx context.Context, id user.ID) (user.User, error)
	// Find returns users by id, or by the beginning of name, e-mail or phone.
	Find(ctx context.Context, text string, after user.ID, limit int) ([]user.User, error)
	// FindNamed finds contacts as a whole only.
	FindNamed(ctx context.Context, text string, after user.ID, limit int) ([]user.User, error)
}
