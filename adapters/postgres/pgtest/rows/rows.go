// Package rows inserts rows without the stores. A test names the columns that it is about; the
// other columns get default values of this package. The package imports no store, so that tests
// inside a store's package can use it, too. Tests outside have the same calls on pgtest.Fixture.
package rows

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DB is a connection, a pool or a transaction of pgx.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Row holds values by column. A value of type [SQL] is an expression.
type Row map[string]any

// SQL is an expression of PostgreSQL, such as now() - interval '1 day'.
type SQL string

// defaults are the values of columns that a test does not name, by table. Columns that are not
// in defaults either have the schema's default.
var defaults = map[string]Row{
	"templates": {"shop_number": 10, "name": "Drop", "kind": "amount_off", "amount_off": 100, "currency": "CNY", "target": "shop", "stock": 10, "per_user_limit": 1,
		"opens_at": SQL("date_trunc('second', now()) + interval '1 hour'"), "closes_at": SQL("date_trunc('second', now()) + interval '2 hours'"),
		"valid_hours": 48, "obtain": "claim", "claim_mode": "durable", "state": "published"},
	"slots": {"slot": 1, "opens_at": SQL("now() + interval '1 hour'"), "due_at": SQL("now() + interval '55 minutes'"), "state": "waiting"},
	"batches": {"kind": "reminder", "owner_id": 1, "channel": 0, "from_user": 1, "to_user": 1, "due": []byte{}, "due_count": 1,
		"due_at": SQL("now()"), "worthless_after": SQL("now() + interval '1 hour'")},
	"coupons": {"template_id": 1, "user_id": 1, "claim_id": SQL("(random() * 1e15)::bigint + 1"), "origin": "claim",
		"issued_at": SQL("now()"), "expires_at": SQL("now() + interval '1 day'")},
	"campaigns": {"name": "Campaign", "channel": 0, "content": "{}", "audience": `{"kind":"all"}`, "starts_at": SQL("now()"), "ends_at": SQL("now() + interval '1 hour'"),
		"state": "draft", "creator": "staff:1", "created_by": "staff:1"},
}

// Insert inserts the rows into a table.
func Insert(t testing.TB, db DB, table string, list ...Row) {
	t.Helper()
	for _, row := range list {
		Fill(t, db, table, "", row)
	}
}

// Fill inserts a row for each row of the source, such as generate_series(1, 600) n. The
// expressions of row may use the source's columns.
func Fill(t testing.TB, db DB, table, source string, row Row) {
	t.Helper()
	sql, args := statement(table, source, row)
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// ID inserts a row and returns its id.
func ID(t testing.TB, db DB, table string, row Row) (id int64) {
	t.Helper()
	sql, args := statement(table, "", row)
	if err := db.QueryRow(t.Context(), sql+" returning id", args...).Scan(&id); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return id
}

// Shops inserts shops whose clocks show UTC, unless they are there.
func Shops(t testing.TB, db DB, numbers ...int64) {
	t.Helper()
	if _, err := db.Exec(t.Context(), `insert into shops (number, name, timezone) select n, 'Shop ' || n, 'UTC' from unnest($1::bigint[]) n on conflict do nothing`, numbers); err != nil {
		t.Fatal(err)
	}
}

func statement(table, source string, row Row) (sql string, args []any) {
	all := maps.Clone(defaults[table])
	if all == nil {
		all = Row{}
	}
	maps.Copy(all, row)
	columns := slices.Sorted(maps.Keys(all))
	values := make([]string, len(columns))
	for i, c := range columns {
		if expression, ok := all[c].(SQL); ok {
			values[i] = string(expression)
			continue
		}
		args = append(args, all[c])
		values[i] = fmt.Sprintf("$%d", len(args))
	}
	sql = fmt.Sprintf("insert into %s (%s) overriding system value select %s", table, strings.Join(columns, ", "), strings.Join(values, ", "))
	if source != "" {
		sql += " from " + source
	}
	return sql, args
}
