package pg

import (
	"context"
	"strings"
)

// A Question is a statement without parameters that tells whether a sweep may have work. It
// always returns a row if there is work, and seldom if there is none. Each part of the
// statement reads at most one row, the first row of an index.
type Question string

// Ask asks all questions in one statement and returns the answers in their order.
//
// Each question is a subquery within exists. Without the subquery PostgreSQL would drop the
// question's order and limit. If the statistics date from a time when many rows matched,
// PostgreSQL would then scan the table from its beginning in the hope of an early match.
func (db *DB) Ask(ctx context.Context, list []Question) (some []bool, err error) {
	var sql strings.Builder
	sql.WriteString("select array[")
	for i, q := range list {
		if i > 0 {
			sql.WriteString(",\n")
		}
		sql.WriteString("exists (select from (" + string(q) + ") q)")
	}
	sql.WriteString("]::bool[]")
	err = db.Pool.QueryRow(ctx, sql.String()).Scan(&some)
	return some, Translate(err)
}
