package coupons

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
)

// Orders keeps the orders that shops report.
type Orders struct{ *pg.DB }

// NewOrders returns the orders of db.
func NewOrders(db *pg.DB) Orders { return Orders{db} }

// saveOrderSQL returns the stored order, or no row if the stored order differs. The instant
// of the first report stays.
const saveOrderSQL = `
insert into orders as o (shop_number, order_id, user_id, currency, amount, refunded, ordered_at)
select @shop, @order, (select @user::bigint where @user <> 0 and not exists (select from erased_users where user_id = @user)), @currency, @amount, @refunded, @ordered_at
on conflict (shop_number, order_id) do update set refunded = greatest(o.refunded, excluded.refunded)
where o.currency = excluded.currency and o.amount = excluded.amount and (o.user_id is null or excluded.user_id is null or o.user_id = excluded.user_id)
returning shop_number, order_id, coalesce(user_id, 0), currency, amount, refunded, ordered_at`

// SaveOrder stores the order; see [coupon.OrderStore].
func (s Orders) SaveOrder(ctx context.Context, o coupon.ReportedOrder) (r coupon.ReportedOrder, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		// No user is erased between the look and the commit.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+pg.Erasing+`)`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, saveOrderSQL, pgx.StrictNamedArgs{"shop": o.Shop, "order": o.ID, "user": int64(o.UserID), "currency": o.Currency,
			"amount": int64(o.Amount), "refunded": int64(o.Refunded), "ordered_at": o.OrderedAt}).
			Scan(&r.Shop, &r.ID, &r.UserID, &r.Currency, &r.Amount, &r.Refunded, &r.OrderedAt)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return r, coupon.ErrOtherOrder
	case pg.Violates(err, "orders_shop_number_fkey"):
		return r, coupon.ErrNoShop
	}
	return r, pg.Translate(err)
}
