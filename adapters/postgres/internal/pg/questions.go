package pg

import (
	"context"
	"strings"
)

// A Question is a statement without parameters that returns a row if a sweep may have
// something to do: always if it has, and seldom if it has not. Each part of it reads at
// most one row, the first of an index.
type Question string

// Ask asks all questions in one statement and returns the answers in their order.
//
// Each question is a subquery within exists: directly there PostgreSQL would drop its
// order and its limit, and read a table from its begin whose statistics, made while much
// was open, promise that a row will soon be found.
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
