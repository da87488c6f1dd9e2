package drops_test

import (
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// TestAMovedOpeningIsNotLate: the due time of a reminder had passed when the
// opening was moved. The reminder could not be sent before the move, so the time
// before the move is no lateness.
func TestAMovedOpeningIsNotLate(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 10), pgtest.Reminders(delivery.Webhook, 5)...)
	spec := tpl.Spec
	spec.OpensAt = time.Now().Add(time.Minute).Truncate(time.Second)
	before := time.Now().Add(-time.Second)
	tpl, err := m.Service.Edit(t.Context(), staff.System(), tpl.ID, template.Edition{Version: tpl.Version, Spec: spec, Reason: "now"})
	m.Must(err)
	waiting, _, err := m.Slots.WaitingSlots(t.Context(), tpl.ID)
	m.Must(err)
	var sl reminder.Slot
	for _, s := range waiting {
		if s.Slot == 1 {
			sl = s
		}
	}
	if !sl.DueAt.Equal(spec.OpensAt.Add(-5 * time.Minute)) {
		t.Fatalf("slot 1 is due %v", sl.DueAt)
	}
	m.Cut(sl, 4)
	var mu sync.Mutex // batches are delivered side by side
	worst := time.Duration(-1)
	m.Daemon.Observe = func(_ delivery.Channel, _ int, late time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		worst = max(worst, late)
	}
	m.Drain()

	const soon = time.Minute // the time of this test, on any machine; it was four
	if worst < 0 || worst > soon {
		t.Errorf("the metric says %v", worst)
	}
	row := rowOf(t, cockpit(m, tpl), 1)
	if late := row.FiredLate(); late <= 0 || late > soon {
		t.Errorf("the slot fired %v late", late)
	}
	late := row.Lanes[delivery.Webhook].Late
	if p, bounded := late.Quantile(1); late.Messages() != 10 || !bounded || p > soon {
		t.Errorf("the cockpit says %v of %d messages", p, late.Messages())
	}
	board, err := m.Boards.Lateness(t.Context(), sl.ID)
	m.Must(err)
	if l := board[delivery.Webhook]; l[1] <= 0 || l[1] > soon {
		t.Errorf("the board says %v", l)
	}
	for _, s := range explain(m, tpl, 1).Steps {
		if s.Kind == reminder.StepFired && (s.Planned == nil || s.Planned.Before(before) || s.At.Sub(*s.Planned) > soon) {
			t.Errorf("explained as %+v, planned for %v", s, s.Planned)
		}
	}
	if keys := m.Number(`select count(*) from slots where id = $1 and due_at = $2`, sl.ID, sl.DueAt); keys != 1 {
		t.Error("its due instant, by which providers know repetitions, has changed")
	}
}
