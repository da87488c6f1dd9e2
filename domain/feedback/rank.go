package feedback

import "slices"

// ranks are the statuses in the order in which a later one replaces an earlier one.
var ranks = []Status{SoftBounced, Delivered, Bounced, Complained}

// Valid reports whether s is one of the statuses.
func (s Status) Valid() bool { return slices.Contains(ranks, s) }

// Replaces reports whether a report of s changes what is known of a message, of
// which before is known; "" = nothing. It depends on the statuses alone, since
// reports come in any order: a message that was delivered after a soft bounce is
// delivered, one that a mail server accepted and then returned has bounced, and one
// that was complained of has been read, whatever else is reported.
func (s Status) Replaces(before Status) bool {
	return slices.Index(ranks, s) > slices.Index(ranks, before)
}

// A Tally counts messages by what was reported of them. Complained are part of
// Delivered. Bounced are all that were not delivered, also for a reason that may pass:
// none of them is sent once more after it was taken.
type Tally struct{ Delivered, Bounced, Complained int64 }

// Plus returns the sum of both.
func (t Tally) Plus(o Tally) Tally {
	return Tally{t.Delivered + o.Delivered, t.Bounced + o.Bounced, t.Complained + o.Complained}
}

// Unconfirmed is how many of sent messages nothing was reported of. It is never
// negative for a tally of sent messages: a receipt may come before its message is recorded
// as sent, or for one whose sending ended in an error, and counts only once it is.
func (t Tally) Unconfirmed(sent int64) int64 { return sent - t.Delivered - t.Bounced }

// Count adds one message with what is known of it.
func (t *Tally) Count(s Status) {
	switch s {
	case Delivered:
		t.Delivered++
	case Bounced, SoftBounced:
		t.Bounced++
	case Complained: // it was delivered
		t.Delivered++
		t.Complained++
	}
}

// Any reports whether anything was reported.
func (t Tally) Any() bool { return t != Tally{} }
