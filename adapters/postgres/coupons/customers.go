package coupons

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/timeline"
	"dropbell/domain/user"
)

// ofShops limits rows of templates t to the shops; none = all.
const ofShops = `(cardinality(@shops::bigint[]) = 0 or t.shop_number = any(@shops))`

// worthSQL returns the user, the currency, the orders with coupons that were paid and those that were
// refunded, as the sums of the shops count them, the number and the amount of the reported orders
// without coupons, and the last order, of each user and currency. It reads the coupons and the orders
// of these users alone.
var worthSQL = `
with logged as (` + salesSQL(`c.user_id = any(@users) and `+ofShops) + `
), row (user_id, currency, refund, orders, ordered, discount, plain, amount, at) as (
    select user_id, currency, refund, orders - shared_orders, ordered - shared_ordered, discount, 0, 0, case when not refund then at end from logged
    union all
    select w.user_id, t.currency, true, case when n.shared then 0 else n.orders end, case when n.shared then 0 else n.ordered end, n.discount, 0, 0, null
    from coupon_orders w join coupon_order_nets n on n.order_id = w.order_id join templates t on t.id = n.template_id
    where w.user_id = any(@users) and ` + ofShops + `
    union all
    select o.user_id, o.currency, null, 0, 0, 0, (o.refunded < o.amount)::int, o.amount - o.refunded, o.ordered_at
    from (select *, shop_number as shop from orders where user_id = any(@users)) o
    where (cardinality(@shops::bigint[]) = 0 or o.shop = any(@shops)) and not exists (
        select from (select e.coupon_id from coupon_operations e
                where e.order_id = o.order_id collate "default" and e.order_id <> '' and e.step = 'confirm' and e.outcome = 'done' offset 0) e
            join coupons c on c.id = e.coupon_id join templates t on t.id = c.template_id
        where t.shop_number = o.shop)
)
select user_id, currency, coalesce(sum(orders) filter (where not refund), 0)::bigint, coalesce(sum(ordered) filter (where not refund), 0)::bigint,
    coalesce(sum(discount) filter (where not refund), 0)::bigint, coalesce(sum(orders) filter (where refund), 0)::bigint,
    coalesce(sum(ordered) filter (where refund), 0)::bigint, coalesce(sum(discount) filter (where refund), 0)::bigint,
    sum(plain)::bigint, sum(amount)::bigint, coalesce(max(at), timestamptz 'epoch')
from row group by 1, 2 order by 1, 2`

// Worth returns what the users brought the shops; see [timeline.Purse].
func (s CouponSteps) Worth(ctx context.Context, users []user.ID, shops []int64) (map[user.ID]timeline.Worth, error) {
	s.DB = s.Reports(ctx)
	all, args := map[user.ID]timeline.Worth{}, pgx.NamedArgs{"users": users, "shops": append([]int64{}, shops...)}
	rows, err := s.Pool.Query(ctx, worthSQL, args)
	if err != nil {
		return nil, pg.Translate(err)
	}
	var id user.ID
	var p timeline.Spent
	var last time.Time
	w := &p.With
	_, err = pgx.ForEachRow(rows, []any{&id, &w.Currency, &w.Paid, &w.PaidAmount, &w.PaidDiscount, &w.Refunds, &w.RefundedAmount, &w.RefundedDiscount,
		&p.Without.Orders, &p.Without.Amount, &last}, func() error {
		of := all[id]
		of.Spent = append(of.Spent, p)
		if last.Unix() > 0 && last.After(of.LastOrder) {
			of.LastOrder = last.UTC()
		}
		all[id] = of
		return nil
	})
	if err != nil {
		return nil, pg.Translate(err)
	}
	rows, err = s.Pool.Query(ctx, `select c.user_id, count(*), count(*) filter (where c.state = 'used') from coupons c join templates t on t.id = c.template_id
		where c.user_id = any(@users) and `+ofShops+` group by 1`, args)
	if err != nil {
		return nil, pg.Translate(err)
	}
	var had, used int64
	_, err = pgx.ForEachRow(rows, []any{&id, &had, &used}, func() error {
		of := all[id]
		of.Coupons, of.Used = had, used
		all[id] = of
		return nil
	})
	return all, pg.Translate(err)
}

// Used returns the number of used coupons, as far as events have arrived; see [timeline.Purse].
func (s CouponSteps) Used(ctx context.Context, shops []int64) (n int64, err error) {
	err = s.Reports(ctx).Pool.QueryRow(ctx, `select coalesce(sum(y.used), 0)::bigint from coupon_tallies y join templates t on t.id = y.template_id where `+ofShops,
		pgx.NamedArgs{"shops": append([]int64{}, shops...)}).Scan(&n)
	return n, pg.Translate(err)
}
