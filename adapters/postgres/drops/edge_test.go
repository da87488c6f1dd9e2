package drops

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

// TestFiringWaitsForAGroupBeingCommitted keeps a group's transaction open across
// the due time. Firing must wait for the group and then find its user. Without
// the lock on the slot, firing would read before the group commits, and an
// acknowledged reservation would be in no batch.
func TestFiringWaitsForAGroupBeingCommitted(t *testing.T) {
	ctx := t.Context()
	db, err := pg.Open(ctx, localstack.Database(t), pg.Options{AppName: "test", Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(db.Close)
	drop := rows.Drop{}.Add(t, db.Pool)
	slotID := rows.ID(t, db.Pool, "slots", rows.Row{"template_id": drop})
	// The slot becomes due while the group is open. If the machine needs longer
	// than the margin to reserve, the reservation is refused, and the test tries
	// again with twice the margin.
	var group pgx.Tx
	defer func() { _ = group.Rollback(ctx) }()
	for margin := 500 * time.Millisecond; ; margin *= 2 {
		_, err = db.Pool.Exec(ctx, `update slots set due_at = clock_timestamp() + $2 where id = $1`, slotID, margin)
		must(t, err)
		group, err = db.Pool.Begin(ctx)
		must(t, err)
		found, err := group.Query(ctx, reserveSQL[reserving{keys: none}], []int64{1}, []int64{7}, []int64{1}, reminder.EveryChannel, []int64{1},
			`[{"template_id": "1", "bits": "1", "users": 1}]`, "")
		must(t, err)
		applied, err := pgx.CollectExactlyOneRow(found, func(row pgx.CollectableRow) (bool, error) {
			v, err := row.Values()
			return err == nil && v[1] != nil, err
		})
		must(t, err)
		if applied {
			break
		}
		if must(t, group.Rollback(ctx)); margin > 10*time.Second {
			t.Fatal("the reservation was refused before the instant")
		}
	}

	slots := NewSlots(db, nil)
	cuts, errs := make(chan reminder.Cut, 1), make(chan error, 1)
	go func() {
		for {
			cut, err := slots.BeginFiring(ctx, slotID, time.Minute)
			if err == nil && cut.Wait > 0 {
				continue // not due yet
			}
			cuts <- cut
			errs <- err
			return
		}
	}()
	if !waitsForLock(t, db, cuts) {
		t.Fatalf("firing did not wait for the group that was being committed: %v", <-errs)
	}
	must(t, group.Commit(ctx))
	cut := <-cuts
	must(t, <-errs)
	due, err := slots.ReadDue(ctx, cut, delivery.Range{From: 1, To: 1000})
	must(t, err)
	if len(due[delivery.App]) != 1 || due[delivery.App][0] != 7 {
		t.Fatalf("firing found %v", due[delivery.App])
	}
}

// waitsForLock reports whether a session waits for a lock before a value arrives
// on done.
func waitsForLock(t *testing.T, db *pg.DB, done <-chan reminder.Cut) bool {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return false
		case <-deadline:
			return false
		case <-tick.C:
		}
		var waiting bool
		must(t, db.Pool.QueryRow(t.Context(), `select exists (select from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waiting))
		if waiting {
			return true
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
