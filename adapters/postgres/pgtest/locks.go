package pgtest

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Blocked waits until n statements of this database wait for locks.
func (w *Fixture) Blocked(n int64) {
	w.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if w.Number(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == n {
			return
		}
	}
	w.Fatalf("there were never %d statements waiting", n)
}

// Hold runs sql in a transaction and returns its end.
func (w *Fixture) Hold(sql string, args ...any) (pgx.Tx, func()) {
	w.Helper()
	tx, err := w.SQL.Begin(w.Context())
	w.Must(err)
	w.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(w.Context())) }) // after a failure, so that no test waits for ever
	_, err = tx.Exec(w.Context(), sql, args...)
	w.Must(err)
	return tx, func() { w.Must(tx.Commit(w.Context())) }
}
