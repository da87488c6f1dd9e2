package work

import "time"

// ExplainRelay is how a relay finds and deletes its events; it takes a limit.
func ExplainRelay() string { return `explain ` + relaySQL }

// WholeEvery is how often a relay looks at the whole outbox.
const WholeEvery = wholeEvery

// At returns the outbox with another clock.
func (o Outbox) At(now func() time.Time) Outbox {
	o.place = &place{now: now}
	return o
}
