package coupons

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cart"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Drops returns the newest drops of a shop whose coupons may be in use; see [cart.Lists].
func (s CouponSteps) Drops(ctx context.Context, shop int64, limit int) (list []cart.Drop, err error) {
	rows := pg.Rows(ctx, s.Pool, `select `+ruleColumns+`, t.id, t.id, t.shop_number, t.stack_group, t.stacks_with, t.max_per_order, t.closes_at, t.name
		from templates t where t.shop_number = $1 and t.state in ('published', 'paused', 'closed')
			and coalesce(t.valid_until, t.closes_at + t.valid_hours * interval '1 hour') > clock_timestamp() order by t.id desc limit $2`, shop, limit)
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d cart.Drop, err error) {
		var with template.Groups
		var closes time.Time
		err = row.Scan(append(pg.RowPlaces(&d.Rule), &d.ID, &d.TemplateID, &d.Shop, &d.Group, &with, &d.PerOrder, &closes, &d.Name)...)
		d.With, d.ExpiresAt = with.List(), closes.UnixMicro()
		return d, err
	})
	return list, pg.Translate(err)
}

// OrdersOf returns the newest orders of a user that used several coupons or had lines; see [cart.Lists].
func (s CouponSteps) OrdersOf(ctx context.Context, u user.ID, shops []int64, limit int) (list []cart.Placed, err error) {
	rows := pg.Rows(ctx, s.Pool, `select w.order_id, w.user_id, w.shop_number, w.currency, w.state, w.revision, w.discount, w.returned, w.paid_back, w.created_at,
			w.lines, w.products, w.quantities, w.amounts, coalesce(u.coupons, '{}'), coalesce(u.lines, '{}'), coalesce(u.amounts, '{}')
		from coupon_orders w cross join lateral (select array_agg(l.coupon_id) as coupons, array_agg(l.line) as lines, array_agg(l.amount) as amounts
			from coupon_use_lines l where l.order_id = w.order_id and l.revision = w.revision) u
		where w.user_id = $1 and w.shop_number > 0 and (cardinality($2::bigint[]) = 0 or w.shop_number = any($2)) order by w.created_at desc, w.order_id limit $3`,
		u, append([]int64{}, shops...), limit)
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (p cart.Placed, err error) {
		var l orderLines
		err = row.Scan(&p.ID, &p.UserID, &p.Shop, &p.Currency, &p.State, &p.Revision, &p.Discount, &p.Returned, &p.PaidBack, &p.At,
			&l.names, &l.products, &l.quantities, &l.amounts, &l.coupons, &l.useLines, &l.useAmounts)
		l.into(&p.Order)
		return p, err
	})
	return list, pg.Translate(err)
}

// orderLines are the lines of an order and what its coupons take off them, as they are stored.
type orderLines struct {
	names, products, useLines                []string
	quantities, amounts, coupons, useAmounts []int64
}

// into sets the lines and the uses of the order.
func (l orderLines) into(o *cart.Order) {
	for i, name := range l.names {
		o.Lines = append(o.Lines, cart.Line{ID: name, Product: l.products[i], Quantity: l.quantities[i], Amount: money.Amount(l.amounts[i])})
	}
	for i, id := range l.coupons {
		o.Use(id, l.useLines[i], money.Amount(l.useAmounts[i]))
	}
}
