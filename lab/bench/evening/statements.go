package evening

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// resetStatements begins the statistics of statements again.
func (f *filling) resetStatements(ctx context.Context) error {
	if f.statements == 0 {
		return nil
	}
	if _, err := f.SQL.Exec(ctx, `create extension if not exists pg_stat_statements`); err != nil {
		return err
	}
	_, err := f.SQL.Exec(ctx, `select pg_stat_statements_reset()`)
	return err
}

// slowestStatements returns a line with the sum of all statements, and then a line for each of
// the statements that took longest. A statement with about as many plans as calls is planned anew each time.
func (f *filling) slowestStatements(ctx context.Context) ([]string, error) {
	if f.statements == 0 {
		return nil, nil
	}
	rows, err := f.SQL.Query(ctx, `with statements as (
			select calls, plans, rows, total_exec_time + total_plan_time as ms, left(regexp_replace(query, '\s+', ' ', 'g'), 130) as text from pg_stat_statements)
		select calls, plans, rows, ms, text from (
			select sum(calls)::bigint as calls, sum(plans)::bigint as plans, sum(rows)::bigint as rows, sum(ms) as ms, 'all statements' as text from statements union all
			select calls, plans, rows, ms, text from statements) s order by ms desc limit $1`, f.statements+1)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (line string, err error) {
		var calls, plans, n int64
		var ms float64
		var text string
		err = row.Scan(&calls, &plans, &n, &ms, &text)
		return fmt.Sprintf("%8.0f ms %7d calls %6d plans %8d rows  %s", ms, calls, plans, n, text), err
	})
}
