package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// shortLease is how long the right to cut lasts in these tests.
const shortLease = 300 * time.Millisecond

// slowReading makes reading take several leases, in which nobody else must get
// the right to cut.
type slowReading struct {
	take  func() error // as somebody else
	taken bool
}

func (s *slowReading) read() {
	for range 30 {
		<-time.After(shortLease / 10)
		s.taken = s.taken || s.take() == nil
	}
}

// slowCampaigns reads its audience slowly.
type slowCampaigns struct {
	postgres.Campaigns
	slow *slowReading
}

func (s slowCampaigns) Audience(c campaign.Cut) campaign.AudienceReader {
	return slowAudience{s.Campaigns.Audience(c), s.slow}
}

type slowAudience struct {
	campaign.AudienceReader
	slow *slowReading
}

func (a slowAudience) Next(ctx context.Context, limit int) (users, strangers []user.ID, err error) {
	a.slow.read()
	return a.AudienceReader.Next(ctx, limit)
}

// TestACutIsKeptWhileAPageIsRead: nobody takes a campaign over from a cutter
// that is reading, and everybody gets the message.
func TestACutIsKeptWhileAPageIsRead(t *testing.T) {
	s := newStage(t)
	s.users(3000, 1)
	c := s.published(nil)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	slow := &slowReading{take: func() error { _, err := s.campaigns.BeginCut(t.Context(), c.ID, shortLease); return err }}
	s.launcher.Store, s.launcher.LeaseFor = slowCampaigns{s.campaigns, slow}, shortLease
	s.Must(s.launcher.Cut(t.Context(), c.ID))
	if n := s.Number(`select coalesce(sum(users), 0) from campaign_messages`); slow.taken || n != 3000 || s.now(c).CutAt == nil {
		t.Errorf("taken over: %v; %d users cut, ended %v", slow.taken, n, s.now(c).CutAt)
	}
}

// TestACancelledCutStopsReading, without having stored anything.
func TestACancelledCutStopsReading(t *testing.T) {
	s := newStage(t)
	s.users(10, 1)
	c := s.published(nil)
	s.Must(s.launcher.Start(t.Context(), c.ID))
	cut, err := s.campaigns.BeginCut(t.Context(), c.ID, time.Minute)
	s.Must(err)
	s.Must(s.campaigns.KeepCut(t.Context(), cut, time.Minute))
	_, err = s.service.Do(t.Context(), staff.System(), c.ID, 0, campaign.Cancelling, "wrong")
	s.Must(err)
	if err := s.campaigns.KeepCut(t.Context(), cut, time.Minute); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("kept after it was cancelled: %v", err)
	}
}

type slowSlots struct {
	postgres.Slots
	slow *slowReading
}

func (s slowSlots) ReadDue(ctx context.Context, c reminder.Cut, part delivery.Range) (reminder.Due, error) {
	s.slow.read()
	return s.Slots.ReadDue(ctx, c, part)
}

type slowAnnouncements struct {
	postgres.Announcements
	slow *slowReading
}

func (s slowAnnouncements) ReadAudience(ctx context.Context, c reminder.AnnouncementCut, part delivery.Range) (reminder.Due, error) {
	s.slow.read()
	return s.Announcements.ReadAudience(ctx, c, part)
}

// TestATakeoverIsKeptWhereEverythingIsCovered: whoever goes on with a slot or
// an announcement all of whose batches exist stores nothing, and still nobody
// else takes over while it reads.
func TestATakeoverIsKeptWhereEverythingIsCovered(t *testing.T) {
	n := newNewsroom(t)
	tpl := n.Published(2 * time.Hour)
	n.Seed(tpl, 300, pgtest.Reminders(delivery.App, 60)...)
	slot := n.DueNow(tpl, 12)
	timers := n.Timers(n.queue)
	cut, err := n.Slots.BeginFiring(t.Context(), slot.ID, shortLease)
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
	slow := &slowReading{take: func() error { _, err := n.Slots.BeginFiring(t.Context(), slot.ID, shortLease); return err }}
	timers.Store, timers.LeaseFor = slowSlots{n.Slots, slow}, shortLease
	n.Must(timers.Fire(t.Context(), slot.ID))
	if now := n.Slot(tpl, 12); slow.taken || now.State != reminder.Sending {
		t.Errorf("slot taken over: %v; %s", slow.taken, now.State)
	}
	n.drain()
	n.moveBy(tpl, time.Hour)

	a, err := n.staff.Send(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCorrection})
	n.Must(err)
	_, err = n.Slots.FinishSlots(t.Context())
	n.Must(err)
	first, err := n.store.BeginAnnouncing(t.Context(), a.ID, shortLease)
	n.Must(err)
	storeAll(first.Parts, func(p delivery.Range) (reminder.Due, error) { return n.store.ReadAudience(t.Context(), first, p) },
		func(bs []reminder.NewBatch) ([]int64, error) {
			return n.store.StoreAnnouncementBatches(t.Context(), first, bs)
		})
	n.Exec(`update announcements set cut_lease_until = clock_timestamp() - interval '1 second'`)
	slow = &slowReading{take: func() error { _, err := n.store.BeginAnnouncing(t.Context(), a.ID, shortLease); return err }}
	n.worker.Store, n.worker.LeaseFor = slowAnnouncements{n.store, slow}, shortLease
	n.Must(n.worker.Cut(t.Context(), a.ID))
	if s := n.status(tpl, a.ID); slow.taken || s.State != reminder.AnnouncementSending {
		t.Errorf("announcement taken over: %v; %s", slow.taken, s.State)
	}
}
