package reminder

import (
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/template"
)

// A Standing is the state of a slot as pages show it: the [SlotState], and for a finished slot
// the result for its recipients.
type Standing string

// The standings other than the [SlotState] values.
const (
	// Overdue: due by now and not fired.
	Overdue Standing = "overdue"
	// Unbooked: fired, and no user had booked it.
	Unbooked Standing = "unbooked"
	// FellAway: no user had booked the slot, and no user could, because the opening was moved so
	// near that the slot lay in the past.
	FellAway Standing = "fell_away"
	// Unreached: fired, and no recipient was reminded.
	Unreached Standing = "unreached"
	// Incomplete: some recipients were reminded, others failed or were too late.
	Incomplete Standing = "incomplete"
	// Reminded: each recipient was reminded, or skipped for a reason of the recipient.
	Reminded Standing = "reminded"
)

// Standing returns the standing of the slot. c counts the outcomes of its recipients.
func (s Slot) Standing(c delivery.Counts, now time.Time) Standing {
	switch {
	case s.Overdue(now):
		return Overdue
	case s.State != Finished:
		return Standing(s.State)
	case c.Reserved == 0 && s.PlannedAt.After(s.DueAt):
		return FellAway
	case c.Reserved == 0:
		return Unbooked
	case c.Sent == 0:
		return Unreached
	case c.Dead+c.Expired > 0:
		return Incomplete
	}
	return Reminded
}

// Standing is [Slot.Standing] of the row.
func (r Row) Standing(now time.Time) Standing { return r.Slot.Standing(r.Counts(), now) }

// Standing is [Slot.Standing] of the row.
func (r CockpitRow) Standing(now time.Time) Standing { return r.Slot.Standing(r.Counts(), now) }

// Counts sums the row's cells.
func (r Row) Counts() (sum delivery.Counts) {
	for _, c := range r.Cells {
		sum = sum.Plus(c.Counts)
	}
	return sum
}

// Reported sums the providers' reports on the row's messages.
func (r Row) Reported() (sum feedback.Tally) {
	for _, c := range r.Cells {
		sum = sum.Plus(c.Reported)
	}
	return sum
}

// Reported sums the providers' reports on the messages of the board's current rows.
func (b Board) Reported() (sum feedback.Tally) {
	for _, r := range b.Rows {
		sum = sum.Plus(r.Reported())
	}
	return sum
}

// Booked returns how many reminders of the cell the slot counts: the booked reminders until the
// slot begins to fire, and its recipients from then on.
func (s Slot) Booked(c Cell) int64 {
	if s.FiredAt != nil {
		return c.Reserved
	}
	return max(0, c.Booked)
}

// Booked sums [Slot.Booked] of the row's cells.
func (r Row) Booked() (n int64) {
	for _, c := range r.Cells {
		n += r.Slot.Booked(c)
	}
	return n
}

// Booked sums [Slot.Booked] of the row's lanes.
func (r CockpitRow) Booked() (n int64) {
	for _, l := range r.Lanes {
		n += r.Slot.Booked(l.Cell)
	}
	return n
}

// A Progress counts the reminders of one opening by their state. All pages that show one of these
// numbers take it from here.
type Progress struct {
	// Booked is the number of all reminders of the opening, whether their slot waits, has fired
	// or has ended without firing.
	Booked int64
	// Waiting is the number of reminders of slots that wait to be fired.
	Waiting int64
	// Counts counts the reminders of slots that have fired.
	delivery.Counts
}

// Expected returns how many reminders are to be delivered: the reminders of waiting slots and of
// slots that have fired.
func (r Progress) Expected() int64 { return r.Waiting + r.Reserved }

// Progress sums the slots of the present opening.
func (b Board) Progress() (sum Progress) {
	for _, r := range b.Rows {
		sum = sum.plus(r.State, r.Booked(), r.Counts())
	}
	return sum
}

// Progress sums the slots.
func (c Cockpit) Progress() (sum Progress) {
	for _, r := range c.Rows {
		sum = sum.plus(r.State, r.Booked(), r.Counts())
	}
	return sum
}

func (r Progress) plus(state SlotState, booked int64, c delivery.Counts) Progress {
	r.Booked += booked
	if state == Waiting {
		r.Waiting += booked
	}
	r.Counts = r.Counts.Plus(c)
	return r
}

// A MoveEffect is the effect of moving the opening on the reminders.
type MoveEffect struct {
	// Booked is the number of booked reminders; Reminded is how many reminders were sent with the
	// old opening.
	Booked, Reminded int64
	// Lost is the number of slots that could be booked before the move and lie in the past with
	// the new opening: they cannot be booked any more.
	Lost int
	// Late is the number of reminders booked on slots that lie in the past with the new opening.
	// They are sent at once.
	Late int64
}

// MoveTo returns the effect of moving the opening to opensAt at now. Doors move with it.
func (b Board) MoveTo(opensAt, now time.Time) (s MoveEffect) {
	seen := map[template.Slot]bool{}
	var last time.Time // the present opening
	for _, r := range b.Rows {
		if r.OpensAt.After(last) {
			last = r.OpensAt
		}
	}
	for _, r := range b.Rows {
		past := !r.Slot.Slot.DueAt(opensAt.Add(r.OpensAt.Sub(last))).After(now)
		if past && r.Upcoming(now) && !seen[r.Slot.Slot] {
			s.Lost++
			seen[r.Slot.Slot] = true
		}
		for _, c := range r.Cells {
			s.Booked += c.Booked
			s.Reminded += c.Sent
			if past {
				s.Late += c.Booked
			}
		}
	}
	for _, r := range b.Earlier {
		s.Reminded += r.Counts().Sent
	}
	return s
}

// PastAtMove returns the number of slots that were already past when the opening was moved to its
// present instant. They could not be booked any more, and their reminders were sent at once.
func (b Board) PastAtMove() int {
	past := map[template.Slot]bool{}
	for _, r := range b.Rows {
		if r.PlannedAt.After(r.DueAt) && r.State != Passed {
			past[r.Slot.Slot] = true
		}
	}
	return len(past)
}
