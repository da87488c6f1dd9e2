// Package plans finds statements that PostgreSQL plans anew for each call.
package plans

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Often returns the prepared statements that a connection of the pool has planned more than most times.
// PostgreSQL plans a statement five times, and then again for each call while plans for the parameters seem
// cheaper than a plan for all of them. For a statement of a few rows planning costs more than executing.
func Often(tb testing.TB, pool *pgxpool.Pool, most int) (list []string) {
	tb.Helper()
	for _, c := range pool.AcquireAllIdle(tb.Context()) {
		list = append(list, of(tb, c, most)...)
	}
	return list
}

func of(tb testing.TB, c *pgxpool.Conn, most int) (list []string) {
	tb.Helper()
	defer c.Release()
	rows, err := c.Query(context.WithoutCancel(tb.Context()), `select statement, generic_plans, custom_plans from pg_prepared_statements where custom_plans > $1`, most)
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var sql string
		var generic, custom int64
		if err := rows.Scan(&sql, &generic, &custom); err != nil {
			tb.Fatal(err)
		}
		list = append(list, fmt.Sprintf("planned %d times, %d times not: %s", custom, generic, strings.Join(strings.Fields(sql), " ")))
	}
	return list
}
