package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/event"
	"dropbell/killpoint"
)

// Claims of a template that come in a rush are decided quickly: coupons and
// counts are written first, side by side with other groups, and the template,
// the one row that everybody needs, is locked for the last step only, which
// counts the coupons as issued if the terms are still those that were read and
// the stock suffices. If anything is not as it was read, nothing is stored and
// the group is decided again, slowly: behind the lock.
//
// Quick and slow groups of a template exclude each other, since they take the
// locks of users and template in opposite orders.
const (
	lockQuick = `select pg_advisory_xact_lock_shared(hashtextextended('dropbell:claims', id)) from unnest($1::bigint[]) as t (id)`
	lockSlow  = `select pg_advisory_xact_lock(hashtextextended('dropbell:claims', id)) from unnest($1::bigint[]) as t (id)`
)

// errOvertaken is the answer to a quick group that met another one.
var errOvertaken = errors.New("what was read has changed")

// expectFailed is the SQLSTATE of the function expect.
const expectFailed = "DB001"

// slow reports whether only a slow group can decide r. Taps, as a rush
// consists of, can be decided quickly; codes and what gates have accepted know
// further conditions.
func slow(r claim.Request) bool { return r.Origin != claim.ByTap || !r.AcceptedAt.IsZero() }

const readTermsSQL = `select ` + termColumns + ` from templates where id = any($1)`

// $1 to $3 are holders who had nothing yet, $4 to $7 the others. Both are in
// the order of template and user, as in every group.
const expectCounts = `
with added as (
    insert into claim_counts (template_id, user_id, issued) select * from unnest($1::bigint[], $2::bigint[], $3::int[])
    on conflict do nothing returning 1
), raised as (
    update claim_counts c set issued = a.issued from unnest($4::bigint[], $5::bigint[], $6::int[], $7::int[]) as a (template_id, user_id, before, issued)
    where c.template_id = a.template_id and c.user_id = a.user_id and c.issued = a.before returning 1
)
select expect((select count(*) from added) + (select count(*) from raised) = $8)`

// The templates are in the order of their ids, as in every group. Only this
// step knows how many are issued in all, so it writes the event: $4 is the
// topic, $5 the instant, $6 the trace. Whether the drop has ended is asked at
// the end: who has waited for the template's row is not judged again unless
// somebody changed it meanwhile.
const expectTerms = `
with sold as (
    update templates t set issued = t.issued + a.n from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as a (id, version, n)
    where t.id = a.id and t.version = a.version and t.issued + a.n <= t.stock
    returning t.id, a.n, t.issued, ` + pg.TemplateEndsAt + ` as ends
), announced as (
    insert into outbox (topic, payload, trace)
    select $4, jsonb_build_object('at', $5::text, 'issued',
        jsonb_agg(jsonb_build_object('template_id', id::text, 'issued', n, 'total', issued) order by id)), $6 from sold
)
select expect((select count(*) from sold) = cardinality($1::bigint[]) and (select min(ends) from sold) > clock_timestamp())`

// decideQuickly is one transaction in two round trips like [Claims.decideOnce].
// It returns [errOvertaken] if the group must be decided slowly.
func (s *Claims) decideQuickly(ctx context.Context, group []claim.Request) ([]claim.Verdict, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release() // closes a connection whose transaction is not over
	desk, err := readDesk(ctx, conn.Conn(), group)
	if err != nil {
		return nil, errors.Join(err, rollback(conn.Conn()))
	}
	s.last.learn(desk)
	verdicts, before := make([]claim.Verdict, len(group)), make(map[claim.Holder]int, len(desk.Counts))
	for h, n := range desk.Counts {
		before[h] = n
	}
	for i, r := range group {
		verdicts[i] = desk.Decide(r)
	}
	err = killpoint.Around("claims.quick", func() error { return storeQuickly(ctx, conn.Conn(), desk, before) })
	if err == nil {
		return verdicts, nil
	}
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok && failure.Code == expectFailed ||
		pg.Violates(err, "coupons_origin") {
		return nil, errors.Join(errOvertaken, rollback(conn.Conn()))
	}
	return nil, errors.Join(err, rollback(conn.Conn()))
}

// readDesk begins a transaction and reads what decides about the group,
// without keeping anybody else from changing it.
func readDesk(ctx context.Context, conn *pgx.Conn, group []claim.Request) (*claim.Desk, error) {
	q := questionOf(group)
	d := newDesk(q, len(group))
	b := &pgx.Batch{}
	b.Queue(`begin`)
	b.Queue(pg.IndexesOnly)
	b.Queue(lockQuick, q.templates)
	queueQuestion(b, d, q, readTermsSQL)
	return d, conn.SendBatch(ctx, b).Close()
}

// storeQuickly writes what was decided, given how many coupons the holders had
// before, and commits. The coupons' ids are filled into their claims.
func storeQuickly(ctx context.Context, conn *pgx.Conn, d *claim.Desk, before map[claim.Holder]int) error {
	b := &pgx.Batch{}
	if fresh := d.Fresh(); len(fresh) > 0 {
		templates, sums := issuedSums(d)
		versions := make([]int64, len(templates))
		for i, id := range templates {
			versions[i] = d.Templates[id].Version
		}
		b.Queue(expectCounts, expectedCounts(fresh, before)...)
		queueCoupons(b, d)
		b.Queue(expectTerms, templates, versions, sums, event.CouponsIssued, d.At.UTC().Format(time.RFC3339Nano), pg.TraceOf(ctx))
		b.Queue(addSecond, secondColumns(fresh)...)
	}
	b.Queue(`commit`)
	return conn.SendBatch(ctx, b).Close()
}
