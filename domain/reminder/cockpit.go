package reminder

import (
	"context"
	"time"

	"dropbell/domain/delivery"
)

// A Lane is one slot on one channel, in more detail than a [Cell].
type Lane struct {
	Cell
	// Failed is the number of recipients in flight that wait for a retry.
	Failed int64
	// Late says how late the sent messages were.
	Late delivery.Lateness
	// DoneAt is when the last batch was done; nil while one is not.
	DoneAt *time.Time
	// Expected is the messages per second that were forecast when the slot fired; 0 = there was
	// no forecast.
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
	// Rows are the slots of the present opening, the farthest from the opening first; empty for a
	// draft.
	Rows []CockpitRow
	// Causes are the causes in the slots of Current, most frequent first.
	Causes []Cause
	// DeadLetters are the dead letters of all rows that were not discarded.
	DeadLetters int64
	// Opened is [Board.Opened].
	Opened int64
	// Sampled says that Causes counts only the latest failures, because there are too many to
	// count every second.
	Sampled bool
}

// Current returns the slots that are being delivered. If there are none, it returns the slot that
// fired last.
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

// Sent returns the number of sent messages per channel over all slots.
func (c Cockpit) Sent() (sum [delivery.Channels]int64) {
	for _, r := range c.Rows {
		for i, l := range r.Lanes {
			sum[i] += l.Sent
		}
	}
	return sum
}

// Settled returns the rows of finished slots. They change only when dead letters are replayed,
// which makes their slot unfinished again.
func (c Cockpit) Settled() []CockpitRow {
	var out []CockpitRow
	for _, r := range c.Rows {
		if r.State == Finished {
			out = append(out, r)
		}
	}
	return out
}

// CockpitStore reads the cockpit of a drop.
type CockpitStore interface {
	// Cockpit returns the template's state as of one instant. Rows of finished slots that are in
	// known, from an earlier call, are not read again.
	Cockpit(ctx context.Context, templateID int64, known []CockpitRow) (Cockpit, error)
	// Spans returns the messages sent within the duration back before now. Their times are
	// approximate: the messages of a batch are spread from its first start to its end.
	Spans(ctx context.Context, templateID int64, back time.Duration) ([]Span, error)
	// SlotSpans returns the messages sent for one slot, in the form of Spans. It returns none
	// once the retention of the slot's batches is over.
	SlotSpans(ctx context.Context, slotID int64) ([]Span, error)
}
