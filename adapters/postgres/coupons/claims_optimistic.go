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

// The optimistic path writes coupons and counts first, concurrently with other groups. Only
// the last step locks the template's row, which every group needs. This step adds the issued
// coupons to the row if the terms are unchanged since they were read and the stock suffices.
// Otherwise nothing is stored, and the locked path decides the group again.
//
// Optimistic and locked groups of a template exclude each other, because they lock the rows of
// users and the row of the template in opposite orders.
const (
	lockShared    = `select pg_advisory_xact_lock_shared(hashtextextended('dropbell:claims', id)) from unnest($1::bigint[]) as t (id)`
	lockExclusive = `select pg_advisory_xact_lock(hashtextextended('dropbell:claims', id)) from unnest($1::bigint[]) as t (id)`
)

// lockedShared and lockedExclusive return the templates among $1 for which a group would have
// to wait, because another session holds the row lock or the advisory lock. lockedShared is
// for groups of the optimistic path, lockedExclusive for groups of the locked path. The
// statements themselves do not wait.
const (
	lockedShared    = lockedTemplates + `pg_try_advisory_xact_lock_shared(hashtextextended('dropbell:claims', a.id))`
	lockedExclusive = lockedTemplates + `pg_try_advisory_xact_lock(hashtextextended('dropbell:claims', a.id))`

	lockedTemplates = `
with free as materialized (select id from templates where id = any($1) for no key update skip locked)
select a.id from unnest($1::bigint[]) as a (id) join templates t on t.id = a.id
where not exists (select from free where free.id = a.id) or not `
)

// lockedOf returns a function that finds locked templates by one of the two statements.
func (s *Claims) lockedOf(sql string) func(context.Context, []int64) ([]int64, error) {
	return func(ctx context.Context, templates []int64) ([]int64, error) {
		return pgx.CollectRows(pg.Rows(ctx, s.Pool, sql, templates), pgx.RowTo[int64])
	}
}

// errChanged is returned by an optimistic group if a concurrent group has changed the rows
// that the optimistic group had read.
var errChanged = errors.New("what was read has changed")

// expectFailed is the SQLSTATE of the function expect.
const expectFailed = "DB001"

// needsLock reports whether only a locked group can decide r. Taps can be decided
// optimistically. Redeem codes and claims that a gate accepted depend on further rows.
func needsLock(r claim.Request) bool { return r.Origin != claim.ByTap || !r.AcceptedAt.IsZero() }

const readTermsSQL = `select ` + termColumns + ` from templates t where id = any($1)`

// $1 to $3 are holders without coupons before this group; $4 to $7 are all other holders. Both
// lists are ordered by template and user, as in every group.
const expectCounts = `
with added as (
    insert into claim_counts (template_id, user_id, issued) select * from unnest($1::bigint[], $2::bigint[], $3::int[])
    on conflict do nothing returning 1
), raised as (
    update claim_counts c set issued = a.issued from unnest($4::bigint[], $5::bigint[], $6::int[], $7::int[]) as a (template_id, user_id, before, issued)
    where c.template_id = a.template_id and c.user_id = a.user_id and c.issued = a.before returning 1
)
select expect((select count(*) from added) + (select count(*) from raised) = $8)`

// The templates are ordered by id, as in every group. This step writes the event, because only
// this step has the total number of issued coupons: $4 is the topic, $5 the time, $6 the
// trace. $7 is how many coupons may be issued, shorter or null = the stock. closes_at is checked again after the row lock is held: PostgreSQL re-evaluates a
// WHERE clause after waiting for a lock only if the row was changed meanwhile.
const expectTerms = `
with sold as (
    update templates t set issued = t.issued + a.n from unnest($1::bigint[], $2::bigint[], $3::bigint[], $7::bigint[]) as a (id, version, n, sellable)
    where t.id = a.id and t.version = a.version and t.issued + a.n <= least(t.stock - t.held, a.sellable)
    returning t.id, a.n, t.issued, ` + pg.TemplateEndsAt + ` as ends
), announced as (
    insert into outbox (topic, payload, trace)
    select $4, jsonb_build_object('at', $5::text, 'issued',
        jsonb_agg(jsonb_build_object('template_id', id::text, 'issued', n, 'total', issued) order by id)), $6 from sold
)
select expect((select count(*) from sold) = cardinality($1::bigint[]) and (select min(ends) from sold) > clock_timestamp())`

