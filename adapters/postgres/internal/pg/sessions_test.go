package pg_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/musttest"
)

// settings are the names and values that the programs set.
var settings = map[string]string{"idle_in_transaction_session_timeout": "5s", "tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2",
	"tcp_keepalives_count": "3", "tcp_user_timeout": "10000", "jit": "off", "statement_timeout": "30s"}

// TestSessionsHaveTheirLimits whatever the database, the role and the address say.
func TestSessionsHaveTheirLimits(t *testing.T) {
	address := localstack.Database(t)
	exec(t, address, `do $$ begin
		execute format('alter database %I set idle_in_transaction_session_timeout = 0', current_database());
		execute format('alter database %I set tcp_user_timeout = 0', current_database());
		execute format('alter role %I in database %I set tcp_keepalives_idle = 7200', current_user, current_database());
	end $$`)
	u, err := url.Parse(address)
	musttest.OK(t, err)
	q := u.Query()
	q.Set("idle_in_transaction_session_timeout", "1h")
	q.Set("options", "-c tcp_keepalives_count=99")
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	for _, way := range []string{address, u.String()} {
		db, err := pg.Open(t.Context(), way, pg.Options{Statements: 30 * time.Second})
		musttest.OK(t, err)
		t.Cleanup(db.Close)
		for name, want := range settings {
			var got string
			if err := db.Pool.QueryRow(t.Context(), `select current_setting($1)`, name).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
			}
		}
	}
}

// TestASilentTransactionEnds: a process that was suspended in a transaction keeps its locks
// only until the idle limit, also behind a pooler.
func TestASilentTransactionEnds(t *testing.T) {
	direct := localstack.Database(t)
	exec(t, direct, `do $$ begin execute format('alter database %I set idle_in_transaction_session_timeout = 0', current_database()); end $$`)
	for name, o := range map[string]pg.Options{"server": {}, "pooler": {TransactionPool: true}} {
		t.Run(name, func(t *testing.T) {
			way := direct
			if o.TransactionPool {
				way = localstack.TransactionPooler(t, direct, 2)
			}
			o.TransactionIdle, o.Log = 300*time.Millisecond, slog.New(slog.DiscardHandler)
			db, err := pg.Open(t.Context(), way, o)
			musttest.OK(t, err)
			t.Cleanup(db.Close)
			const hold = `lock table console_settings in exclusive mode`
			err = db.Tx(t.Context(), func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), hold); err != nil {
					t.Error(err)
				}
				exec(t, direct, hold) // which waits until the server has ended the session of this transaction
				_, err := tx.Exec(t.Context(), `select 1`)
				return err
			})
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("the silent transaction: %v", err)
			}
			if err := db.Tx(t.Context(), func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), hold); return err }); err != nil {
				t.Errorf("the next transaction: %v", err)
			}
		})
	}
}

// TestRequestsWaitBrieflyForLocks: transactions of callers with limited calls wait briefly for
// a lock; other transactions wait longer.
func TestRequestsWaitBrieflyForLocks(t *testing.T) {
	direct := localstack.Database(t)
	for name, o := range map[string]pg.Options{"server": {}, "pooler": {TransactionPool: true}} {
		t.Run(name, func(t *testing.T) {
			way := direct
			if o.TransactionPool {
				way = localstack.TransactionPooler(t, direct, 2)
			}
			db, err := pg.Open(t.Context(), way, o)
			musttest.OK(t, err)
			t.Cleanup(db.Close)
			timeout := func(ctx context.Context) (got string) {
				t.Helper()
				musttest.OK(t, db.Tx(ctx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, `select current_setting('lock_timeout')`).Scan(&got) }))
				return got
			}
			if got := timeout(pg.LimitCalls(t.Context(), time.Minute)); got != "300ms" {
				t.Errorf("a request waits for %s", got)
			}
			if got := timeout(t.Context()); got != "0" {
				t.Errorf("a worker waits for %s", got)
			}
			held, err := pgx.Connect(t.Context(), direct)
			musttest.OK(t, err)
			defer held.Close(context.WithoutCancel(t.Context()))
			if _, err := held.Exec(t.Context(), `begin; select from console_settings for update`); err != nil {
				t.Fatal(err)
			}
			err = db.Briefly(t.Context(), `update console_settings set second_factor = second_factor`, nil, func(pgx.Rows) error { return nil })
			if !pg.LockTimedOut(err) || fault.KindOf(pg.Translate(err)) != fault.Unavailable {
				t.Errorf("a statement that waits briefly: %v", err)
			}
			if got := timeout(t.Context()); got != "0" {
				t.Errorf("afterwards others wait for %s", got)
			}
		})
	}
}

// TestAllConnectionsComeBackAtOnce: after a promotion one call fails. Then as many connections
// as before are opened concurrently, without further calls.
func TestAllConnectionsComeBackAtOnce(t *testing.T) {
	primary := localstack.Primary(t)
	standby := localstack.Standby(t, primary)
	address := fmt.Sprintf("postgres://dropbell@127.0.0.1:%d,127.0.0.1:%d/dropbell?sslmode=disable&target_session_attrs=read-write", primary.Port(), standby.Port())
	db, err := pg.Open(t.Context(), address, pg.Options{AppName: "returns", MaxConns: 12, Log: slog.New(slog.DiscardHandler)})
	musttest.OK(t, err)
	defer db.Close()
	const sessions = 6
	one := func() error {
		_, err := db.Pool.Exec(t.Context(), `select 1`)
		return pg.Translate(err)
	}
	open := make(chan error, sessions)
	for range sessions {
		go func() {
			_, err := db.Pool.Exec(t.Context(), `select pg_sleep(0.5)`)
			open <- err
		}()
	}
	for range sessions {
		musttest.OK(t, <-open)
	}
	if n := db.Pool.Stat().TotalConns(); n != sessions {
		t.Fatalf("%d connections", n)
	}
	musttest.OK(t, primary.Kill())
	if err := one(); fault.KindOf(err) != fault.Unavailable {
		t.Fatalf("without a primary: %v", err)
	}
	musttest.OK(t, standby.Promote(context.Background()))
	promoted, err := pgx.Connect(t.Context(), strings.Replace(address, fmt.Sprintf("127.0.0.1:%d,", primary.Port()), "", 1))
	musttest.OK(t, err)
	defer promoted.Close(context.WithoutCancel(t.Context()))
	n := 0
	for end := time.Now().Add(30 * time.Second); n < sessions && time.Now().Before(end); {
		musttest.OK(t, promoted.QueryRow(t.Context(), `select count(*) from pg_stat_activity where application_name = 'returns'`).Scan(&n))
	}
	if n != sessions {
		t.Errorf("%d sessions came back, want %d", n, sessions)
	}
	if err := one(); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func exec(t *testing.T, address, sql string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	musttest.OK(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))
	if _, err := c.Exec(t.Context(), "begin;"+sql+";commit"); err != nil {
		t.Fatal(err)
	}
}
