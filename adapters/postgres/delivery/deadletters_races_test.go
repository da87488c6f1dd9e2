package delivery_test

import (
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// TestMovingSeesBatchesBeingStored: a batch that is committed while the move
// waits for the slot is stopped too.
func TestMovingSeesBatchesBeingStored(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 5), pgtest.Reminders(delivery.App, 60)...)
	sl := n.DueNow(tpl, 12)
	cut, err := n.Slots.BeginFiring(t.Context(), sl.ID, time.Minute)
	n.Must(err)
	tx, commit := n.Hold(`update slots set cut_lease_until = now() + interval '10 seconds' where id = $1`, sl.ID)
	rows.Insert(t, tx, "batches", rows.Row{"owner_id": sl.ID, "template_id": tpl.ID, "to_user": 5, "due_count": 5, "worthless_after": tpl.OpensAt})
	var moving sync.WaitGroup
	moving.Go(func() { n.MoveBy(tpl, time.Hour) })
	n.Blocked(1)
	commit()
	moving.Wait()
	if stopped := n.Number(`select count(*) from batches where owner_id = $1 and stop_reason = $2`, cut.ID, delivery.ReasonMoved); stopped != 1 {
		t.Error("the batch goes on telling the old opening")
	}
}

// replaying begins to replay the dead letters of a slot in the given state and
// pauses halfway. proceed resumes the replay and waits for its end.
func replaying(m *pgtest.FailingHook, state string) (tpl int64, slot int64, proceed func()) {
	m.Helper()
	m.Cause = func(user.ID) string { return "status 500" }
	t, sl := m.Bury(1, 5, 10)
	m.Exec(`update slots set state = $2 where id = $1`, sl.ID, state)
	_, release := m.Hold(`select from dead_letter_groups for update`)
	_, err := m.Letters.Start(m.Context(), pgtest.Actor, delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{}})
	m.Must(err)
	var step sync.WaitGroup
	step.Go(func() {
		if err := m.Letters.Step(m.Context()); err != nil {
			m.Error(err)
		}
	})
	m.Blocked(1)
	return t.ID, sl.ID, func() { release(); step.Wait() }
}

func TestASlotIsNotFinishedUnderAReplay(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	_, slot, proceed := replaying(m, "sending")
	if n, err := m.Slots.FinishSlots(t.Context()); n != 0 || err != nil {
		t.Errorf("finished %d, %v", n, err)
	}
	proceed()
	if state := m.SlotState(slot); state != "sending" {
		t.Errorf("the slot is %s and a batch is ready", state)
	}
}

func TestAMoveStopsAReplay(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	id, _, proceed := replaying(m, "finished")
	tpl, err := m.Templates.Template(t.Context(), id)
	m.Must(err)
	var moving sync.WaitGroup
	moving.Go(func() { m.MoveBy(tpl, time.Hour) })
	m.Blocked(2)
	proceed()
	moving.Wait()
	m.Cause = func(user.ID) string { return "" }
	m.Drain()
	if sums := m.Finish(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 5, Skipped: 5}) {
		t.Errorf("the old opening was told after the move: %+v", sums)
	}
}
