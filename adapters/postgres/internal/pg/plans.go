package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// IndexesOnly makes what follows in the transaction use the unique indexes,
// whatever the planner thinks of tables that were empty when it looked: they
// grow by a hundred thousand rows a second, and its statistics are a minute
// old at best. So one plan is as good for every group, and made once.
const IndexesOnly = `select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)`

// InGroup is [IndexesOnly] for the transaction of a group: $1 is how long it waits for each
// lock; see [LockTimeout]. The transaction ends when its program is silent, also behind a
// pooler, where the session has no limit of its own.
const InGroup = IndexesOnly + `, set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', '5s', true)`

// ByIndex makes the statements that follow in the transaction use indexes, as
// [IndexesOnly] says.
func ByIndex(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, IndexesOnly)
	return err
}

// PlannedOnce runs a statement that is planned for no particular values, in one
// round trip. A statement that comes a thousand times a second for a few rows
// takes longer to plan than to run.
func (db *DB) PlannedOnce(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	return db.planned(ctx, IndexesOnly, sql, args, read)
}

// onePlan is [IndexesOnly] for statements that join the rows they are given with each
// other, which without hash joins would take the square of their number.
const onePlan = `select set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)`

// oneHashedPlan is [onePlan] for statements that join the rows they are given with
// nothing but each other, and look up everything else by subqueries. However few rows the
// planner expects, it never compares each with each.
const oneHashedPlan = `select set_config('enable_seqscan', 'off', true), set_config('enable_nestloop', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true)`

// PlannedForGroups is [DB.PlannedOnce] for a statement whose parameters are the rows of a
// group of any size. Left to itself PostgreSQL plans it again for every small group, as it
// must behind a pooler, where it keeps no plan.
func (db *DB) PlannedForGroups(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	return db.plannedForGroups(ctx, onePlan, sql, args, read)
}

// PlannedByHash is [DB.PlannedForGroups] for a statement without a join to a table.
func (db *DB) PlannedByHash(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	return db.plannedForGroups(ctx, oneHashedPlan, sql, args, read)
}

func (db *DB) plannedForGroups(ctx context.Context, settings, sql string, args []any, read func(pgx.Rows) error) error {
	if db.transactionPool {
		return db.Briefly(ctx, sql, args, read)
	}
	return db.planned(ctx, settings, sql, args, read)
}

// planned runs the statement behind the settings, as one transaction. The statement of a
// committer's group waits for each lock as [LockTimeout] says.
func (db *DB) planned(ctx context.Context, settings, sql string, args []any, read func(pgx.Rows) error) error {
	b := &pgx.Batch{} // without begin and commit it is one transaction
	if _, limited := lockLimit(ctx); limited {
		b.Queue(settings+`, set_config('lock_timeout', $1, true)`, LockTimeout(ctx))
	} else {
		b.Queue(settings)
	}
	b.Queue(sql, args...).Query(read)
	return db.Pool.SendBatch(ctx, b).Close()
}
