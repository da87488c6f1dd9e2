package drops_test

import (
	"context"
	"sync"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// TestOpenedLinksCountOnce: a user who opens links of a drop counts once, over all messages,
// nodes and orders. An opened link of a draft, an ended drop or no drop is not stored. The
// count stays when the rows are removed.
func TestOpenedLinksCountOnce(t *testing.T) {
	m := newFixture(t)
	openings := dropsdb.NewOpenings(m.DB)
	one, two, draft := m.Published(time.Hour), m.Published(2*time.Hour), m.Draft(nil)
	opened := func(id int64) (n int64) {
		t.Helper()
		board, err := dropsdb.NewBoards(m.DB).Board(t.Context(), id)
		m.Must(err)
		cockpit, err := dropsdb.NewCockpits(m.DB).Cockpit(t.Context(), id, nil)
		m.Must(err)
		if cockpit.Opened != board.Opened {
			t.Errorf("the cockpit says %d, the board %d", cockpit.Opened, board.Opened)
		}
		return board.Opened
	}
	var all sync.WaitGroup
	for node := range 8 {
		all.Go(func() {
			for round := range 5 {
				var readers []reminder.Reader
				for i := range 40 {
					id := user.ID(1 + (i*7+node*3+round)%40)
					readers = append(readers, reminder.Reader{TemplateID: one.ID, UserID: id, Slot: 2, Channel: delivery.SMS},
						reminder.Reader{TemplateID: two.ID, UserID: id + 5, Channel: delivery.Email},
						reminder.Reader{TemplateID: two.ID, UserID: id + 5, Slot: 1, Channel: delivery.WebPush},
						reminder.Reader{TemplateID: draft.ID, UserID: id}, reminder.Reader{TemplateID: 999, UserID: id})
				}
				m.Must(openings.Open(t.Context(), readers))
			}
		})
	}
	all.Wait()
	if a, b, c := opened(one.ID), opened(two.ID), opened(draft.ID); a != 40 || b != 40 || c != 0 {
		t.Errorf("opened %d, %d, %d", a, b, c)
	}
	if n := m.Number(`select count(*) from drop_openings`); n != 80 {
		t.Errorf("%d rows", n)
	}
	m.Exec(`update templates set opens_at = opens_at - interval '40 days', closes_at = now() - interval '39 days' where id = $1`, one.ID)
	m.Must(openings.Open(t.Context(), []reminder.Reader{{TemplateID: one.ID, UserID: 77}}))
	m.Clean()
	m.Must(openings.Open(t.Context(), []reminder.Reader{{TemplateID: one.ID, UserID: 1}}))
	if n := m.Number(`select count(*) from drop_openings where template_id = $1`, one.ID); n != 0 || opened(one.ID) != 40 {
		t.Errorf("after retention %d rows, opened %d", n, opened(one.ID))
	}
}

// TestALockedDropStopsNoOtherOpenings: while one drop is locked, opened links of other drops
// are stored.
func TestALockedDropStopsNoOtherOpenings(t *testing.T) {
	m := newFixture(t)
	held, other := m.Published(time.Hour), m.Published(time.Hour)
	o := &reminder.Openings{Store: dropsdb.NewOpenings(m.DB), Pause: 10 * time.Millisecond}
	o.Start()
	t.Cleanup(func() { o.Close(context.Background()) })
	note := func(drop int64, by user.ID, within time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return o.Note(ctx, reminder.Reader{TemplateID: drop, UserID: by})
	}
	_, release := m.Hold(`select from templates where id = $1 for update`, held.ID)
	if note(held.ID, 1, 50*time.Millisecond) {
		t.Error("an opening of the drop that is locked was stored")
	}
	for by := range user.ID(20) {
		if !note(other.ID, by+1, 5*time.Second) {
			t.Errorf("the opening of user %d waits", by+1)
		}
	}
	release()
	if !note(held.ID, 2, 5*time.Second) {
		t.Error("after the lock an opening waits")
	}
	o.Close(t.Context())
	if n := m.Number(`select count(*) from drop_openings where template_id = $1`, held.ID); n != 2 {
		t.Errorf("%d openings of the drop that was locked", n)
	}
}