// decideOptimistically is one transaction in two round trips, like [Claims.decideLocked]. It
// returns [errChanged] if the locked path must decide the group.
func (s *Claims) decideOptimistically(ctx context.Context, group []claim.Request) ([]claim.Verdict, error) {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release() // closes a connection whose transaction is not over
	decider, err := readUnlocked(ctx, conn.Conn(), group)
	if err != nil {
		return nil, errors.Join(err, rollback(conn.Conn()))
	}
	s.last.learn(decider)
	for _, t := range decider.Templates {
		if t.HouseholdLimit > 0 {
			return nil, errors.Join(errChanged, rollback(conn.Conn()))
		}
	}
	verdicts, before := make([]claim.Verdict, len(group)), make(map[claim.Holder]int, len(decider.Counts))
	for h, n := range decider.Counts {
		before[h] = n
	}
	for i, r := range group {
		verdicts[i] = decider.Decide(r)
	}
	err = killpoint.Around("claims.quick", func() error { return storeIfUnchanged(ctx, conn.Conn(), decider, before) })
	if err == nil {
		return verdicts, nil
	}
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok && failure.Code == expectFailed ||
		pg.Violates(err, "coupons_origin") {
		return nil, errors.Join(errChanged, rollback(conn.Conn()))
	}
	return nil, errors.Join(err, rollback(conn.Conn()))
}

// readUnlocked begins a transaction and reads the group's read set without locks.
func readUnlocked(ctx context.Context, conn *pgx.Conn, group []claim.Request) (*claim.Decider, error) {
	q := readSetOf(group)
	d := newDecider(q, len(group))
	b := &pgx.Batch{}
	b.Queue(`begin`)
	b.Queue(pg.InGroup, pg.LockTimeout(ctx))
	b.Queue(lockShared, q.templates)
	queueReads(b, d, q, readTermsSQL)
	return d, conn.SendBatch(ctx, b).Close()
}

// storeIfUnchanged writes the decisions, commits, and fills the coupons' ids into their
// claims. before is the number of coupons of each holder when the group was read; if a number
// has changed, nothing is stored.
func storeIfUnchanged(ctx context.Context, conn *pgx.Conn, d *claim.Decider, before map[claim.Holder]int) error {
	b := &pgx.Batch{}
	if fresh := d.Fresh(); len(fresh) > 0 {
		templates, sums := issuedSums(d)
		versions := make([]int64, len(templates))
		for i, id := range templates {
			versions[i] = d.Templates[id].Version
		}
		b.Queue(expectCounts, expectedCounts(fresh, before)...)
		queueCoupons(b, d)
		b.Queue(expectTerms, templates, versions, sums, event.CouponsIssued, d.At.UTC().Format(time.RFC3339Nano), pg.TraceOf(ctx), sellable(d, templates))
		b.Queue(addSecond, secondColumns(fresh)...)
	}
	b.Queue(`commit`)
	return conn.SendBatch(ctx, b).Close()
}

// sellable returns how many coupons of each template may be issued by taps at the time of the decisions. It
// returns nil if none of the templates has doors: then these are their stocks.
func sellable(d *claim.Decider, templates []int64) []*int64 {
	var list []*int64
	for i, id := range templates {
		if t := d.Templates[id]; len(t.Doors) > 0 {
			if list == nil {
				list = make([]*int64, len(templates))
			}
			list[i] = new(t.SellableAt(d.At))
		}
	}
	return list
}
