package reminder

import (
	"time"

	"dropbell/domain/delivery"
)

// WaveSteps is how many columns a [Wave] has at most.
const WaveSteps = 120

// A Wave is the number of messages sent for one slot over time, per channel.
type Wave struct {
	// From is the instant of the first message. Step is the duration of one column: a second, or
	// more if the slot took longer than [WaveSteps] seconds.
	From time.Time
	Step time.Duration
	// Sent are messages per column.
	Sent [][delivery.Channels]int64
}

// WaveOf returns the wave of the spans of one slot; the zero Wave if no message was sent. The sum
// of its columns is the number of messages in the spans.
func WaveOf(spans []Span) Wave {
	var w Wave
	var to time.Time
	for _, s := range spans {
		if s.Sent <= 0 || !s.Channel.Valid() {
			continue
		}
		if from := s.From.Truncate(time.Second); w.From.IsZero() || from.Before(w.From) {
			w.From = from
		}
		if s.To.After(to) {
			to = s.To
		}
	}
	if w.From.IsZero() {
		return w
	}
	seconds := max(1, int64((max(to.Sub(w.From), 0)+time.Second-1)/time.Second))
	w.Step = time.Duration((seconds+WaveSteps-1)/WaveSteps) * time.Second
	w.Sent = make([][delivery.Channels]int64, int((time.Duration(seconds)*time.Second+w.Step-1)/w.Step))
	for _, s := range spans {
		if s.Sent > 0 && s.Channel.Valid() {
			w.add(s)
		}
	}
	return w
}

// add spreads the span evenly over its columns; the remainder goes to the earlier ones.
func (w Wave) add(s Span) {
	column := func(t time.Time) int { return min(max(0, int(t.Sub(w.From)/w.Step)), len(w.Sent)-1) }
	from := column(s.From)
	to := max(from, column(s.To.Add(-1))) // the end is not part of the span
	n := int64(to - from + 1)
	for i := range n {
		share := s.Sent / n
		if i < s.Sent%n {
			share++
		}
		w.Sent[from+int(i)][s.Channel] += share
	}
}

// MinuteSteps is how many columns a first minute has: one a second.
const MinuteSteps = 60

// MinuteOf returns the first minute of the spans of one slot, in seconds from the instant at which
// the slot was due, and the number of messages per channel that were sent later. If the first
// message is not in that minute, the minute begins with this message. Without messages it is the
// zero Wave.
func MinuteOf(spans []Span, due time.Time) (w Wave, later [delivery.Channels]int64) {
	whole := WaveOf(spans)
	if whole.From.IsZero() {
		return whole, later
	}
	w = Wave{From: due.Truncate(time.Second), Step: time.Second, Sent: make([][delivery.Channels]int64, MinuteSteps)}
	if whole.From.Before(w.From) || !whole.From.Before(w.From.Add(MinuteSteps*time.Second)) {
		w.From = whole.From
	}
	// The columns after the minute hold what was sent later.
	end := w.From.Add(MinuteSteps * time.Second)
	for _, s := range spans {
		if s.To.After(end) {
			end = s.To
		}
	}
	all := Wave{From: w.From, Step: w.Step, Sent: make([][delivery.Channels]int64, int((end.Sub(w.From)+time.Second-1)/time.Second))}
	for _, s := range spans {
		if s.Sent > 0 && s.Channel.Valid() {
			all.add(s)
		}
	}
	copy(w.Sent, all.Sent)
	return w, Wave{Sent: all.Sent[MinuteSteps:]}.Totals()
}

// Totals sums the columns per channel.
func (w Wave) Totals() (sum [delivery.Channels]int64) {
	for _, column := range w.Sent {
		for c, n := range column {
			sum[c] += n
		}
	}
	return sum
}
