package pg

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

// TestBulkReadsLeaveConnections starts many more bulk reads than there are
// connections and lets them wait for a table. Statements of leases and health
// must go on meanwhile. The test runs with direct connections and with a pooler
// in transaction mode.
func TestBulkReadsLeaveConnections(t *testing.T) {
	for name, pooled := range map[string]bool{"sessions": false, "transaction pool": true} {
		t.Run(name, func(t *testing.T) {
			direct := localstack.Database(t)
			url := direct
			if pooled {
				url = localstack.TransactionPooler(t, direct, 8)
			}
			db, err := Open(t.Context(), url, Options{MaxConns: 6, Log: slog.New(slog.DiscardHandler), TransactionPool: pooled})
			musttest.OK(t, err)
			t.Cleanup(db.Close)
			sql, err := pgxpool.New(t.Context(), direct)
			musttest.OK(t, err)
			t.Cleanup(sql.Close)
			lock, err := sql.Begin(t.Context())
			musttest.OK(t, err)
			if _, err := lock.Exec(t.Context(), `lock table reservations in access exclusive mode`); err != nil {
				t.Fatal(err)
			}
			var reading sync.WaitGroup
			for range 20 {
				reading.Go(func() {
					if _, err := ReadUsers(t.Context(), db, `select user_id, slots from reservations`); err != nil {
						t.Error(err)
					}
				})
			}
			waiting := func() (n int) {
				musttest.OK(t, sql.QueryRow(t.Context(), `select count(*) from pg_locks where not granted and relation = 'reservations'::regclass`).Scan(&n))
				return n
			}
			for waiting() < 3 { // as many as may read
			}
			var others sync.WaitGroup
			for range 3 { // as many as are left, at the same time
				others.Go(func() {
					if err := db.Ping(t.Context()); err != nil {
						t.Error(err)
					}
					if _, err := db.Pool.Exec(t.Context(), `update batches set lease_until = now() where id = 1`); err != nil {
						t.Error(err)
					}
				})
			}
			others.Wait()
			if n := waiting(); n != 3 {
				t.Errorf("%d bulk reads hold a connection each, want 3", n)
			}
			musttest.OK(t, lock.Rollback(t.Context()))
			reading.Wait()
		})
	}
}

// TestABulkReadThatIsNotWantedAnyMore: a bulk read whose context ends leaves the
// queue.
func TestABulkReadThatIsNotWantedAnyMore(t *testing.T) {
	db, err := Open(t.Context(), "postgres://nobody@127.0.0.1:1/none", Options{MaxConns: 4, Log: slog.New(slog.DiscardHandler)})
	musttest.OK(t, err)
	t.Cleanup(db.Close)
	for range 2 {
		release, err := db.Bulk(t.Context())
		musttest.OK(t, err)
		defer release()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := db.Bulk(ctx); err == nil {
		t.Error("a third read has a turn")
	}
}
