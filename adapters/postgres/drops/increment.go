package drops

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/increment"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// paidSQL returns each user with a reservation of template $1 who has paid orders with its
// coupons, with the number of these orders and what was paid for them. An order with several
// coupons is one order.
const paidSQL = `
select o.user_id, count(*), sum(o.amount - o.discount)::bigint
from (select c.user_id, c.order_id, coalesce(max(l.order_amount), 0) as amount, sum(c.discount) as discount
    from coupons c left join coupon_operations l on l.coupon_id = c.id and l.order_id = c.order_id and l.step = 'lock' and l.outcome = 'done'
    where c.template_id = $1 and c.state = 'used' group by 1, 2) o
join reservations r on r.template_id = $1 and r.user_id = o.user_id group by 1`

// Increment compares reminded with held-out users as of one instant; see [report.MoneyStore].
func (s Reports) Increment(ctx context.Context, t template.Template) (i increment.Increment, err error) {
	i.Currency = t.Currency
	groupOf := func(id user.ID) *increment.Group {
		if delivery.HeldOutOfDrop(t.ID, t.HoldOutPercent, id) {
			return &i.HeldOut
		}
		return &i.Reached
	}
	s.DB = s.Reports(ctx)
	err = s.Instant(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select user_id from reservations where template_id = $1`, t.ID)
		if err != nil {
			return err
		}
		for rows.Next() {
			groupOf(user.ID(pg.Uint64(rows.RawValues()[0]))).Users++ // the generic scanner costs more than the query
		}
		if err = rows.Err(); err != nil {
			return err
		}
		if rows, err = tx.Query(ctx, paidSQL, t.ID); err != nil {
			return err
		}
		var id user.ID
		var orders int64
		var revenue money.Amount
		_, err = pgx.ForEachRow(rows, []any{&id, &orders, &revenue}, func() error {
			groupOf(id).Add(orders, revenue)
			return nil
		})
		return err
	})
	return i, err
}
