package postgres

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func lockIDs(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]int64, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// storable returns s as text that PostgreSQL takes.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func templateShops(ctx context.Context, db *DB, templates []int64) (map[int64]int64, error) {
	rows, err := db.pool.Query(ctx, `select id, shop_number from templates where id = any($1)`, templates)
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
