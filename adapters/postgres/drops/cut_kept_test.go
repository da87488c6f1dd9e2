package drops_test

import (
	"context"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
)

type slowSlots struct {
	dropsdb.Slots
	slow *pgtest.SlowReading
}

func (s slowSlots) ReadDue(ctx context.Context, c reminder.Cut, part delivery.Range) (reminder.Due, error) {
	s.slow.Read()
	return s.Slots.ReadDue(ctx, c, part)
}

func (s slowSlots) ReadTogether(ctx context.Context, cuts []reminder.Cut) ([]reminder.Due, error) {
	s.slow.Read()
	return s.Slots.ReadTogether(ctx, cuts)
}

type slowAnnouncements struct {
	dropsdb.Announcements
	slow *pgtest.SlowReading
}

func (s slowAnnouncements) ReadAudience(ctx context.Context, c reminder.AnnouncementCut, part delivery.Range) (reminder.Due, error) {
	s.slow.Read()
	return s.Announcements.ReadAudience(ctx, c, part)
}

// TestATakeoverIsKeptWhereEverythingIsCovered: a worker takes over a slot or an
// announcement whose batches all exist. The worker stores nothing, and still
// keeps its lease while it reads.
func TestATakeoverIsKeptWhereEverythingIsCovered(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.Seed(tpl, 300, pgtest.Reminders(delivery.App, 60)...)
	slot := n.DueNow(tpl, 12)
	timers := n.Timers(n.Queue)
	cut, err := n.Slots.BeginFiring(t.Context(), slot.ID, pgtest.ShortLease)
	n.Must(err)
	storeAll := func(parts []delivery.Range, read func(delivery.Range) (reminder.Due, error), store func([]reminder.NewBatch) ([]int64, error)) {
		t.Helper()
		for _, part := range parts {
			due, err := read(part)
			n.Must(err)
			_, err = store([]reminder.NewBatch{{Channel: delivery.App, Users: due[delivery.App]}})
			n.Must(err)
		}
	}
	storeAll(cut.Parts, func(p delivery.Range) (reminder.Due, error) { return n.Slots.ReadDue(t.Context(), cut, p) },
		func(bs []reminder.NewBatch) ([]int64, error) { return n.Slots.StoreBatches(t.Context(), cut, bs) })
	n.Exec(`update slots set cut_lease_until = clock_timestamp() - interval '1 second' where id = $1`, slot.ID) // and then it died
	slow := &pgtest.SlowReading{Take: func() error { _, err := n.Slots.BeginFiring(t.Context(), slot.ID, pgtest.ShortLease); return err }}
	timers.Store, timers.LeaseFor = slowSlots{n.Slots, slow}, pgtest.ShortLease
	n.Must(timers.Fire(t.Context(), slot.ID))
	if now := n.Slot(tpl, 12); slow.Taken || now.State != reminder.Sending {
		t.Errorf("slot taken over: %v; %s", slow.Taken, now.State)
	}
	n.Drain()
	n.MoveBy(tpl, time.Hour)

	a, err := n.Staff.Send(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCorrection})
	n.Must(err)
	_, err = n.Slots.FinishSlots(t.Context())
	n.Must(err)
	first, err := n.Store.BeginAnnouncing(t.Context(), a.ID, pgtest.ShortLease)
	n.Must(err)
	storeAll(first.Parts, func(p delivery.Range) (reminder.Due, error) { return n.Store.ReadAudience(t.Context(), first, p) },
		func(bs []reminder.NewBatch) ([]int64, error) {
			return n.Store.StoreAnnouncementBatches(t.Context(), first, bs)
		})
	n.Exec(`update announcements set cut_lease_until = clock_timestamp() - interval '1 second'`)
	slow = &pgtest.SlowReading{Take: func() error { _, err := n.Store.BeginAnnouncing(t.Context(), a.ID, pgtest.ShortLease); return err }}
	n.Worker.Store, n.Worker.LeaseFor = slowAnnouncements{n.Store, slow}, pgtest.ShortLease
	n.Must(n.Worker.Cut(t.Context(), a.ID))
	if s := n.Status(tpl, a.ID); slow.Taken || s.State != reminder.AnnouncementSending {
		t.Errorf("announcement taken over: %v; %s", slow.Taken, s.State)
	}
}
