package coupons

import (
	"slices"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
)

// lastTerms are the terms that the last reading group found. A group that issues
// coupons by lastTerms checks the terms in the same transaction, so lastTerms
// need no invalidation.
type lastTerms struct {
	mu    sync.Mutex
	terms map[int64]knownTerms
	// limited is set once one of the terms has a household limit.
	limited bool
	// at is the time of the database's clock, and read the local time, at the
	// last reading.
	at, read time.Time
	// pauses suspend the fast path for templates of which an attempt issued too
	// few coupons.
	pauses map[int64]pause
	// Until reusedUntil, clients are expected to reuse keys for other templates.
	reusedUntil time.Time
	// Until contestedUntil, other nodes are expected to issue first coupons to
	// the same users at the same time.
	contestedUntil time.Time
}

type knownTerms struct {
	template.Template
	read time.Time
}

type pause struct {
	until    time.Time
	failures int
}

const (
	maxTerms = 1000
	// termsFor is how long terms are remembered. For as long, this machine's
	// clock is trusted to run like the database's clock, which it does within a
	// millisecond.
	termsFor   = 10 * time.Second
	contestFor = 10 * time.Second
	reuseFor   = 10 * time.Second
	firstPause = 10 * time.Millisecond
	maxPause   = time.Second
)

// learn stores the terms that a group has read.
func (l *lastTerms) learn(d *claim.Decider) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terms == nil || len(l.terms) > maxTerms {
		l.terms = map[int64]knownTerms{}
	}
	l.at, l.read = d.At, time.Now()
	for id, t := range d.Templates {
		l.terms[id] = knownTerms{t, l.read}
		l.limited = l.limited || t.HouseholdLimit > 0
	}
}

// knows reports whether the fast path may issue coupons of the template.
func (l *lastTerms) knows(templateID int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, known := l.terms[templateID]
	now := time.Now()
	return known && t.HouseholdLimit == 0 && now.Sub(t.read) < termsFor && now.After(l.pauses[templateID].until)
}

// limitsHouseholds reports whether a template of the group is known to have a household limit, which only a locked
// group can judge.
func (l *lastTerms) limitsHouseholds(group []claim.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limited && slices.ContainsFunc(group, func(r claim.Request) bool { return l.terms[r.TemplateID].HouseholdLimit > 0 })
}

// decider returns a decider that knows the terms of the group's templates and no
// holders.
func (l *lastTerms) decider(group []claim.Request) *claim.Decider {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := newDecider(readSet{}, len(group))
	d.At = l.at.Add(time.Since(l.read)).Truncate(time.Microsecond)
	for _, r := range group {
		if t, known := l.terms[r.TemplateID]; known {
			d.Templates[r.TemplateID] = t.Template
		}
	}
	return d
}

// noteOutcome pauses the fast path for each template of which the attempt issued
// less than half of the requested coupons. For such a template the attempt is not
// worth its cost. Each further pause is longer, up to maxPause.
func (l *lastTerms) noteOutcome(d *claim.Decider) {
	issued, asked := map[int64]int{}, map[int64]int{}
	for _, n := range d.Fresh() {
		asked[n.Request.TemplateID]++
		if n.Claim.CouponID != 0 {
			issued[n.Request.TemplateID]++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pauses == nil || len(l.pauses) > maxTerms {
		l.pauses = map[int64]pause{}
	}
	for id, n := range asked {
		if 2*issued[id] >= n {
			delete(l.pauses, id)
			continue
		}
		failures := l.pauses[id].failures
		l.pauses[id] = pause{time.Now().Add(min(firstPause<<failures, maxPause)), min(failures+1, 10)}
	}
}

// noteReuse records that a key was used again for another template.
func (l *lastTerms) noteReuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reusedUntil = time.Now().Add(reuseFor)
}

// reused reports whether a key was reused for another template within reuseFor.
func (l *lastTerms) reused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.reusedUntil)
}

// contest records that another node issued a first coupon to the same user at the
// same time.
func (l *lastTerms) contest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contestedUntil = time.Now().Add(contestFor)
}

// contested reports whether [lastTerms.contest] was called within contestFor.
func (l *lastTerms) contested() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.contestedUntil)
}
