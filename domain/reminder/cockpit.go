package reminder

import (
	"context"
	"time"

	"dropbell/domain/delivery"
)

// A Lane is one slot on one channel, in more detail than a [Cell].
type Lane struct {
	Cell
	// Failed, a part of what is in flight, wait for a retry.
	Failed int64
	// Late is how late the messages were that are out.
	Late delivery.Lateness
	// DoneAt is when the last batch was done; nil while one is not.
	DoneAt *time.Time
	// Expected is the messages per second that were forecast when the slot
	// fired; 0 if nothing is known.
	Expected float64
}

// ForecastEnd returns when the lane was forecast to be done; zero if unknown.
func (l Lane) ForecastEnd(dueAt time.Time) time.Time {
	if l.Expected <= 0 || l.Reserved == 0 {
		return time.Time{}
	}
	seconds := min(float64(l.Reserved)/l.Expected, 1e8) // a Duration holds 292 years
	return dueAt.Add(time.Duration(seconds * float64(time.Second)))
}

// A CockpitRow is one slot with its lanes in channel order.
type CockpitRow struct {
	Slot
	Lanes [delivery.Channels]Lane
}

// Counts sums the row's lanes.
func (r CockpitRow) Counts() (sum delivery.Counts) {
	for _, l := range r.Lanes {
		sum = sum.Plus(l.Counts)
	}
	return sum
}

// Running reports whether the slot is being delivered.
func (r CockpitRow) Running() bool { return r.State == Firing || r.State == Sending }

// A Cause is why messages of the current slots did not go out at once.
type Cause struct {
	Channel     delivery.Channel
	Outcome     delivery.Outcome // failed, dead or expired
	Reason      string
	Fingerprint string
	Sample      string // one of the provider's answers
	People      int64
}

// A Cockpit is the state of one drop at one instant of the database's clock.
type Cockpit struct {
	At time.Time
	// Rows are the slots of the present opening, the farthest first; empty
	// for a draft.
	Rows []CockpitRow
	// Causes are those of the slots in Current, most frequent first.
	Causes []Cause
	// DeadLetters are the dead letters of all rows that were not discarded.
	DeadLetters int64
	// Opened is that of the [Board].
	Opened int64
	// Sampled is true when the causes were counted among the latest failures
	// only, because there are too many to count every second.
	Sampled bool
}

// Current returns the slots that are being delivered, or else the last one
// that was.
func (c Cockpit) Current() []CockpitRow {
	var running []CockpitRow
	last := -1
	for i, r := range c.Rows {
		if r.Running() {
			running = append(running, r)
		}
		if r.FiredAt != nil && (last < 0 || r.FiredAt.After(*c.Rows[last].FiredAt)) {
			last = i
		}
	}
	if len(running) > 0 || last < 0 {
		return running
	}
	return []CockpitRow{c.Rows[last]}
}

// Sent sums what is out per channel over all slots.
func (c Cockpit) Sent() (sum [delivery.Channels]int64) {
	for _, r := range c.Rows {
		for i, l := range r.Lanes {
			sum[i] += l.Sent
		}
	}
	return sum
}

// Settled returns the rows that change only if dead letters are replayed, which
// unfinishes their slot.
func (c Cockpit) Settled() []CockpitRow {
	var out []CockpitRow
	for _, r := range c.Rows {
		if r.State == Finished {
			out = append(out, r)
		}
	}
	return out
}

// CockpitStore reads what the cockpit of a drop shows.
type CockpitStore interface {
	// Cockpit returns the template's state as of one instant. Rows of finished
	// slots that are known from an earlier look are not read again.
	Cockpit(ctx context.Context, templateID int64, known []CockpitRow) (Cockpit, error)
	// Spans returns what went out within back from now, about as it did: a
	// batch's messages count from its first start to its end.
	Spans(ctx context.Context, templateID int64, back time.Duration) ([]Span, error)
	// SlotSpans returns what went out of one slot, as Spans; none once its batches
	// are past their retention.
	SlotSpans(ctx context.Context, slotID int64) ([]Span, error)
}
