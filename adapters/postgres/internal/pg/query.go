package pg

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Itoa returns n in decimal, as the audit log names objects.
func Itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Querier is a pool or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// LockIDs returns the ids that a statement selects for update.
func LockIDs(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]int64, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// Storable returns s as text that PostgreSQL takes.
func Storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// TemplateShops returns the shop of each template, by template id. A template
// that does not exist has no entry.
func TemplateShops(ctx context.Context, db *DB, templates []int64) (map[int64]int64, error) {
	rows, err := db.Pool.Query(ctx, `select id, shop_number from templates where id = any($1)`, templates)
	if err != nil {
		return nil, Translate(err)
	}
	shops := make(map[int64]int64, len(templates))
	var id, shop int64
	_, err = pgx.ForEachRow(rows, []any{&id, &shop}, func() error {
		shops[id] = shop
		return nil
	})
	return shops, Translate(err)
}
