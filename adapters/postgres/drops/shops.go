package drops

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// ChangeShop creates a shop or changes its name, time zone and claim address. It
// stores the audit entry with the previous values filled in.
func (s Templates) ChangeShop(ctx context.Context, shop template.Shop, e staff.Entry) error {
	return s.changeShop(ctx, shop, false, e)
}

// NameShop is [Templates.ChangeShop], but does not change the claim address of an
// existing shop.
func (s Templates) NameShop(ctx context.Context, shop template.Shop, e staff.Entry) error {
	return s.changeShop(ctx, shop, true, e)
}

func (s Templates) changeShop(ctx context.Context, shop template.Shop, keepAddress bool, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		e.Before, e.After = nil, shop.Shown()
		made, err := tx.Exec(ctx, `insert into shops (number, name, timezone, claim_url) values ($1, $2, $3, $4) on conflict (number) do nothing`,
			shop.Number, shop.Name, shop.Timezone, shop.ClaimURL)
		if err != nil {
			return err
		}
		if made.RowsAffected() == 0 {
			var old template.Shop
			if err := tx.QueryRow(ctx, `select name, timezone, claim_url from shops where number = $1 for update`, shop.Number).Scan(&old.Name, &old.Timezone, &old.ClaimURL); err != nil {
				return err
			}
			if keepAddress {
				shop.ClaimURL = old.ClaimURL
				e.After = shop.Shown()
			}
			if _, err := tx.Exec(ctx, `update shops set name = $2, timezone = $3, claim_url = $4 where number = $1`, shop.Number, shop.Name, shop.Timezone, shop.ClaimURL); err != nil {
				return err
			}
			e.Before = old.Shown()
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}
