package coupons

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/killpoint"
)

// The fast path: most claims of a rush are the first claim of their user for a
// template whose terms have not changed since the last group. The fast path
// decides such claims by lastTerms, without reading, and stores them by one
// statement that checks those terms. The statement leaves out a holder that
// already has a coupon. Changed terms or too little stock roll everything back.
// Requests that are left undecided are decided again by a group that reads, so
// every refusal and every repetition is answered from stored rows.

// decideFast decides the group in one transaction and one round trip. It returns
// a verdict for each request that got a coupon, and an empty verdict for every
// other request.
func (s *Claims) decideFast(ctx context.Context, group []claim.Request) ([]claim.Verdict, error) {
	conn, err := s.Pool.Acquire(ctx) // may take long, and the decider's time is the time of its creation
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	a := fastAttempt{s, conn.Conn(), group, make([]claim.Verdict, len(group))}
	places := make([]int, len(group))
	for i := range places {
		places[i] = i
	}
	if s.last.reused() {
		if places, err = a.withoutUsedKeys(ctx, places); err != nil {
			return nil, err
		}
	}
	err = a.issue(ctx, places, maxSplits)
	if pg.Raced(err) && slices.ContainsFunc(a.verdicts, func(v claim.Verdict) bool { return v.Claim != nil }) {
		return a.verdicts, nil // another part of the group is stored; this one is left undecided
	}
	return a.verdicts, err
}

// fastAttempt fills in the verdicts of a group's requests. Requests are
// identified by their index in the group (place).
type fastAttempt struct {
	*Claims
	conn     *pgx.Conn
	group    []claim.Request
	verdicts []claim.Verdict
}

// maxSplits bounds how often a group of several templates is halved because the
// terms of a template have changed: the group ends in at most eight parts.
const maxSplits = 3

// issue decides the requests at these places in one transaction. If a template's
// terms have changed, issue halves the group by template. If keys are used
// already, issue repeats the attempt without the requests with these keys.
// Neither failure delays the claims of other users.
func (a fastAttempt) issue(ctx context.Context, places []int, splits int) error {
	part := make([]claim.Request, len(places))
	for i, at := range places {
		part[i] = a.group[at]
	}
	decider := a.last.decider(part)
	for i, at := range places {
		// lastTerms never decide a refusal.
		if v := decider.Decide(part[i]); v.Err == nil {
			a.verdicts[at] = v
		}
	}
	if len(decider.Fresh()) == 0 {
		return nil
	}
	f := newFastGroup(decider, part)
	err := f.store(ctx, a.conn, a.last.contested())
	if pg.Violates(err, "claim_counts_pkey") {
		a.last.contest()
		err = f.store(ctx, a.conn, true)
	}
	for _, at := range places {
		if v := a.verdicts[at]; v.Claim != nil && v.Claim.CouponID == 0 {
			a.verdicts[at] = claim.Verdict{}
		}
	}
	switch {
	case err == nil:
		a.last.noteOutcome(decider)
		return nil
	case pg.Violates(err, "coupons_origin"):
		a.last.noteReuse()
		left, err := a.withoutUsedKeys(ctx, places)
		if err != nil || len(left) == len(places) { // the other use of the key was undone meanwhile
			return err
		}
		return a.issue(ctx, left, splits)
	case !termsChanged(err):
		return err
	case len(f.templates) == 1 || splits == 0:
		a.last.noteOutcome(decider)
		return nil
	}
	middle := f.templates[len(f.templates)/2]
	var lower, upper []int
	for _, at := range places {
		if a.group[at].TemplateID < middle {
			lower = append(lower, at)
		} else {
			upper = append(upper, at)
		}
	}
	if err := a.issue(ctx, lower, splits-1); err != nil {
		return err
	}
	return a.issue(ctx, upper, splits-1)
}

func termsChanged(err error) bool {
	failure, refused := errors.AsType[*pgconn.PgError](err)
	return refused && failure.Code == expectFailed
}

// withoutUsedKeys returns the places whose keys no coupon has. For a request with
// a used key, a group that reads decides whether the request is a repetition or a
// conflict.
func (a fastAttempt) withoutUsedKeys(ctx context.Context, places []int) ([]int, error) {
	var keys []string
	for _, at := range places {
		if key := a.group[at].Key; key != "" {
			keys = append(keys, key)
		}
	}
	rows := pg.Rows(ctx, a.conn, `select origin_key from coupons where origin = '`+string(claim.ByTap)+`' and origin_key = any($1)`, keys)
	used := map[string]bool{}
	var key string
	if _, err := pgx.ForEachRow(rows, []any{&key}, func() error { used[key] = true; return nil }); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(places), func(at int) bool { return used[a.group[at].Key] }), nil
}

// fastGroup holds the coupons to be issued to users who have none yet.
type fastGroup struct {
	decider                    *claim.Decider
	templates, versions, asked []int64
	opens                      []*time.Time // of the last door among the requests; nil = no template has doors
	sellable                   []*int64     // see sellable
	claims, coupons            []int64      // issued
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
	if slices.ContainsFunc(d.Fresh(), func(n claim.Issue) bool { return n.Request.Door > 0 }) {
		f.judgeDoors()
	}
	return f
}

// judgeDoors fills in the terms of templates with doors. Of a template with doors the door that opens last
// among the requests is checked.
func (f *fastGroup) judgeDoors() {
	f.sellable, f.opens = sellable(f.decider, f.templates), make([]*time.Time, len(f.templates))
	for _, n := range f.decider.Fresh() {
		if n.Request.Door == 0 {
			continue
		}
		i, _ := slices.BinarySearch(f.templates, n.Request.TemplateID)
		t := f.decider.Templates[n.Request.TemplateID]
		if at := t.OpensFor(n.Request.Door); f.opens[i] == nil || at.After(*f.opens[i]) {
			f.opens[i] = &at
		}
	}
}

// store issues the coupons and fills their ids into their claims.
func (f *fastGroup) store(ctx context.Context, conn *pgx.Conn, contested bool) error {
	sql := fastIssueSQL
	if contested {
		sql = fastIssueContestedSQL
	}
	b := &pgx.Batch{} // without begin and commit it is one transaction
	b.Queue(pg.InGroup, pg.LockTimeout(ctx))
	b.Queue(lockShared, f.templates)
	f.queue(b, sql, f.columns(true, pg.TraceOf(ctx))...)
	if err := killpoint.Around("claims.first", func() error { return conn.SendBatch(ctx, b).Close() }); err != nil {
		return err
	}
	f.fill()
	return nil
}

func (f *fastGroup) queue(b *pgx.Batch, sql string, args ...any) {
	b.Queue(sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&f.claims, &f.coupons) })
}

// fill sets the coupon ids of the issued claims after the commit and returns
// their number. The ids usually come in the order of the claims. The order is not
// guaranteed, so a claim out of order is searched for.
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

// columns returns $1 to $18 of the fast path's statements.
func (f *fastGroup) columns(open bool, trace string) []any {
	return slices.Concat(countColumns(f.decider.Fresh()), tapColumns(f.decider.Fresh()),
		[]any{f.templates, f.versions, f.asked, event.CouponsIssued, trace, f.decider.At.UTC().Format(time.RFC3339Nano), open, f.opens, f.sellable})
}
