package work_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/musttest"
)

// relayAll merges and relays the waiting events, as a worker does, and returns the number of
// published events.
func relayAll(t *testing.T, o workdb.Outbox) (published int) {
	t.Helper()
	for {
		waiting, unmerged, _, err := o.Waiting(t.Context(), 100)
		musttest.OK(t, err)
		if waiting == 0 {
			return published
		}
		for _, topic := range unmerged {
			musttest.OK(t, o.Merge(t.Context(), topic, 100, func(all [][]byte) ([][]byte, error) { return all[:1], nil }))
		}
		if _, err := o.Relay(t.Context(), 100, func(_ context.Context, list []workdb.Announcement) error {
			published += len(list)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestARelayLeavesBehindWhatHasLeft: a transaction with an old snapshot keeps every event that
// was relayed since. The relay's reads do not visit these events again and again: they read
// entries of the last seconds, not of the last hours.
func TestARelayLeavesBehindWhatHasLeft(t *testing.T) {
	const events, rounds = 200, 20
	w := newFixture(t)
	w.Exec(`alter table outbox set (autovacuum_enabled = off)`)
	old, err := w.SQL.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	w.Must(err)
	defer func() { _ = old.Rollback(context.Background()) }()
	_, err = old.Exec(t.Context(), `select from templates limit 1`)
	w.Must(err)
	db, err := postgres.Open(t.Context(), w.DB.Pool.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), MaxConns: 1})
	w.Must(err)
	t.Cleanup(db.Close)
	now := time.Now()
	o := workdb.NewOutbox(db).At(func() time.Time { return now })
	o.Summed = []string{"summed"}
	read := func() (entries int64) {
		_, err := db.Pool.Exec(t.Context(), `select pg_stat_force_next_flush()`)
		w.Must(err)
		w.Must(db.Pool.QueryRow(t.Context(), `select i.idx_tup_read + t.seq_tup_read
			from pg_stat_user_indexes i join pg_stat_user_tables t using (relid) where i.indexrelname = 'outbox_pkey'`).Scan(&entries))
		return entries
	}
	for range rounds {
		w.fillOutbox(events)
		w.Exec(`insert into outbox (topic, payload) select 'summed', '{}' from generate_series(1, 50)`)
		if n := relayAll(t, o); n != events+1 {
			t.Fatalf("%d events were published of %d and a sum", n, events)
		}
		now = now.Add(workdb.WholeEvery)
	}
	if n, _, _, err := o.Waiting(t.Context(), 100); n != 0 || err != nil { // looks at the whole
		t.Fatal(n, err)
	}
	before := read()
	for range 10 {
		if relayAll(t, o) != 0 {
			t.Error("an event was published twice")
		}
	}
	w.fillOutbox(1)
	if n := relayAll(t, o); n != 1 {
		t.Errorf("%d events were published of one", n)
	}
	// Each read may visit the events that the last round relayed.
	if n, most := read()-before, int64(14*(events+60)); n > most {
		t.Errorf("13 looks visited %d entries, at most %d; %d have left", n, most, rounds*events)
	}
}

// TestAnEventThatCommitsLateLeaves: the event's number was drawn long before the numbers of
// other events that have left.
func TestAnEventThatCommitsLateLeaves(t *testing.T) {
	w := newFixture(t)
	now := time.Now()
	o := workdb.NewOutbox(w.DB).At(func() time.Time { return now })
	o.Summed = []string{"summed"}
	if n := relayAll(t, o); n != 0 { // no number was ever drawn
		t.Fatalf("%d events of none", n)
	}
	now = now.Add(workdb.WholeEvery)
	relayAll(t, o)
	w.fillOutbox(1)
	if n := relayAll(t, o); n != 1 {
		t.Fatalf("the first event of all: %d were published", n)
	}
	late, err := w.SQL.Begin(t.Context())
	w.Must(err)
	_, err = late.Exec(t.Context(), `insert into outbox (topic, payload) values ('t', '{}'), ('summed', '{}')`)
	w.Must(err)
	for range 4 {
		w.fillOutbox(10)
		if n := relayAll(t, o); n != 10 {
			t.Fatalf("%d events were published of 10", n)
		}
		now = now.Add(workdb.WholeEvery)
	}
	relayAll(t, o) // at the whole
	w.Must(late.Commit(t.Context()))
	now = now.Add(workdb.WholeEvery)
	if n := relayAll(t, o); n != 2 {
		t.Errorf("%d events were published of the two that were committed late", n)
	}
	if n := waitingIn(t, o); n != 0 {
		t.Errorf("%d events wait", n)
	}
}
