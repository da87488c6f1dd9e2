package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
)

// daysAhead is for how many coming days the tables for ids of handled events are created in
// advance. On a day without a table the ids are stored in handled_events_rest.
const daysAhead = 14

// eventDaysSQL returns the days of which there is a table, as midnights UTC.
const eventDaysSQL = `
select to_timestamp(right(c.relname, 8), 'YYYYMMDD')::timestamp at time zone 'UTC' as day
from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'handled_events'::regclass and c.relname ~ '^handled_events_[0-9]{8}$'`

// lockFor is how long a step waits for the lock on a table: all later statements on the table
// queue behind the waiting step. The next cleaning tries again.
const lockFor = `set local lock_timeout = '500ms'`

// addEventDays adds the missing tables of today and the days to come.
func (h Housekeeping) addEventDays(ctx context.Context) error {
	return h.briefly(ctx, `select add_event_day(now() + n * interval '1 day') from generate_series(0, $1::int) n`, daysAhead)
}

// dropEventDays drops the tables of days that ended longer ago than age.
func (h Housekeeping) dropEventDays(ctx context.Context, age time.Duration) error {
	rows := pg.Rows(ctx, h.Pool, `select to_char(day at time zone 'UTC', 'YYYYMMDD') from (`+eventDaysSQL+`) d
		where day + interval '24 hours' < now() - $1::interval order by day`, age)
	days, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return pg.Translate(err)
	}
	for _, day := range days {
		if err := h.briefly(ctx, fmt.Sprintf(`drop table if exists handled_events_%s`, day)); err != nil {
			return err
		}
	}
	return nil
}

// briefly executes one statement that needs an exclusive lock on a table. If the table is in
// use, briefly does nothing and returns no error.
func (h Housekeeping) briefly(ctx context.Context, sql string, args ...any) error {
	err := h.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockFor); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" {
		return nil
	}
	return pg.Translate(err)
}

// EventDaysAhead returns for how many coming days there are tables without a gap, at most
// daysAhead.
func (h Housekeeping) EventDaysAhead(ctx context.Context) (days int, err error) {
	err = h.Pool.QueryRow(ctx, `
		select coalesce(min(n) - 1, $1) from generate_series(1, $1::int) n
		where date_trunc('day', now() + n * interval '1 day', 'UTC') not in (`+eventDaysSQL+`)`, daysAhead).Scan(&days)
	return days, pg.Translate(err)
}
