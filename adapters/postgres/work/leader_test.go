package work_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
)

func TestOneLeader(t *testing.T) {
	w := newFixture(t)
	db, err := postgres.Open(t.Context(), w.SQL.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), TransactionIdle: 100 * time.Millisecond})
	w.Must(err)
	t.Cleanup(db.Close)
	house := workdb.NewHousekeeping(db)
	inside, leave, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- house.Leader(t.Context(), "count", func(context.Context) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	ran := false
	other := func(context.Context) error { ran = true; return nil }
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); { // longer than idle transactions may live
		w.Must(house.Leader(t.Context(), "count", other))
		<-time.After(10 * time.Millisecond)
	}
	if ran {
		t.Error("two leaders")
	}
	// Vacuum and indexes that are being built wait for nothing of the leader's.
	if n := w.Number(`select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`); n != 1 {
		t.Errorf("%d sessions lead", n)
	}
	if n := w.Number(`select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'
		and (backend_xmin is not null or backend_xid is not null)`); n != 0 {
		t.Error("the leader keeps a snapshot")
	}
	w.Must(house.Leader(t.Context(), "another job", other))
	if !ran {
		t.Error("an unrelated job was kept out")
	}
	close(leave)
	w.Must(<-ended)
	ran = false
	w.Must(house.Leader(t.Context(), "count", other))
	if !ran {
		t.Error("nobody succeeds the leader")
	}
}
