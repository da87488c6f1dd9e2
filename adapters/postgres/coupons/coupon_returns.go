package coupons

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
)

// lockForReturn comes first, as in every transaction that decides claims: the
// template, then its coupons.
const lockForReturn = `select from templates where id = $1 for no key update`

// returnToStock returns one coupon of the template to the stock. Behind the gate
// this lowers the stock with which its epoch began, so that the ledger adds up
// at once: one more is to be allotted to a shard, and the keeper, woken by the
// event or by its sweep, allots it. A gate that is being built counts anew
// behind the same lock.
func returnToStock(ctx context.Context, tx pgx.Tx, templateID int64) error {
	e := event.Template{TemplateID: templateID}
	err := tx.QueryRow(ctx, `update templates set issued = issued - 1, returned = returned + 1 where id = $1 returning shop_number, version, opens_at,
		nextval('hook_sequence'), clock_timestamp()`, templateID).Scan(&e.ShopNumber, &e.Version, &e.OpensAt, &e.Sequence, &e.At)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update gates set base = base - 1 where template_id = $1`, templateID); err != nil {
		return err
	}
	e.OpensAt, e.At = e.OpensAt.UTC(), e.At.UTC()
	return pg.Announce(ctx, tx, event.TemplateChanged, e)
}
