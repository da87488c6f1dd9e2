package drops_test

import (
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestHeldOutUsersGetNoReminder: held-out users are skipped on every slot and channel, without a
// row for each. The balance sheets and the receipts add up, and explain says why.
func TestHeldOutUsersGetNoReminder(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	const n, refused = 500, 9
	m.Cause = func(id user.ID) string {
		if id%refused == 0 {
			return "status 503"
		}
		return ""
	}
	tpl := m.Published(2 * time.Hour)
	m.Exec(`update templates set hold_out_percent = 20 where id = $1`, tpl.ID)
	m.ReserveAll(tpl, pgtest.Users(1, n), append(pgtest.Reminders(delivery.Webhook, 60), pgtest.Reminders(delivery.App, 5, 60)...)...)
	var held, reached, dead []user.ID
	for _, id := range pgtest.Users(1, n) {
		switch {
		case delivery.HeldOutOfDrop(tpl.ID, 20, id):
			held = append(held, id)
		case id%refused == 0:
			dead = append(dead, id)
		default:
			reached = append(reached, id)
		}
	}
	for _, k := range []template.Slot{12, 1} {
		slot := m.CutSlot(tpl, k, 100)
		m.Drain()
		_, err := m.Slots.FinishSlots(t.Context())
		m.Must(err)
		_, _, counted := readReceipt(m.Fixture, slot.ID)
		if len(counted) == 0 {
			t.Error("the receipt is empty")
		}
	}
	sums := m.Balanced(tpl)
	hook, app := sums[delivery.Webhook], sums[delivery.App]
	if hook.Sent != int64(len(reached)) || hook.Skipped != int64(len(held)) || hook.Dead != int64(len(dead)) || app.Sent != 2*(n-int64(len(held))) || app.Skipped != 2*int64(len(held)) {
		t.Errorf("%d are held out, %d dead: %+v, app %+v", len(held), len(dead), hook, app)
	}
	if rows := m.Number(`select count(*) from exceptions`); rows != int64(len(dead)) {
		t.Errorf("%d exceptions for %d dead letters", rows, len(dead))
	}
	tells(m, tpl, held[0], "reserved", "fired app60", "fired webhook60", "outcome app60 skipped hold_out", "outcome webhook60 skipped hold_out",
		"fired app5", "outcome app5 skipped hold_out")
	if box, err := m.Inbox.Page(t.Context(), held[0], time.Time{}, 10); err != nil || len(box.Items) != 0 {
		t.Errorf("%+v %v", box, err)
	}
	// A replay of the dead letters reaches their users and no held-out user.
	m.Cause = func(user.ID) string { return "" }
	if job := m.Work(delivery.Replay, delivery.DeadLetterFilter{TemplateID: tpl.ID}, 0); job.Done != int64(len(dead)) {
		t.Errorf("%+v", job)
	}
	m.Drain()
	if hook = m.Balanced(tpl)[delivery.Webhook]; hook.Sent != int64(len(reached)+len(dead)) || hook.Skipped != int64(len(held)) {
		t.Errorf("after the replay: %+v", hook)
	}
}
