package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// IndexesOnly makes the following statements of the transaction use the unique indexes. The
// planner's statistics are up to a minute old, and tables may have been empty then: they grow
// by a hundred thousand rows a second. With indexes forced, one generic plan fits every group
// and is made only once.
const IndexesOnly = `select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)`

// InGroup is [IndexesOnly] for the transaction of a group. $1 is how long the transaction
// waits for each lock; see [LockTimeout]. The server ends the transaction if its program sends
// nothing for 5 s. The setting is needed behind a pooler, where the session has no such limit.
const InGroup = IndexesOnly + `, set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', '5s', true)`

// ByIndex makes the following statements of the transaction use indexes; see [IndexesOnly].
func ByIndex(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, IndexesOnly)
	return err
}

// PlannedOnce runs a statement with a generic plan, in one round trip. A statement that runs a
// thousand times a second for a few rows takes longer to plan than to execute.
func (db *DB) PlannedOnce(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	return db.planned(ctx, IndexesOnly, Read{sql, args, read})
}

// A Read is a statement with its parameters and the function that reads its rows.
type Read struct {
	SQL  string
	Args []any
	Rows func(pgx.Rows) error
}

// PlannedTogether is [DB.PlannedOnce] for statements that do not depend on each other's rows, in
// one round trip. Without statements it makes no round trip.
func (db *DB) PlannedTogether(ctx context.Context, reads ...Read) error {
	if len(reads) == 0 {
		return nil
	}
	return db.planned(ctx, IndexesOnly, reads...)
}

// onePlan is [IndexesOnly] with hash joins allowed, for statements that join their parameter
// rows with each other. Without hash joins the time would grow with the square of their
// number.
const onePlan = `select set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)`

// oneHashedPlan is [onePlan] without nested loops. It is for statements that join their
// parameter rows with each other, and read tables by subqueries or by a condition on an array
// of keys. Even if the planner expects few rows, it cannot compare each row with each other
// row.
const oneHashedPlan = `select set_config('enable_seqscan', 'off', true), set_config('enable_nestloop', 'off', true),
	set_config('plan_cache_mode', 'force_generic_plan', true)`

// PlannedForGroups is [DB.PlannedOnce] for a statement whose parameters are the rows of a
// group of any size. By default PostgreSQL plans such a statement again for every small group.
// Behind a pooler, which keeps no plans, every execution would be planned.
func (db *DB) PlannedForGroups(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	return db.plannedForGroups(ctx, onePlan, sql, args, read)
}

// PlannedByHash is [DB.PlannedForGroups] for a statement whose tables are read by subqueries or
// by a condition on an array of keys: a nested loop would compare each row of the group with
// each other row.
func (db *DB) PlannedByHash(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	return db.plannedForGroups(ctx, oneHashedPlan, sql, args, read)
}

func (db *DB) plannedForGroups(ctx context.Context, settings, sql string, args []any, read func(pgx.Rows) error) error {
	if db.transactionPool {
		return db.Briefly(ctx, sql, args, read)
	}
	return db.planned(ctx, settings, Read{sql, args, read})
}

// planned sends the settings and the statements together, as one transaction. The statement of
// a committer's group waits for each lock as long as [LockTimeout] says.
func (db *DB) planned(ctx context.Context, settings string, reads ...Read) error {
	b := &pgx.Batch{} // without begin and commit it is one transaction
	if _, limited := lockLimit(ctx); limited {
		b.Queue(settings+`, set_config('lock_timeout', $1, true)`, LockTimeout(ctx))
	} else {
		b.Queue(settings)
	}
	for _, r := range reads {
		b.Queue(r.SQL, r.Args...).Query(r.Rows)
	}
	return db.Pool.SendBatch(ctx, b).Close()
}
