package coupons

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
)

// salesSQL returns, for every logged payment and refund (o) that meets the condition, the
// amounts that the drop's sums get: template_id, hour, refund, orders, ordered, discount,
// shared_orders, shared_ordered; and user_id, currency and at, the instant of the step. The order's amount is that of the coupon's lock. It counts
// with the coupon of the template that was confirmed first, and is shared if a coupon of
// another template of the shop was confirmed before, in the same currency. A refund takes
// back what its payment counted. A refund that was undone counts less itself, in its hour. Refunds of
// orders as a whole are in coupon_order_nets instead, also those after which the coupon stays used. From the first of them on,
// a refund of a single coupon of the order counts nothing; one before them counts, and they take back less.
func salesSQL(condition string) string {
	return `
    select c.template_id, date_trunc('hour', coalesce(r.at, o.at), 'UTC') as hour, o.step <> 'confirm' as refund, n.orders, n.orders * coalesce(l.order_amount, 0) as ordered,
        s.sign * o.discount as discount, n.orders * n.shared as shared_orders, n.orders * n.shared * coalesce(l.order_amount, 0) as shared_ordered,
        c.user_id, t.currency, o.at
    from coupon_operations o join coupons c on c.id = o.coupon_id join templates t on t.id = c.template_id
        join coupon_operations u on u.coupon_id = o.coupon_id and u.order_id = o.order_id and u.step = 'confirm' and u.outcome = 'done'
        left join coupon_operations l on l.coupon_id = o.coupon_id and l.order_id = o.order_id and l.step = 'lock' and l.outcome = 'done'
        left join coupon_operations r on o.step = 'restore' and r.coupon_id = o.coupon_id and r.order_id = o.order_id and r.step = 'refund' and r.outcome = 'undone'
        cross join lateral (select case o.step when 'restore' then -1 else 1 end as sign) s
        cross join lateral (select s.sign * (count(*) filter (where b.template_id = c.template_id) = 0)::int as orders,
                (count(*) filter (where b.template_id <> c.template_id) > 0)::int as shared
            from coupon_operations e join coupons b on b.id = e.coupon_id join templates bt on bt.id = b.template_id
            where e.order_id = o.order_id and e.order_id <> '' and e.step = 'confirm' and e.outcome = 'done' and e.id < u.id
                and bt.shop_number = t.shop_number and bt.currency = t.currency) n
    where o.step in ('confirm', 'refund', 'restore') and o.outcome in ('done', 'undone') and o.order_id <> ''
        and not (o.step <> 'confirm' and exists (select from coupon_order_refunds f where f.order_id = o.order_id and o.coupon_id <> all(f.alone))) and ` + condition
}

// countedSalesSQL computes the sums that sale_hours must have now for template $1: of the
// logged steps whose events do not wait, by hour. Hours are left as they are if steps of
// them were removed after their retention.
var countedSalesSQL = `
waiting as materialized (` + pg.WaitingEvents("coupon-tallies", event.CouponsChanged, event.CouponChanged) + `
), changes as (
    ` + waitingChangesSQL + `
), ahead as materialized (
    select e.operation_id::bigint as id from changes w, jsonb_to_record(w.change) as e (template_id text, operation_id text)
    where e.template_id = $1::bigint::text
), logged as (` + salesSQL(`c.template_id = $1 and c.version > 0 and not exists (select from ahead a where a.id = o.id)`) + `
), floor as (
    select coalesce((select date_trunc('hour', until, 'UTC') + interval '1 hour' from removed_steps), '-infinity') as since
), counted as (
    select hour, refund, sum(orders)::bigint as orders, sum(ordered)::bigint as ordered, sum(discount)::bigint as discount,
        sum(shared_orders)::bigint as shared_orders, sum(shared_ordered)::bigint as shared_ordered
    from (select hour, refund, orders, ordered, discount, shared_orders, shared_ordered from logged
        union all select hour, true, orders, ordered, discount, case when shared then orders else 0 end, case when shared then ordered else 0 end
        from coupon_order_nets where template_id = $1) l group by 1, 2
), kept as (
    select * from sale_hours where template_id = $1
), compared as (
    select hour, refund, coalesce(c.orders, 0) as orders, coalesce(c.ordered, 0) as ordered, coalesce(c.discount, 0) as discount,
        coalesce(c.shared_orders, 0) as shared_orders, coalesce(c.shared_ordered, 0) as shared_ordered,
        abs(coalesce(c.orders, 0) - coalesce(k.orders, 0)) + abs(coalesce(c.ordered, 0) - coalesce(k.ordered, 0))
            + abs(coalesce(c.discount, 0) - coalesce(k.discount, 0)) + abs(coalesce(c.shared_orders, 0) - coalesce(k.shared_orders, 0))
            + abs(coalesce(c.shared_ordered, 0) - coalesce(k.shared_ordered, 0)) as off
    from counted c full join kept k using (hour, refund), floor f
    where hour >= f.since and not exists (select from removed_coupons g where g.template_id = $1)
)`

