package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// ChangeShop creates a shop or changes its name and time zone, with its audit
// entry.
func (s Templates) ChangeShop(ctx context.Context, shop template.Shop, e staff.Entry) error {
	return s.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into shops (number, name, timezone) values ($1, $2, $3)
			on conflict (number) do update set name = excluded.name, timezone = excluded.timezone`, shop.Number, shop.Name, shop.Timezone); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}
