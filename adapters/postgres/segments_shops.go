package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// TemplateShops returns the shops of templates; see [segment.TemplateStore].
func (d *DB) TemplateShops(ctx context.Context, templates []int64) (map[int64]int64, error) {
	rows, err := d.pool.Query(ctx, `select id, shop_number from templates where id = any($1)`, templates)
	if err != nil {
		return nil, translate(err)
	}
	shops := make(map[int64]int64, len(templates))
	var id, shop int64
	_, err = pgx.ForEachRow(rows, []any{&id, &shop}, func() error {
		shops[id] = shop
		return nil
	})
	return shops, translate(err)
}
