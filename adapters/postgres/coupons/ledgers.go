package coupons

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/template"
)

// Ledgers counts a template's stock and its sales over time.
type Ledgers struct{ *pg.DB }

// NewLedgers returns the ledgers of db.
func NewLedgers(db *pg.DB) Ledgers { return Ledgers{db} }

// givenOverSQL counts the coupons that staff gave a user beyond the limit; the user
// and the template are to be added as conditions.
const givenOverSQL = `select count(*) from coupons c where c.origin = 'grant' and c.origin_key like '` + claim.OverLimit + `%'`

// fullHouseholds counts the households of the template that have more coupons than they may, staff's grants
// beyond the limit left out.
func fullHouseholds(id, condition string) string {
	return `(select count(*) from (select n.household from claim_counts n where n.template_id = ` + id + ` and n.household is not null` + condition + `
        group by n.household having sum(n.issued) > (select household_limit from templates where id = ` + id + `)
            + (` + givenOverSQL + ` and c.template_id = ` + id + ` and c.user_id in (select user_id from claim_counts where template_id = ` + id + ` and household = n.household))) h)`
}

// heldOffSQL is how many of the coupons of template t that are kept for users who wait its
// waitlist does not explain. Coupons that users of the waitlist got are counted from the rows,
// unless rows g of the drop were removed after their retention.
const heldOffSQL = `abs(t.held - coalesce((select w.put - w.released - case when g.template_id is not null then w.filled
    else (select count(*) from coupons c where c.template_id = t.id and c.origin = 'waitlist') end from waitlists w where w.template_id = t.id), 0))`

// ledgerSQL counts all rows, so it is for audits, never for pages. A single
// statement has one snapshot, so ledgerSQL may run during a rush. Coupons that
// were removed after their retention still count.
var ledgerSQL = `
select t.id, t.stock, t.stock - t.issued - t.held, t.held, ` + heldOffSQL + `, 0::bigint, r.n + coalesce(g.returned, 0),
    (select count(*) from coupons c where c.template_id = t.id) + coalesce(g.coupons, 0) - r.n - coalesce(g.returned, 0),
    (select coalesce(sum(n.issued), 0) from claim_counts n where n.template_id = t.id) + coalesce(g.counted, 0),
    (select count(*) from claim_counts n where n.template_id = t.id and n.issued > t.per_user_limit
        and n.issued > t.per_user_limit + (` + givenOverSQL + ` and c.template_id = n.template_id and c.user_id = n.user_id))
    + case when t.household_limit > 0 then ` + fullHouseholds("t.id", "") + ` else 0 end
from templates t left join removed_coupons g on g.template_id = t.id,
    lateral (select count(*) as n from coupons c where c.template_id = t.id and c.returned) r `

func scanLedger(row pgx.CollectableRow) (l claim.Ledger, err error) {
	err = row.Scan(&l.TemplateID, &l.Total, &l.OnSale, &l.Held, &l.HeldOff, &l.Writing, &l.Returned, &l.Issued, &l.PerUser, &l.OverLimit)
	return l, err
}

// Ledger recounts the template's stock, or returns [template.ErrNotFound].
func (s Ledgers) Ledger(ctx context.Context, templateID int64) (claim.Ledger, error) {
	return pg.One(ctx, s.Pool, scanLedger, template.ErrNotFound, ledgerSQL+`where t.id = $1`, templateID)
}

// sellingSQL returns at most $2 templates, the newest first, that sold coupons
// within $1 or whose coupons have owners that are still to be checked.
const sellingSQL = `
select t.id from (
    select template_id from claim_seconds where second > now() - $1::interval
    union select template_id from stock_counts where checked_to < seen_to) l
    cross join lateral (select id from templates where id = l.template_id and issued + returned > 0 and state <> 'draft' limit 1) t
order by t.id desc limit $2`

