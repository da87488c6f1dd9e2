package work

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/housekeeping"
)

// recordSQL stores what became of the steps, with an element per step.
const recordSQL = `
insert into housekeeping_steps as s (step, ran_at, ended_at, behind_since, took_ms, removed, removed_ever, per_second, remaining)
select r.step, clock_timestamp(), case when r.finished then clock_timestamp() end, case when not r.finished then clock_timestamp() end,
    r.took_ms, r.removed, r.removed, case when r.removed > 0 then r.removed * 1000.0 / greatest(1, r.took_ms) else 0 end, r.remaining
from unnest(@steps::text[], @finished::bool[], @took::bigint[], @removed::bigint[], @remaining::bigint[]) as r (step, finished, took_ms, removed, remaining)
order by r.step
on conflict (step) do update set ran_at = excluded.ran_at, ended_at = coalesce(excluded.ended_at, s.ended_at),
    behind_since = case when excluded.behind_since is not null then coalesce(s.behind_since, excluded.behind_since) end,
    took_ms = excluded.took_ms, removed = excluded.removed, removed_ever = s.removed_ever + excluded.removed_ever,
    per_second = case when excluded.removed > 0 then excluded.per_second else s.per_second end, remaining = excluded.remaining`

// recordWithin is how long the results of the steps may take to be stored, also while the
// program ends. If that fails, the rows of the last record stay.
const recordWithin = 10 * time.Second

// record stores what became of the steps of the cleaning.
func (c *cleaning) record(ctx context.Context, keep Retention) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWithin)
	defer cancel()
	n := len(c.runs)
	names, finished, took, removed, remaining := make([]string, n), make([]bool, n), make([]int64, n), make([]int64, n), make([]*int64, n)
	for i, r := range c.runs {
		names[i], finished[i], took[i], removed[i] = r.name, r.finished, r.took.Milliseconds(), r.rows
		if zero := int64(0); r.finished {
			remaining[i] = &zero
		} else {
			remaining[i] = c.left(ctx, r.name, keep)
		}
	}
	_, err := c.Pool.Exec(ctx, recordSQL, pgx.StrictNamedArgs{"steps": names, "finished": finished, "took": took, "removed": removed, "remaining": remaining})
	if err != nil {
		c.failed = append(c.failed, pg.Translate(err))
	}
}

// countWithin is how long counting the rows may take that a step has left.
const countWithin = 2 * time.Second

// left counts what an unfinished step has left: drops or campaigns, batches, or rows. It returns
// nil if counting takes too long.
func (c *cleaning) left(ctx context.Context, name string, keep Retention) *int64 {
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	sql, args := c.leftSQL(name, keep)
	if sql == "" {
		return nil
	}
	var n int64
	if err := c.Pool.QueryRow(ctx, `select count(*) from (`+sql+` limit $2) l`, args...).Scan(&n); err != nil {
		return nil
	}
	return &n
}

func (c *cleaning) leftSQL(name string, keep Retention) (sql string, args []any) {
	switch name {
	case "reservations", "openings", "drops", "campaigns":
		return `select from removals where step = $3 and at < $1`, []any{c.before(keep.Delivery), housekeeping.CountedLeft, name}
	case "coupons":
		return `select from removals where step = $3 and at < $1`, []any{c.before(keep.Coupons), housekeeping.CountedLeft, name}
	case "batches":
		return `select from batches where id > (select position from housekeeping_steps where step = 'batches') and worthless_after < $1`,
			[]any{c.before(keep.Delivery), housekeeping.CountedLeft}
	}
	for _, s := range steps(keep) {
		if s.name == name {
			return `select from ` + s.from, []any{s.age, housekeeping.CountedLeft}
		}
	}
	return "", nil
}

// Steps returns the progress of the steps; see [housekeeping.Store].
func (h Housekeeping) Steps(ctx context.Context) ([]housekeeping.Step, error) {
	rows := pg.Rows(ctx, h.Pool, `select step, ran_at, ended_at, behind_since, took_ms, removed, removed_ever, per_second, remaining
		from housekeeping_steps where ran_at is not null order by behind_since nulls last, step`)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s housekeeping.Step, err error) {
		var took int64
		err = row.Scan(&s.Name, &s.RanAt, &s.EndedAt, &s.BehindSince, &took, &s.Removed, &s.RemovedEver, &s.PerSecond, &s.Left)
		s.Took = time.Duration(took) * time.Millisecond
		return s, err
	})
	return list, pg.Translate(err)
}

// Archived returns how many drops are archived; see [housekeeping.Store]. The planner's
// statistics answer for many.
func (h Housekeeping) Archived(ctx context.Context) (n int64, err error) {
	err = h.Pool.QueryRow(ctx, `select case when reltuples > 100000 then reltuples::bigint else (select count(*) from drop_archives where packed_at is not null) end
		from pg_class where oid = 'drop_archives'::regclass`).Scan(&n)
	return n, pg.Translate(err)
}

// countsAsFailed reports whether the end of an unfinished step is an error: using up the time is
// none, and neither is waiting for the sweep of expired coupons.
func countsAsFailed(ctx, limited context.Context, err error) bool {
	return !errors.Is(err, errExpiryBehind) && (ctx.Err() != nil || limited.Err() == nil)
}
