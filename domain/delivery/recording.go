package delivery

import (
	"slices"
	"time"

	"dropbell/domain/user"
)

// A recording makes the records of one run's recipients from answers and verdicts.
type recording struct {
	*leasedBatch
	policy Policy
	random func() float64 // [Service.Random]
}

// gatherFor is how long a checkpoint waits for further results once all calls have begun. A
// checkpoint costs as much as delivering hundreds of messages to a quick provider. No call is
// delayed by this wait, and a crash repeats no more than the calls that were in flight at once.
const gatherFor = 20 * time.Millisecond

// collect makes one checkpoint of a chunk's results and of other chunks' results that are ready
// or arrive within [gatherFor].
func (o *recording) collect(first chunkResult, calls *calls) (p Progress) {
	enough := time.NewTimer(gatherFor)
	defer enough.Stop()
	for c, ok := first, true; ok; c, ok = calls.another(enough.C) {
		o.add(&p, c)
		calls.unrecorded++
	}
	slices.Sort(p.Sent)
	return p
}

func (o *recording) add(p *Progress, c chunkResult) {
	for _, id := range c.unreachable {
		p.Exceptions = append(p.Exceptions, o.skip(id, ReasonNoContact))
	}
	for _, id := range c.suppressed {
		p.Exceptions = append(p.Exceptions, o.skip(id, ReasonSuppressed))
	}
	for _, id := range c.unverified {
		p.Exceptions = append(p.Exceptions, o.skip(id, ReasonUnverified))
	}
	for _, v := range c.verdicts {
		p.Exceptions = append(p.Exceptions, o.screened(v))
	}
	for _, u := range c.unmade {
		p.Exceptions = append(p.Exceptions, o.failed(u.id, u.cause))
	}
	now := o.clock()
	for i, m := range c.messages {
		id := m.To.ID
		before, tried := o.batch.Exceptions[id]
		if c.results[i].ConsentUsed {
			p.ConsentsUsed = append(p.ConsentsUsed, id)
		}
		if c.results[i].Status != Delivered {
			p.Exceptions = append(p.Exceptions, o.failed(id, c.results[i]))
			continue
		}
		p.sent(id, c.results[i].Via)
		if tried {
			before.Outcome, before.LastAt, before.NextRetryAt, before.Via = Recovered, now, time.Time{}, c.results[i].Via
			p.Exceptions = append(p.Exceptions, before)
		}
	}
}

// failed returns the exception that follows from an answer other than Delivered.
func (o *recording) failed(id user.ID, answer Result) Exception {
	before := o.batch.Exceptions[id]
	before.UserID = id
	return o.policy.judge(before, answer, o.random(), o.clock(), o.batch.WorthlessAfter)
}

// screened turns a verdict into an exception. A recipient who would have to wait until after the
// deadline is skipped.
func (o *recording) screened(v Screening) Exception {
	e := o.skip(v.UserID, v.Reason)
	if v.Until.After(o.clock()) && v.Until.Before(o.batch.WorthlessAfter) {
		e.Outcome, e.NextRetryAt = Failed, v.Until
	}
	return e
}

func (o *recording) skip(id user.ID, reason string) Exception {
	e := o.batch.Exceptions[id]
	now := o.clock()
	e.UserID, e.Outcome, e.Reason, e.LastAt, e.NextRetryAt = id, Skipped, reason, now, time.Time{}
	if e.FirstAt.IsZero() {
		e.FirstAt = now
	}
	return e
}
