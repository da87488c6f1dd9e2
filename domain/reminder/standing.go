package reminder

import (
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
	"dropbell/domain/template"
)

// A Standing says what happened to a slot: its state, and once each recipient
// has an outcome what came of it. Each page shows the standing, not the state.
type Standing string

// The standings that are no [SlotState] of their own.
const (
	// Overdue: due by now and not fired.
	Overdue Standing = "overdue"
	// Unbooked: fired, and no user had booked it.
	Unbooked Standing = "unbooked"
	// FellAway: no user had booked it, and none could any more once the opening was
	// moved so near that the slot lay in the past.
	FellAway Standing = "fell_away"
	// Unreached: fired, and no recipient was reminded.
	Unreached Standing = "unreached"
	// Incomplete: some recipients were reminded, others failed or were too late.
	Incomplete Standing = "incomplete"
	// Reminded: each recipient was reminded, or skipped for a reason of theirs.
	Reminded Standing = "reminded"
)

// Standing returns what happened to the slot, whose recipients' outcomes are
// counted in c.
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

// Reported sums what providers reported of the row's messages.
func (r Row) Reported() (sum feedback.Tally) {
	for _, c := range r.Cells {
		sum = sum.Plus(c.Reported)
	}
	return sum
}

// Reported sums what providers reported of the messages of the board's current rows.
func (b Board) Reported() (sum feedback.Tally) {
	for _, r := range b.Rows {
		sum = sum.Plus(r.Reported())
	}
	return sum
}

// Booked returns how many reminders of the cell the slot counts: the booked ones until
// it begins to fire, and from then on its recipients.
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

// A Progress is how far the reminders of one opening have come. Each page that shows
// one of these numbers takes it from here.
type Progress struct {
	// Booked are all reminders of the opening: those that wait, those of slots
	// that have fired, and those of slots that ended without firing.
	Booked int64
	// Waiting are those of slots that wait to be fired.
	Waiting int64
	// Counts are those of slots that have fired.
	delivery.Counts
}

// Expected is how many reminders there are to deliver: those that wait and those
// of slots that have fired.
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

// A MoveEffect is what moving the opening does to the reminders.
type MoveEffect struct {
	// Booked reminders there are; Reminded were sent with the old opening.
	Booked, Reminded int64
	// Lost is how many of the slots could be booked before the move and lie in
	// the past of the new opening: they cannot be booked any more.
	Lost int
	// Late is how many reminders are booked on slots that lie in the past of the
	// new opening. They go out at once.
	Late int64
}

// MoveTo returns what moving the opening to opensAt does at now.
func (b Board) MoveTo(opensAt, now time.Time) (s MoveEffect) {
	seen := map[template.Slot]bool{}
	for _, r := range b.Rows {
		past := !r.Slot.Slot.DueAt(opensAt).After(now)
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

// PastAtMove returns how many of the slots lay in the past of the opening when it
// was moved there: they could not be booked any more, and their
// reminders went out at once.
func (b Board) PastAtMove() int {
	past := map[template.Slot]bool{}
	for _, r := range b.Rows {
		if r.PlannedAt.After(r.DueAt) && r.State != Passed {
			past[r.Slot.Slot] = true
		}
	}
	return len(past)
}