// countSQL returns the ledger of template $1 without the sum of the users'
// counts. It also returns two coupon ids: up to the first, the owners of coupons
// are checked, and up to the second they may be checked now. countSQL counts only
// coupons with ids above the ids that were counted before. seen_xact is used like
// the transaction number in notice_cursor, see [horizonSQL]: seen_xact stays the
// same until every earlier transaction has ended. So transactions that begin
// meanwhile do not delay the count again and again.
const countSQL = `
with known as materialized (
    select t.id, t.stock, t.issued, t.held, coalesce(k.coupons, 0) as coupons, coalesce(k.counted_to, 0) as counted_to, coalesce(k.checked_to, 0) as checked_to,
        k.seen_to, k.seen_xact, case when w.waits then k.counted_to else coalesce(k.seen_to, 0) end as settled_to, w.waits
    from templates t left join stock_counts k on k.template_id = t.id
    cross join lateral (select coalesce(k.seen_xact > pg_snapshot_xmin(pg_current_snapshot())
        and k.seen_xact < pg_snapshot_xmax(pg_current_snapshot()), false) as waits) w where t.id = $1
), fresh as materialized (
    select count(c.id) as n, count(c.id) filter (where c.id <= k.settled_to) as settled, coalesce(max(c.id), k.counted_to) as newest
    from known k left join coupons c on c.template_id = k.id and c.id > k.counted_to group by k.counted_to, k.settled_to
), stored as (
    insert into stock_counts as s (template_id, coupons, counted_to, seen_to, seen_xact)
    select k.id, k.coupons + f.settled, k.settled_to, case when k.waits then k.seen_to else f.newest end,
        case when k.waits then k.seen_xact else pg_current_xact_id() end from known k, fresh f
    on conflict (template_id) do update set coupons = excluded.coupons, counted_to = excluded.counted_to, seen_to = excluded.seen_to,
        seen_xact = excluded.seen_xact
)
select k.stock, k.stock - k.issued - k.held, k.held, r.n + coalesce(g.returned, 0), k.coupons + f.n + coalesce(g.coupons, 0) - r.n - coalesce(g.returned, 0),
    k.checked_to, k.settled_to
from known k left join removed_coupons g on g.template_id = k.id cross join fresh f,
    lateral (select count(*) as n from coupons c where c.template_id = k.id and c.returned) r`

// checkSQL takes up to $4 coupons of template $1 with ids above $2 and up to $3.
// For the owners of these coupons it compares the number of their coupons with
// claim_counts. It returns the id of the last coupon, the number of coupons, the
// sum of the differences, and the number of owners and households that exceed their
// limit.
var checkSQL = `
with part as materialized (
    select id, user_id from coupons where template_id = $1 and id > $2 and id <= $3 order by id limit $4
), owners as (
    select o.user_id, coalesce(n.issued, 0) as counted,
        (select count(*) from coupons c where c.user_id = o.user_id and c.template_id = $1) as has
    from (select distinct user_id from part) o left join claim_counts n on n.template_id = $1 and n.user_id = o.user_id
)
select coalesce((select max(id) from part), $2), (select count(*) from part), coalesce(sum(abs(counted - has)), 0),
    count(*) filter (where counted > l.most and counted > l.most + (` + givenOverSQL + ` and c.template_id = $1 and c.user_id = owners.user_id))
    + case when (select household_limit from templates where id = $1) > 0 then ` + fullHouseholds("$1", ` and n.household in (
        select household from claim_counts where template_id = $1 and user_id in (select user_id from owners))`) + ` else 0 end
from owners, (select per_user_limit as most from templates where id = $1) l`

// Selling returns the ledgers of up to limit templates that sold coupons within
// the window. Each coupon is counted for good only once. The counts of its owner
// are compared once too. A call compares the owners of up to owners coupons, so
// after a rush several calls are needed. Owners with a difference are compared
// again by every call. Changes to rows that were already counted are found only
// by [Ledgers.Ledger].
func (s Ledgers) Selling(ctx context.Context, window time.Duration, limit, owners int) ([]claim.Ledger, error) {
	ids, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, sellingSQL, window, limit), pgx.RowTo[int64])
	if err != nil {
		return nil, pg.Translate(err)
	}
	var list []claim.Ledger
	for _, id := range ids {
		l := claim.Ledger{TemplateID: id}
		var checked, settled int64
		if err := s.Pool.QueryRow(ctx, countSQL, id).Scan(&l.Total, &l.OnSale, &l.Held, &l.Returned, &l.Issued, &checked, &settled); err != nil {
			return nil, pg.Translate(err)
		}
		n, err := s.checkOwners(ctx, &l, checked, settled, owners)
		if err != nil {
			return nil, err
		}
		list, owners = append(list, l), owners-n
	}
	return list, nil
}

