package coupons

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
)

// lockForReturn is the first lock, as in every transaction that decides claims:
// the template is locked before its coupons.
const lockForReturn = `select from templates where id = $1 for no key update`

// returnToStock returns one coupon of the template to the stock; while users wait for the
// template, it is kept for the next of them. If the template
// has a gate, the stock with which the gate's epoch began (base) is lowered by
// one, so that the ledger adds up at once. The keeper then has one more coupon to
// allot to a shard; the event or the keeper's sweep wakes it. A gate that is
// being built counts anew after taking the same lock.
func returnToStock(ctx context.Context, tx pgx.Tx, templateID int64) error {
	e, waits := event.Template{TemplateID: templateID}, false
	err := tx.QueryRow(ctx, `update templates set issued = issued - 1, returned = returned + 1 where id = $1 returning shop_number, version, opens_at,
		nextval('hook_sequence'), clock_timestamp(), waitlist <> 'off'`, templateID).Scan(&e.ShopNumber, &e.Version, &e.OpensAt, &e.Sequence, &e.At, &waits)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update gates set base = base - 1 where template_id = $1`, templateID); err != nil {
		return err
	}
	if waits {
		if err := pg.KeepForWaiters(ctx, tx, templateID, 1); err != nil {
			return err
		}
	}
	e.OpensAt, e.At = e.OpensAt.UTC(), e.At.UTC()
	return pg.Announce(ctx, tx, event.TemplateChanged, e)
}
