package coupons

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
)

// lockForReturn comes first, as for whoever decides claims: the template, then
// its coupons.
const lockForReturn = `select from templates where id = $1 for no key update`

// returnToStock puts one coupon of the template back on the shelf. Behind the
// gate this lowers what its epoch began with, so that the ledger adds up at
// once: one more is about to be handed to a shelf, and the keeper, woken by the
// event or by its sweep, hands it out. A gate that is being built counts anew
// behind the same lock.
func returnToStock(ctx context.Context, tx pgx.Tx, templateID int64) error {
	e := event.Template{TemplateID: templateID}
	err := tx.QueryRow(ctx, `update templates set issued = issued - 1, returned = returned + 1 where id = $1 returning version, opens_at`, templateID).
		Scan(&e.Version, &e.OpensAt)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update gates set base = base - 1 where template_id = $1`, templateID); err != nil {
		return err
	}
	e.OpensAt = e.OpensAt.UTC()
	return pg.Announce(ctx, tx, event.TemplateChanged, e)
}
