package coupons

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// termsColumns are the columns of a [cart.Terms] after its rule.
const termsColumns = `c.id, c.template_id, t.shop_number, t.stack_group, t.stacks_with, t.max_per_order, c.expires_at`

// ownedSQL returns the coupons @only of a user, or the newest unused coupons if @only is empty, with
// their terms. It reads each template by its primary key, see [casesSQL].
var ownedSQL = `
select ` + ruleColumns + `, ` + termsColumns + `, c.state, clock_timestamp()
from (
    (select id, template_id, state, expires_at from coupons where user_id = @user and id = any(@only::bigint[]))
    union all
    (select id, template_id, state, expires_at from coupons where user_id = @user and cardinality(@only::bigint[]) = 0
        and state = 'unused' and expires_at > statement_timestamp() order by id desc limit @limit)
) c, lateral (select * from templates where id between c.template_id and c.template_id order by id limit 1) t`

// Owned reads the coupons of a user for a cart; see [cart.Store].
func (s CouponSteps) Owned(ctx context.Context, u user.ID, only []int64, limit int) (list []cart.Owned, now time.Time, err error) {
	args := []any{pgx.StrictNamedArgs{"user": u, "only": append([]int64{}, only...), "limit": limit}}
	err = s.PlannedOnce(ctx, ownedSQL, args, func(rows pgx.Rows) error {
		list = nil
		defer rows.Close()
		for rows.Next() {
			var o cart.Owned
			var c coupon.Coupon
			var with template.Groups
			places := append(pg.RowPlaces(&o.Rule), &o.ID, &o.TemplateID, &o.Shop, &o.Group, &with, &o.PerOrder, &c.ExpiresAt, &c.State, &now)
			if err := rows.Scan(places...); err != nil {
				return err
			}
			o.With, o.Terms.ExpiresAt, o.State = with.List(), c.ExpiresAt.UnixMicro(), c.At(now)
			list = append(list, o)
		}
		return rows.Err()
	})
	return list, now, pg.Translate(err)
}
