package pg_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/musttest"
)

// replicaFixture is a primary with a standby that reports may be read from.
type replicaFixture struct {
	*testing.T
	primary, standby *localstack.Postgres
	db, behind       *pg.DB
	replica          *pg.Replica
}

func newReplicaFixture(t *testing.T, most time.Duration) *replicaFixture {
	f := &replicaFixture{T: t, primary: localstack.Primary(t)}
	f.standby = localstack.Standby(t, f.primary)
	f.db, f.behind = f.open(f.primary.URL()), f.open(f.standby.URL())
	f.exec(f.db, `create table facts (n int)`)
	f.replica = f.openReplica(f.standby.URL(), most)
	return f
}

func (f *replicaFixture) open(url string) *pg.DB {
	db, err := pg.Open(f.Context(), url, pg.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(db.Close)
	return db
}

func (f *replicaFixture) openReplica(url string, most time.Duration) *pg.Replica {
	r, err := pg.OpenReplica(f.Context(), f.db, url, most, pg.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(r.Close)
	return r
}

func (f *replicaFixture) exec(db *pg.DB, sql string) {
	f.Helper()
	if _, err := db.Pool.Exec(f.Context(), sql); err != nil {
		f.Fatal(err)
	}
}

// until looks at both databases until the state is as wanted.
func (f *replicaFixture) until(wanted string, holds func(pg.ReplicaState) bool) {
	f.Helper()
	f.untilOf(f.replica, wanted, holds)
}

func (f *replicaFixture) untilOf(r *pg.Replica, wanted string, holds func(pg.ReplicaState) bool) {
	f.Helper()
	for end := time.Now().Add(time.Minute); ; {
		r.Look(f.Context())
		if holds(r.State()) {
			return
		}
		if time.Now().After(end) {
			f.Fatalf("not %s within a minute: %+v", wanted, r.State())
		}
	}
}

func usable(s pg.ReplicaState) bool { return s.Usable }

// facts counts rows as a report that begins after the position does, and returns
// whether the replica answered.
func (f *replicaFixture) facts(after pg.Position) (n int, fromReplica bool) {
	f.Helper()
	ctx, reading, end := f.replica.Begin(f.Context(), after)
	defer end()
	if err := f.db.WithReplica(f.replica).Reports(ctx).Pool.QueryRow(ctx, `select count(*) from facts`).Scan(&n); err != nil {
		f.Fatal(err)
	}
	_, fromReplica = reading.Lag()
	return n, fromReplica
}

// TestReportsReadTheReplica: reports read the replica while its lag is small
// enough and it has replayed the change that the report must show. Otherwise
// reports read the primary.
func TestReportsReadTheReplica(t *testing.T) {
	const most = 300 * time.Millisecond
	f := newReplicaFixture(t, most)
	if _, from := f.facts(0); from {
		t.Error("read from a replica at which nobody has looked yet")
	}
	made, err := f.replica.Position(t.Context())
	musttest.OK(t, err)
	f.until("caught up with the table", func(pg.ReplicaState) bool { _, from := f.facts(made); return from })
	if n, from := f.facts(0); n != 0 || !from {
		t.Errorf("%d facts, from the replica %v", n, from)
	}

	// The replica stops replaying: new rows show on the primary alone.
	f.exec(f.behind, `select pg_wal_replay_pause()`)
	f.exec(f.db, `insert into facts values (1)`)
	after, err := f.replica.Position(t.Context())
	musttest.OK(t, err)
	f.replica.Look(t.Context())
	if f.replica.State().Usable { // on a busy machine it may be too far behind by now
		if n, from := f.facts(0); n != 0 || !from {
			t.Errorf("before the limit: %d facts, from the replica %v", n, from)
		}
	}
	if n, from := f.facts(after); n != 1 || from {
		t.Errorf("after a change: %d facts, from the replica %v", n, from)
	}
	f.until("too far behind", func(s pg.ReplicaState) bool { return !s.Usable && s.CaughtUp && s.Lag > most })
	if reason := f.replica.State().Reason; !strings.Contains(reason, "behind") {
		t.Errorf("reason %q", reason)
	}
	if n, from := f.facts(0); n != 1 || from {
		t.Errorf("too far behind: %d facts, from the replica %v", n, from)
	}

	f.exec(f.behind, `select pg_wal_replay_resume()`)
	f.until("usable again", usable)
	f.until("caught up with the change", func(pg.ReplicaState) bool { _, from := f.facts(after); return from })
	if n, _ := f.facts(after); n != 1 {
		t.Errorf("%d facts on a replica that has the change", n)
	}
}

// TestAQuietPrimaryHasNoReplicaBehind: without changes there is nothing to replay.
func TestAQuietPrimaryHasNoReplicaBehind(t *testing.T) {
	f := newReplicaFixture(t, time.Hour)
	f.until("usable", usable)
	var first, last string
	position := func(to *string) {
		musttest.OK(t, f.db.Pool.QueryRow(t.Context(), `select pg_current_wal_flush_lsn()::text`).Scan(to))
	}
	f.until("quiet for a while", func(pg.ReplicaState) bool {
		position(&first)
		f.replica.Look(t.Context())
		position(&last)
		// The lag is the time since this comparison began, not since the last
		// change.
		return first == last && f.replica.State().Lag < time.Second
	})
}

// TestAReplicaThatFails ends the reports that wait for it.
func TestAReplicaThatFails(t *testing.T) {
	f := newReplicaFixture(t, time.Hour)
	f.until("usable", usable)
	ctx, _, end := f.replica.Begin(t.Context(), 0)
	defer end()
	f.standby.Pause() // connections stay open and nothing answers
	stuck := make(chan error, 1)
	go func() {
		_, err := f.db.WithReplica(f.replica).Reports(ctx).Pool.Exec(ctx, `select count(*) from facts`)
		stuck <- err
	}()
	f.until("away", func(s pg.ReplicaState) bool { return !s.Usable && !s.CaughtUp })
	if err := <-stuck; err == nil {
		t.Error("a halted server has answered")
	}
	if n, from := f.facts(0); n != 0 || from {
		t.Errorf("%d facts, from the replica %v", n, from)
	}
	f.standby.Resume()
	f.until("usable again", usable)
	musttest.OK(t, f.standby.Kill())
	f.until("away", func(s pg.ReplicaState) bool { return !s.Usable })
	musttest.OK(t, f.standby.Restart(context.Background()))
	f.until("usable after a restart", usable)

	// A server that was promoted has a life of its own.
	musttest.OK(t, f.standby.Promote(context.Background()))
	f.until("no standby", func(s pg.ReplicaState) bool { return !s.Usable && strings.Contains(s.Reason, "no standby") })
}

// TestNoReplicaOfThisDatabase: a replica's address that leads to the primary
// itself, or to a standby of another primary, is not used.
func TestNoReplicaOfThisDatabase(t *testing.T) {
	f := newReplicaFixture(t, time.Hour)
	self := f.openReplica(f.primary.URL(), time.Hour)
	f.untilOf(self, "known as no standby", func(s pg.ReplicaState) bool { return strings.Contains(s.Reason, "no standby") && !s.Usable })
	stranger := f.openReplica(localstack.Standby(t, localstack.Primary(t)).URL(), time.Hour)
	f.untilOf(stranger, "known as another's", func(s pg.ReplicaState) bool {
		return strings.Contains(s.Reason, "another database") && !s.Usable
	})
}
