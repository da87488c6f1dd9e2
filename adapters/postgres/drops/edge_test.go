package drops

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

// TestFiringWaitsForAGroupBeingCommitted holds a group's transaction open across
// the due instant. Firing must wait for it and then find its user: if the slot
// was not locked, firing would read before the group commits, and an
// acknowledged reservation would be in no batch.
func TestFiringWaitsForAGroupBeingCommitted(t *testing.T) {
	ctx := t.Context()
	db, err := pg.Open(ctx, localstack.Database(t), pg.Options{AppName: "test", Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(db.Close)
	var slotID int64
	_, err = db.Pool.Exec(ctx, `insert into shops values (10, 's', 'UTC')`)
	must(t, err)
	must(t, db.Pool.QueryRow(ctx, `
		with t as (insert into templates (shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at, closes_at,
				valid_hours, obtain, claim_mode, state)
			select 10, 'x', 'amount_off', 1, 'CNY', 'shop', 1, 1, date_trunc('second', now() + interval '1 hour'), now() + interval '2 hours',
				1, 'claim', 'durable', 'published' returning id, opens_at)
		insert into slots (template_id, slot, opens_at, due_at, state)
		select id, 1, opens_at, clock_timestamp() + interval '500 milliseconds', 'waiting' from t returning id`).Scan(&slotID))

	group, err := db.Pool.Begin(ctx)
	must(t, err)
	defer func() { _ = group.Rollback(ctx) }()
	rows, err := group.Query(ctx, reserveSQL[reserving{keys: none}], []int64{1}, []int64{7}, []int64{1}, reminder.EveryChannel, []int64{1},
		`[{"template_id": "1", "bits": "1", "users": 1}]`, "")
	must(t, err)
	applied, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (bool, error) {
		v, err := row.Values()
		return err == nil && v[1] != nil, err
	})
	must(t, err)
	if !applied {
		t.Fatal("the reservation was refused before the instant")
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

// waitsForLock reports whether a session waits for a lock before anything
// arrives on done.
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
