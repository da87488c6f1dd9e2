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

// returnToStock returns n coupons of the template to the stock; while users wait for the
// template, they are kept for the next of them. If the template
// has a gate, the stock with which the gate's epoch began (base) is lowered by
// n, so that the ledger adds up at once. The keeper then has n more coupons to
// allot to shards; the event or the keeper's sweep wakes it. A gate that is
// being built counts anew after taking the same lock.
func returnToStock(ctx context.Context, tx pgx.Tx, templateID, n int64) error {
	e, waits := event.Template{TemplateID: templateID}, false
	err := tx.QueryRow(ctx, `update templates set issued = issued - $2, returned = returned + $2 where id = $1 returning shop_number, version, opens_at,
		nextval('hook_sequence'), clock_timestamp(), waitlist <> 'off'`, templateID, n).Scan(&e.ShopNumber, &e.Version, &e.OpensAt, &e.Sequence, &e.At, &waits)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update gates set base = base - $2 where template_id = $1`, templateID, n); err != nil {
		return err
	}
	if waits {
		if err := pg.KeepForWaiters(ctx, tx, templateID, n); err != nil {
			return err
		}
	}
	e.OpensAt, e.At = e.OpensAt.UTC(), e.At.UTC()
	return pg.Announce(ctx, tx, event.TemplateChanged, e)
}