// SalesOff returns the total difference between the sums of the template's orders and the
// logged steps, in orders and minor units added together; 0 if every event was counted once.
// It reads all steps of the template, so it is for audits.
func (s CouponTallies) SalesOff(ctx context.Context, templateID int64) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `with `+countedSalesSQL+` select coalesce(sum(off), 0)::bigint from compared`, templateID).Scan(&n)
	return n, pg.Translate(err)
}

// RecountSales replaces sums of orders that differ from the logged steps and returns the
// difference; 0 if the template's sums were never compared, as of drops from before there
// were such sums. The result is exact even while events are handled, as that of
// [CouponTallies.Recount].
func (s CouponTallies) RecountSales(ctx context.Context, templateID int64) (off int64, err error) {
	if off, err = s.SalesOff(ctx, templateID); err != nil || off == 0 {
		return 0, errors.Join(err, pg.Recounted(ctx, s.DB, templateID, "sales"))
	}
	var known bool
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into coupon_tallies (template_id) values ($1) on conflict do nothing`, templateID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select from coupon_tallies where template_id = $1 for update`, templateID); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select exists (select from figure_recounts where template_id = $1 and figure = 'sales')`, templateID).Scan(&known); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `with `+countedSalesSQL+`, changed as (
			insert into sale_hours as h (template_id, hour, refund, orders, ordered, discount, shared_orders, shared_ordered)
			select $1, hour, refund, orders, ordered, discount, shared_orders, shared_ordered from compared where off <> 0
			on conflict (template_id, hour, refund) do update set orders = excluded.orders, ordered = excluded.ordered, discount = excluded.discount,
				shared_orders = excluded.shared_orders, shared_ordered = excluded.shared_ordered
			) select coalesce(sum(off), 0)::bigint from compared`, templateID).Scan(&off)
	})
	if !known {
		off = 0
	}
	return off, errors.Join(err, pg.Recounted(ctx, s.DB, templateID, "sales"))
}

// SalesToRecount returns up to limit templates whose orders are to be compared with the
// logged steps: templates that changed within a month, and were never compared or have changed
// since the last comparison.
func (s CouponTallies) SalesToRecount(ctx context.Context, limit int) ([]int64, error) {
	return s.ids(ctx, `select l.template_id from tally_changes l
		cross join lateral (select changed_at from coupon_tallies where template_id = l.template_id limit 1) y
		left join lateral (select at from figure_recounts where template_id = l.template_id and figure = 'sales' limit 1) r on true
		where l.at > now() - interval '30 days' and (r.at is null or y.changed_at > r.at) order by r.at nulls first, l.template_id limit $1`, limit)
}

// SalesImpossible returns up to limit templates whose sums of the last two days must be wrong: a
// sum is below 0.
func (s CouponTallies) SalesImpossible(ctx context.Context, limit int) ([]int64, error) {
	return s.ids(ctx, `select distinct template_id from sale_hours where hour > now() - interval '2 days'
		and least(orders, ordered, discount, shared_orders, shared_ordered) < 0 limit $1`, limit)
}
