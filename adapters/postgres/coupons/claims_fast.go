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

// countFirsts and issueFirsts give coupons to those of the holders $1 (template) and $2 (user)
// who have none. $3 is how many each would get; both are in the order of
// template and user, as in every group. $4 to $9 are the coupons: template,
// user, claim, key, instant, end of validity. $10 to $12
// are the templates in the order of their ids, with the versions that were
// read and the number of requests, of which none must be passed over for want
// of stock. $13 to $15 are topic, trace and instant of the event. If $16, the
// drop must be open, and that instant now.
//
// The set of holders is hashed only if somebody was passed over. A holder who
// gets a first coupon elsewhere at this very moment violates the key of the
// counts, which undoes everything; "besideOthers" passes over such a holder,
// too, but takes longer for each.
//
// closes_at is checked again after the row lock is held. PostgreSQL re-evaluates a
// WHERE clause after waiting for a lock only if the row was changed meanwhile.
//
// "is true" keeps the planner from joining, for which it knows the numbers of
// rows too badly: the set is hashed. Statements are added before its end.
const (
	countFirsts = `
with counted as (
    insert into claim_counts (template_id, user_id, issued)
    select * from unnest($1::bigint[], $2::bigint[], $3::int[]) as a (template_id, user_id, issued)
    where not exists (select from claim_counts c where c.template_id = a.template_id and c.user_id = a.user_id)`
	besideOthers = `
    on conflict do nothing`
	issueFirsts = `
    returning template_id, user_id, issued
), counts as materialized (
    select count(*) as holders, coalesce(sum(issued), 0) as issued from counted
), given as (
    insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
    select a.template_id, a.user_id, a.claim_id, '` + string(claim.ByTap) + `', a.key, a.issued_at, a.expires_at
    from unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::timestamptz[], $9::timestamptz[])
        as a (template_id, user_id, claim_id, key, issued_at, expires_at)
    where (select holders from counts) = cardinality($1::bigint[])
        or ((a.template_id, a.user_id) in (select template_id, user_id from counted)) is true
    returning template_id, issued_at, claim_id, id
), steps as materialized ( -- one, unless a gate accepted the claims at different instants
    select template_id, issued_at, count(*) as n from given group by template_id, issued_at
), sold as (
    update templates t set issued = t.issued + g.n
    from unnest($10::bigint[], $11::bigint[], $12::bigint[]) as a (id, version, asked)
    join (select template_id, sum(n) as n from steps group by template_id order by template_id) g on g.template_id = a.id
    where t.id = a.id and t.version = a.version and t.issued + a.asked <= t.stock
      and (not $16 or t.opens_at <= clock_timestamp() and clock_timestamp() < ` + pg.TemplateEndsAt + `)
    returning t.id, g.n, t.issued, ` + pg.TemplateEndsAt + ` as ends
), announced as (
    insert into outbox (topic, payload, trace)
    select $13, jsonb_build_object('at', $15::text, 'issued',
        jsonb_agg(jsonb_build_object('template_id', id::text, 'issued', n, 'total', issued) order by id)), $14 from sold
    having count(*) > 0
), drawn as (
    insert into claim_seconds as s (template_id, second, issued)
    select template_id, date_trunc('second', issued_at), sum(n) from steps group by 1, 2 order by 1, 2
    on conflict (template_id, second) do update set issued = s.issued + excluded.issued
), checked as materialized (
    select expect((select count(*) from sold) = (select count(distinct template_id) from steps)
        and (select issued from counts) = (select coalesce(sum(n), 0) from steps)
        and (not $16 or coalesce((select min(ends) from sold), 'infinity') > clock_timestamp()
            and $15::timestamptz between clock_timestamp() - interval '1 second' and clock_timestamp() + interval '1 second'))
)`
	issuedFirsts = `
select g.claims, g.coupons from (select array_agg(claim_id) as claims, array_agg(id) as coupons from given) g cross join checked`
)

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

// knows reports whether it is worth trying to issue a coupon of the template
// by what is remembered.
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

// contest notes that somebody got a first coupon elsewhere at the same time.
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
	conn, err := s.Pool.Acquire(ctx) // which may take long, and the decider knows the time
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
	sql := countFirsts + issueFirsts + issuedFirsts
	if contested {
		sql = countFirsts + besideOthers + issueFirsts + issuedFirsts
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

// fill gives the claims that were issued their coupons once everything is
// committed, and returns how many that are. They come in the order of the
// claims, which nobody promises: if they do not they are looked for.
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

// columns are the arguments of [countFirsts] and [issueFirsts].
func (f *fastGroup) columns(open bool, trace string) []any {
	return slices.Concat(countColumns(f.decider.Fresh()), tapColumns(f.decider.Fresh()),
		[]any{f.templates, f.versions, f.asked, event.CouponsIssued, trace, f.decider.At.UTC().Format(time.RFC3339Nano), open})
}
