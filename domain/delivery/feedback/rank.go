package feedback

import "slices"

// ranks are the statuses in the order in which a later one replaces an earlier one.
var ranks = []Status{SoftBounced, Delivered, Bounced, Complained}

// Valid reports whether s is one of the statuses.
func (s Status) Valid() bool { return slices.Contains(ranks, s) }

// Replaces reports whether a report of s changes a message whose known status is before; "" = no
// status is known. The result depends on the statuses alone, because reports come in any order. A
// message that is delivered after a soft bounce counts as delivered. A message that a mail server
// accepted and then returned has bounced. A message with a complaint has been read, whatever
// other reports say.
func (s Status) Replaces(before Status) bool {
	return slices.Index(ranks, s) > slices.Index(ranks, before)
}

// A Tally counts messages by their reported status. Complained messages also count in Delivered.
// Bounced counts all messages that were not delivered, including soft bounces: a message is never
// sent again after it was taken.
type Tally struct{ Delivered, Bounced, Complained int64 }

// Plus returns the sum of both.
func (t Tally) Plus(o Tally) Tally {
	return Tally{t.Delivered + o.Delivered, t.Bounced + o.Bounced, t.Complained + o.Complained}
}

// Unconfirmed returns how many of sent messages have no report. It is never negative for a tally
// of sent messages. A receipt may come before its message is recorded as sent, or for a message
// whose sending ended in an error; it counts only once the message is recorded as sent.
func (t Tally) Unconfirmed(sent int64) int64 { return sent - t.Delivered - t.Bounced }

// Count adds one message with the status s.
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
