package coupons

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/domain/template"
	"dropbell/killpoint"
)

// The fast path: most claims of a rush are the first of their user for a template
// whose terms have not changed since the last group. They are decided by lastTerms,
// without reading, and stored by one statement that checks those terms: a holder
// who has a coupon already is left out, and changed terms or too little stock roll
// everything back. Requests that are left undecided are decided again by a group
// that reads, so every refusal and every repetition is answered from stored rows.

// lastTerms are the terms that the last group which read has found. A group that
// issues coupons by lastTerms checks them in the same transaction, so they need no
// invalidation.
type lastTerms struct {
	mu    sync.Mutex
	terms map[int64]knownTerms
	// at is what the database's clock said, and read when that was known.
	at, read time.Time
	// Attempts that counted for nothing are followed by a pause.
	pausedUntil time.Time
	failures    int
	// Until then others, on other nodes, are thought to issue first coupons to
	// the same users at the same time.
	contestedUntil time.Time
}

type knownTerms struct {
	template.Template
	read time.Time
}

const (
	maxTerms = 1000
	// termsFor is how long terms are remembered, and this machine's clock is
	// trusted to run like the database's, which it does within a millisecond.
	termsFor   = 10 * time.Second
	contestFor = 10 * time.Second
	firstPause = 10 * time.Millisecond
	maxPause   = time.Second
)

// learn stores what a group has read.
func (l *lastTerms) learn(d *claim.Decider) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terms == nil || len(l.terms) > maxTerms {
		l.terms = map[int64]knownTerms{}
	}
	l.at, l.read = d.At, time.Now()
	for id, t := range d.Templates {
		l.terms[id] = knownTerms{t, l.read}
	}
}

// knows reports whether the fast path may issue coupons of the template.
func (l *lastTerms) knows(templateID int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, known := l.terms[templateID]
	now := time.Now()
	return known && now.Sub(t.read) < termsFor && now.After(l.pausedUntil)
}

// decider returns a decider with the terms of the group's templates and without
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

// noteOutcome pauses the fast path, longer each time, after attempts that issued
// too few coupons to be worth it.
func (l *lastTerms) noteOutcome(worth bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if worth {
		l.failures = 0
		return
	}
	l.pausedUntil = time.Now().Add(min(firstPause<<l.failures, maxPause))
	l.failures = min(l.failures+1, 10)
}

// contest records that another node issued a first coupon to the same user at
// the same time.
func (l *lastTerms) contest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contestedUntil = time.Now().Add(contestFor)
}

// contested reports whether that was so lately.
func (l *lastTerms) contested() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.contestedUntil)
}

// decideFast returns a verdict for each of the group that it issued a coupon
// to, in one transaction and one round trip, and an empty one for all others.
func (s *Claims) decideFast(ctx context.Context, group []claim.Request) ([]claim.Verdict, error) {
	conn, err := s.Pool.Acquire(ctx) // may take long, and the decider's time is that of its creation
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	verdicts := make([]claim.Verdict, len(group))
	decider := s.last.decider(group)
	for i, r := range group {
		// Refusals are not told by what is remembered.
		if v := decider.Decide(r); v.Err == nil {
			verdicts[i] = v
		}
	}
	if len(decider.Fresh()) == 0 {
		return verdicts, nil
	}
	f := newFastGroup(decider, group)
	issued, err := f.store(ctx, conn.Conn(), s.last.contested())
	if pg.Violates(err, "claim_counts_pkey") {
		s.last.contest()
		issued, err = f.store(ctx, conn.Conn(), true)
	}
	failure, refused := errors.AsType[*pgconn.PgError](err)
	if err != nil && !refused {
		return nil, err
	}
	for i, v := range verdicts {
		if v.Claim != nil && v.Claim.CouponID == 0 {
			verdicts[i] = claim.Verdict{}
		}
	}
	s.last.noteOutcome(2*issued >= len(decider.Fresh()))
	if refused && failure.Code != expectFailed && !pg.Violates(err, "coupons_origin") {
		return nil, err
	}
	return verdicts, nil
}

// fastGroup are coupons to be issued, as far as they are their holders' first.
type fastGroup struct {
	decider                    *claim.Decider
	templates, versions, asked []int64
	claims, coupons            []int64 // what was issued
}

func newFastGroup(d *claim.Decider, group []claim.Request) *fastGroup {
	asked := map[int64]int64{}
	for _, r := range group {
		asked[r.TemplateID]++
	}
	f := &fastGroup{decider: d}
	f.templates, _ = issuedSums(d)
	for _, id := range f.templates {
		f.versions, f.asked = append(f.versions, d.Templates[id].Version), append(f.asked, asked[id])
	}
	return f
}

// store returns how many coupons there are; their ids are filled into their
// claims.
func (f *fastGroup) store(ctx context.Context, conn *pgx.Conn, contested bool) (int, error) {
	sql := fastIssueSQL
	if contested {
		sql = fastIssueContestedSQL
	}
	b := &pgx.Batch{} // without begin and commit it is one transaction
	b.Queue(pg.IndexesOnly)
	b.Queue(lockShared, f.templates)
	f.queue(b, sql, f.columns(true, pg.TraceOf(ctx))...)
	if err := killpoint.Around("claims.first", func() error { return conn.SendBatch(ctx, b).Close() }); err != nil {
		return 0, err
	}
	return f.fill(), nil
}

func (f *fastGroup) queue(b *pgx.Batch, sql string, args ...any) {
	b.Queue(sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&f.claims, &f.coupons) })
}

// fill sets the coupons of the issued claims once everything is committed, and
// returns their number. They usually come in the order of the claims, which is
// not guaranteed: otherwise they are searched for.
func (f *fastGroup) fill() int {
	fresh, at := f.decider.Fresh(), 0
	for i, id := range f.claims {
		for at < len(fresh) && fresh[at].Claim.ID != claim.ID(id) {
			at++
		}
		if at == len(fresh) {
			at = slices.IndexFunc(fresh, func(n claim.Issue) bool { return n.Claim.ID == claim.ID(id) })
		}
		fresh[at].Claim.CouponID = f.coupons[i]
	}
	return len(f.claims)
}

// columns returns $1 to $16 of the fast path's statements.
func (f *fastGroup) columns(open bool, trace string) []any {
	return slices.Concat(countColumns(f.decider.Fresh()), tapColumns(f.decider.Fresh()),
		[]any{f.templates, f.versions, f.asked, event.CouponsIssued, trace, f.decider.At.UTC().Format(time.RFC3339Nano), open})
}
