package work

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/doctor"
)

// Checkups measures what the doctor examines of PostgreSQL.
type Checkups struct{ *pg.DB }

// NewCheckups returns the measurements of db.
func NewCheckups(db *pg.DB) Checkups { return Checkups{db} }

// examined are the settings of PostgreSQL that the doctor judges.
var examined = []string{"fsync", "full_page_writes", "synchronous_commit", "autovacuum", "wal_level", "archive_mode", "max_wal_size", "min_wal_size",
	"checkpoint_timeout", "statement_timeout", "lock_timeout", "max_connections", "superuser_reserved_connections", "reserved_connections"}

// Database measures the server. now is this machine's clock. Settings are those with which a session
// of the role begins.
func (s Checkups) Database(ctx context.Context, now func() time.Time) (d doctor.Database, err error) {
	var oldest float64 // seconds
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return d, pg.Translate(err)
	}
	defer conn.Release()
	if d.Clock, err = clockOf(ctx, conn, now); err != nil {
		return d, err
	}
	err = conn.QueryRow(ctx, `
		select current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(), pg_database_size(current_database()),
			coalesce((select setting from pg_settings where name = 'data_directory'), ''),
			(select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')),
			coalesce((select extract(epoch from clock_timestamp() - min(xact_start)) from pg_stat_activity
				where backend_xmin is not null and pid <> pg_backend_pid()), 0)::float8`).
		Scan(&d.Version, &d.Name, &d.Standby, &d.Size, &d.DataDirectory, &d.Synchronous, &oldest)
	d.OldestSnapshot = time.Duration(oldest * float64(time.Second))
	if err != nil {
		return d, pg.Translate(err)
	}
	rows, err := conn.Query(ctx, `select name, case when source = 'session' then reset_val else setting end from pg_settings where name = any($1)`, examined)
	if err != nil {
		return d, pg.Translate(err)
	}
	d.Settings = map[string]string{}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error { d.Settings[name] = value; return nil })
	return d, pg.Translate(err)
}

// attempts is how often a clock is read: the reading with the shortest round trip counts.
const attempts = 5

// queries is a connection.
type queries interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// clockOf compares the server's clock with this machine's.
func clockOf(ctx context.Context, conn queries, now func() time.Time) (c doctor.Clock, err error) {
	for i := range attempts {
		var server time.Time
		before := now()
		if err := conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&server); err != nil {
			return c, pg.Translate(err)
		}
		after := now()
		within := after.Sub(before) / 2
		if i == 0 || within < c.Within {
			c = doctor.Clock{Ahead: server.Sub(before.Add(within)), Within: within}
		}
	}
	return c, nil
}

// Running returns how many processes of the program run.
func (s Processes) Running(ctx context.Context, program string) (n int, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from processes where program = $1 and seen_at > clock_timestamp() - $2::interval`, program, ProcessGoneAfter).Scan(&n)
	return n, pg.Translate(err)
}
