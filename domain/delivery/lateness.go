package delivery

import (
	"slices"
	"time"
)

// latenessBounds are the ends of the spans: close together for short delays, and further apart
// for long delays.
var latenessBounds = [...]time.Duration{
	10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond,
	100 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 400 * time.Millisecond,
	500 * time.Millisecond, 600 * time.Millisecond, 800 * time.Millisecond, time.Second, 1250 * time.Millisecond,
	1500 * time.Millisecond, 2 * time.Second, 2500 * time.Millisecond, 3 * time.Second, 4 * time.Second, 5 * time.Second,
	6 * time.Second, 8 * time.Second, 10 * time.Second, 12 * time.Second, 15 * time.Second, 20 * time.Second, 25 * time.Second,
	30 * time.Second, 40 * time.Second, 50 * time.Second, time.Minute, 75 * time.Second, 90 * time.Second, 2 * time.Minute,
	3 * time.Minute, 4 * time.Minute, 5 * time.Minute, 7 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute,
	30 * time.Minute, 45 * time.Minute, time.Hour,
}

// LatenessBounds returns the ends of the spans of a [Lateness], ascending. Stored counts depend
// on their order: further bounds can be added at the end only.
func LatenessBounds() []time.Duration { return slices.Clone(latenessBounds[:]) }

// A Lateness counts messages by how long after their planned instant they were recorded as sent.
// Span i ends before bound i; the span after the last bound has no end. The messages of one
// checkpoint all count with the instant of that checkpoint.
type Lateness map[int]int64

// Messages returns the number of counted messages.
func (l Lateness) Messages() (n int64) {
	for _, v := range l {
		n += v
	}
	return n
}

// Plus returns the sum of both.
func (l Lateness) Plus(o Lateness) Lateness {
	sum := make(Lateness, len(l)+len(o))
	for i, n := range l {
		sum[i] += n
	}
	for i, n := range o {
		sum[i] += n
	}
	return sum
}

// Latest returns the end of the span in which the last message was recorded, without counting
// some messages: others are their delays. bounded is false if that span has no end, or if no
// other message is counted.
func (l Lateness) Latest(others []time.Duration) (upTo time.Duration, bounded bool) {
	rest := l.Plus(nil)
	for _, late := range others {
		// A recorded message is counted a moment later, perhaps in the next span.
		i, edge := slices.BinarySearch(latenessBounds[:], late)
		if edge {
			i++
		}
		if rest[i] == 0 {
			i++
		}
		rest[i]--
	}
	for i := len(latenessBounds); i >= 0; i-- {
		if rest[i] > 0 && i < len(latenessBounds) {
			return latenessBounds[i], true
		} else if rest[i] > 0 {
			return 0, false
		}
	}
	return 0, false
}

// After returns how many messages may have been recorded later than d: the messages in spans that
// end after d.
func (l Lateness) After(d time.Duration) (n int64) {
	for i, v := range l {
		if i >= len(latenessBounds) || latenessBounds[i] > d {
			n += v
		}
	}
	return n
}

// Quantile returns the time within which the share q of the messages was recorded: the end of the
// span in which the share is reached, so it is never too low. bounded is false if that span has
// no end, or if no message is counted; upTo is then the last bound, or 0.
func (l Lateness) Quantile(q float64) (upTo time.Duration, bounded bool) {
	total := l.Messages()
	if total == 0 {
		return 0, false
	}
	need := float64(total) * q
	var seen int64
	for i := range len(latenessBounds) {
		if seen += l[i]; seen > 0 && float64(seen) >= need {
			return latenessBounds[i], true
		}
	}
	return latenessBounds[len(latenessBounds)-1], false
}
