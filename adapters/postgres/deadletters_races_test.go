package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// blocked waits until n statements of this database wait for locks.
func (w *world) blocked(n int64) {
	w.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if w.Number(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == n {
			return
		}
	}
	w.Fatalf("there were never %d statements waiting", n)
}

// hold runs sql in a transaction and returns its end.
func (w *world) hold(sql string, args ...any) (pgx.Tx, func()) {
	w.Helper()
	tx, err := w.SQL.Begin(w.Context())
	w.Must(err)
	w.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(w.Context())) }) // after a failure, so that nobody waits for ever
	_, err = tx.Exec(w.Context(), sql, args...)
	w.Must(err)
	return tx, func() { w.Must(tx.Commit(w.Context())) }
}

// TestMovingSeesBatchesBeingStored: a batch that is committed while the move
// waits for the slot is stopped too.
func TestMovingSeesBatchesBeingStored(t *testing.T) {
	n := newNewsroom(t)
	tpl := n.Published(2 * time.Hour)
	n.reserveAll(tpl, users(1, 5), pgtest.Reminders(delivery.App, 60)...)
	sl := n.DueNow(tpl, 12)
	cut, err := n.Slots.BeginFiring(t.Context(), sl.ID, time.Minute)
	n.Must(err)
	tx, commit := n.hold(`update slots set cut_lease_until = now() + interval '10 seconds' where id = $1`, sl.ID)
	_, err = tx.Exec(t.Context(), `insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_at, worthless_after, due, due_count)
		values ('reminder', $1, $2, 0, 1, 5, now(), $3, '', 5)`, sl.ID, tpl.ID, tpl.OpensAt)
	n.Must(err)
	var moving sync.WaitGroup
	moving.Go(func() { n.moveBy(tpl, time.Hour) })
	n.blocked(1)
	commit()
	moving.Wait()
	if stopped := n.Number(`select count(*) from batches where owner_id = $1 and stop_reason = $2`, cut.ID, delivery.ReasonMoved); stopped != 1 {
		t.Error("the batch goes on telling the old opening")
	}
}

// replaying begins to replay the letters of a slot in the given state and
// stops it half-way; proceed lets it go on and waits.
func (m *morgue) replaying(state string) (tpl int64, slot int64, proceed func()) {
	m.Helper()
	m.cause = func(user.ID) string { return "status 500" }
	t, sl := m.bury(1, 5, 10)
	m.Exec(`update slots set state = $2 where id = $1`, sl.ID, state)
	_, release := m.hold(`select from dead_letter_groups for update`)
	_, err := m.letters.Start(m.Context(), pgtest.Actor, delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{}})
	m.Must(err)
	var step sync.WaitGroup
	step.Go(func() {
		if err := m.letters.Step(m.Context()); err != nil {
			m.Error(err)
		}
	})
	m.blocked(1)
	return t.ID, sl.ID, func() { release(); step.Wait() }
}

func TestASlotIsNotFinishedUnderAReplay(t *testing.T) {
	m := newMorgue(t)
	_, slot, proceed := m.replaying("sending")
	if n, err := m.Slots.FinishSlots(t.Context()); n != 0 || err != nil {
		t.Errorf("finished %d, %v", n, err)
	}
	proceed()
	if state := m.slotState(slot); state != "sending" {
		t.Errorf("the slot is %s and a batch is ready", state)
	}
}

func TestAMoveStopsAReplay(t *testing.T) {
	m := newMorgue(t)
	id, _, proceed := m.replaying("finished")
	tpl, err := m.Templates.Template(t.Context(), id)
	m.Must(err)
	var moving sync.WaitGroup
	moving.Go(func() { m.moveBy(tpl, time.Hour) })
	m.blocked(2)
	proceed()
	moving.Wait()
	m.cause = func(user.ID) string { return "" }
	m.drain()
	if sums := m.finish(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 5, Skipped: 5}) {
		t.Errorf("the old opening was told after the move: %+v", sums)
	}
}
