package pg_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/musttest"
)

// TestThePoolFollowsThePrimary: the address names two servers, the primary is
// stopped, and the standby is promoted. The pool then uses the new primary.
func TestThePoolFollowsThePrimary(t *testing.T) {
	primary := localstack.Primary(t)
	standby := localstack.Standby(t, primary)
	url := fmt.Sprintf("postgres://dropbell@127.0.0.1:%d,127.0.0.1:%d/dropbell?sslmode=disable&target_session_attrs=read-write", primary.Port(), standby.Port())
	db, err := pg.Open(t.Context(), url, pg.Options{Log: slog.New(slog.DiscardHandler)})
	musttest.OK(t, err)
	defer db.Close()
	write := func() error {
		_, err := db.Pool.Exec(t.Context(), `update console_settings set second_factor = second_factor`)
		return pg.Translate(err)
	}
	musttest.OK(t, write())
	musttest.OK(t, primary.Kill())
	for range 3 { // each connection that is broken, and then none
		if err := write(); !errors.Is(err, pg.ErrUnavailable) {
			t.Fatalf("without a primary: %v", err)
		}
	}
	musttest.OK(t, standby.Promote(context.Background()))
	if err := write(); err != nil {
		t.Errorf("on the promoted standby: %v", err)
	}
}

// TestConnectionsToADemotedPrimaryAreDropped: the server behind open connections
// accepts no more writes, as after a failover behind a pooler.
func TestConnectionsToADemotedPrimaryAreDropped(t *testing.T) {
	db, err := pg.Open(t.Context(), localstack.Database(t), pg.Options{Log: slog.New(slog.DiscardHandler)})
	musttest.OK(t, err)
	defer db.Close()
	session := func() (pid uint32) {
		t.Helper()
		musttest.OK(t, db.Pool.QueryRow(t.Context(), `select pg_backend_pid()`).Scan(&pid))
		return pid
	}
	old := session()
	if _, err := db.Pool.Exec(t.Context(), `set default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	_, err = db.Pool.Exec(t.Context(), `create table facts (n int)`)
	if !errors.Is(pg.Translate(err), pg.ErrUnavailable) {
		t.Fatalf("a write to a standby: %v", err)
	}
	for end := time.Now().Add(time.Minute); session() == old; {
		if time.Now().After(end) {
			t.Fatal("the connection is still in use")
		}
	}
	if _, err := db.Pool.Exec(t.Context(), `create table facts (n int)`); err != nil {
		t.Errorf("on a new connection: %v", err)
	}
}
