package pg

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Itoa returns n in decimal, as the audit log names objects.
func Itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Reader runs statements that return rows. It is a pool, a connection or a transaction.
type Reader interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Querier is a pool or a transaction.
type Querier interface {
	Reader
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Rows runs a statement and returns its rows. The error of a statement that failed is the error of
// the rows, so the function that reads the rows (pgx.CollectRows, pgx.ForEachRow) returns it.
func Rows(ctx context.Context, q Reader, sql string, args ...any) pgx.Rows {
	rows, _ := q.Query(ctx, sql, args...)
	return rows
}

// Collect runs a statement and returns its rows, each read by read. The error is translated (see
// [Translate]).
func Collect[T any](ctx context.Context, q Reader, read pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	list, err := pgx.CollectRows(Rows(ctx, q, sql, args...), read)
	return list, Translate(err)
}

// One runs a statement and returns its only row. It returns missing if there is no row. The error of
// the statement is translated (see [Translate]).
func One[T any](ctx context.Context, q Reader, read pgx.RowToFunc[T], missing error, sql string, args ...any) (T, error) {
	row, err := pgx.CollectExactlyOneRow(Rows(ctx, q, sql, args...), read)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, missing
	}
	return row, Translate(err)
}

// A Writer runs statements without rows: a pool or a transaction.
type Writer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Change runs a statement. It returns none if the statement changed no row; the statement's own error
// is not translated.
func Change(ctx context.Context, w Writer, none error, sql string, args ...any) error {
	tag, err := w.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() == 0 {
		return none
	}
	return err
}

// LockIDs returns the ids that a statement selects for update.
func LockIDs(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]int64, error) {
	return pgx.CollectRows(Rows(ctx, tx, sql, args...), pgx.RowTo[int64])
}

// Storable returns s as text that PostgreSQL takes.
func Storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// TemplateShops returns the shop of each template, by template id. A template
// that does not exist has no entry.
func TemplateShops(ctx context.Context, db *DB, templates []int64) (map[int64]int64, error) {
	rows := Rows(ctx, db.Pool, `select id, shop_number from templates where id = any($1)`, templates)
	shops := make(map[int64]int64, len(templates))
	var id, shop int64
	_, err := pgx.ForEachRow(rows, []any{&id, &shop}, func() error {
		shops[id] = shop
		return nil
	})
	return shops, Translate(err)
}