// checkOwners takes up to limit coupons with ids above after and up to last, and
// adds the differences in the counts of their owners to l. It returns the number
// of coupons read. If there is no difference, checkOwners stores how far it has
// come.
func (s Ledgers) checkOwners(ctx context.Context, l *claim.Ledger, after, last int64, limit int) (n int, err error) {
	var to, off int64
	l.PerUser = l.Issued + l.Returned
	if after >= last || limit <= 0 {
		return 0, nil
	}
	if err := s.Pool.QueryRow(ctx, checkSQL, l.TemplateID, after, last, limit).Scan(&to, &n, &off, &l.OverLimit); err != nil {
		return 0, pg.Translate(err)
	}
	if l.PerUser += off; off > 0 || l.OverLimit > 0 {
		return n, nil
	}
	if n < limit {
		to = last
	}
	_, err = s.Pool.Exec(ctx, `update stock_counts set checked_to = $2 where template_id = $1`, l.TemplateID, to)
	return n, pg.Translate(err)
}

// curveSQL returns the steps of template $1, at most $2, and when its stock was given for the first time: the first second
// at whose end as many coupons were given as the stock had then. The stock before a change is in the audit log. Coupons that the
// waitlist gave were not for sale.
const curveSQL = `
with sold as materialized (
    select second, issued - waited as issued, sum(issued - waited) over (order by second) as total
    from claim_seconds where template_id = $1 and issued > waited
), stocks as materialized (
    select at, (before ->> 'Stock')::bigint as was from audit
    where object_kind = 'template' and object_id = $1::bigint::text and action = 'template.edit' and before ->> 'Stock' <> after ->> 'Stock'
), gone as (
    select min(second) as at from sold where total >= coalesce(
        (select was from stocks where at > sold.second + interval '1 second' order by at limit 1), (select stock from templates where id = $1))
), span as (
    select min(second) as first, max(second) as last from sold
), step as (
    select first, greatest(1, ceil((extract(epoch from last - first) + 1) / $2))::bigint as width from span where first is not null
)
select width, first + n * width * interval '1 second', issued, most, most_at, gone.at
from step cross join gone, lateral (
    select floor(extract(epoch from second - first) / width)::bigint as n, sum(issued)::bigint as issued,
        max(issued) as most, (array_agg(second order by issued desc, second))[1] as most_at
    from sold group by 1) steps
order by n`

// Curve returns the template's sales over time, in at most points steps.
func (s Ledgers) Curve(ctx context.Context, templateID int64, points int) (claim.Curve, error) {
	var seconds int64
	var gone *time.Time
	sold, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, curveSQL, templateID, points), func(row pgx.CollectableRow) (p claim.Point, err error) {
		err = row.Scan(&seconds, &p.At, &p.Issued, &p.Most, &p.MostAt, &gone)
		return p, err
	})
	c := claim.NewCurve(time.Duration(seconds)*time.Second, sold)
	if gone != nil {
		c.GoneAt = gone.Add(time.Second)
	}
	return c, pg.Translate(err)
}

// Pace returns the number of coupons issued in each of the last complete seconds since the opening,
// the oldest first, without coupons that the waitlist gave.
func (s Ledgers) Pace(ctx context.Context, templateID int64, opensAt time.Time, seconds int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `
		select coalesce(c.issued - c.waited, 0) from generate_series(
			greatest(date_trunc('second', now()) - $2 * interval '1 second', date_trunc('second', $3::timestamptz)),
			date_trunc('second', now()) - interval '1 second', interval '1 second') as s (second)
		left join claim_seconds c on c.template_id = $1 and c.second = s.second order by s.second`, templateID, seconds, opensAt)
}
