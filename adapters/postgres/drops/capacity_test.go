package drops_test

import (
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
)

// TestAhead: the published drops that open in an interval with their customers, and the app's
// reminders that are due in it, whether their slot waits or has finished.
func TestAhead(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	near, far := m.Published(2*time.Hour), m.Published(5*time.Hour)
	m.Draft(nil)
	m.ReserveAll(near, pgtest.Users(1, 10), append(pgtest.Reminders(delivery.App, 60, 5), pgtest.Reminders(delivery.Webhook, 60)...)...)
	m.ReserveAll(near, pgtest.Users(11, 13), pgtest.Reminders(delivery.App, 5)...)
	m.ReserveAll(far, pgtest.Users(1, 3), pgtest.Reminders(delivery.App, 5)...)
	m.RelayCounts()
	store, from := dropsdb.NewForecasts(m.DB), near.OpensAt.Add(-time.Hour-time.Minute)
	drops, err := store.DropsAhead(t.Context(), from, near.OpensAt.Add(time.Minute))
	m.Must(err)
	if len(drops) != 1 || drops[0].TemplateID != near.ID || drops[0].Reserved != 20 || !drops[0].OpensAt.Equal(near.OpensAt) || drops[0].Gate || drops[0].Left != near.Stock || drops[0].Timezone == "" {
		t.Errorf("%+v", drops)
	}
	// A door of the other drop opens within the interval, four hours before that drop.
	m.Exec(`insert into doors (template_id, place, name, who, segment_id, lead_minutes, share, user_limit, texts, booked_share) values ($1, 1, 'Members', 'list', 1, 210, 2, 0, '{}', 500), ($1, 2, 'All', 'all', null, 0, 0, 0, '{}', 500)`, far.ID)
	m.Exec(`update templates set doors = 2 where id = $1`, far.ID)
	if drops, err = store.DropsAhead(t.Context(), far.OpensAt.Add(-4*time.Hour), far.OpensAt.Add(-3*time.Hour)); err != nil || len(drops) != 2 || drops[1].Door != "Members" || drops[1].Reserved != 1 || drops[1].Left != 2 {
		t.Errorf("a door: %+v, %v", drops, err)
	}
	expect := func(when string, want ...int64) {
		t.Helper()
		slots, err := store.SlotsAhead(t.Context(), from, near.OpensAt.Add(time.Minute))
		m.Must(err)
		if len(slots) != len(want) {
			t.Fatalf("%s: %+v", when, slots)
		}
		for i, s := range slots {
			if s.TemplateID != near.ID || s.Messages != want[i] || s.Timezone == "" {
				t.Errorf("%s: %+v", when, s)
			}
		}
	}
	expect("waiting", 10, 13)
	m.Exec(`update slots set state = 'sending', fired_at = due_at, cut_at = due_at where template_id = $1 and slot = 12`, near.ID)
	expect("going out", 10, 13)
	m.Exec(`update slots set state = 'finished', finished_at = due_at where template_id = $1 and slot = 12`, near.ID)
	expect("finished", 10, 13)
	m.Exec(`update slots set stop_reason = 'cancelled' where template_id = $1 and slot = 12`, near.ID)
	expect("stopped", 13)
	from = near.OpensAt.Add(-30 * time.Minute)
	expect("later", 13)
}
