package delivery_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/google/go-cmp/cmp"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// memories are a store that remembers topics at once and a store that remembers none.
type memories struct {
	*pgtest.Notifier
	plain, remembering deliverydb.Inbox
}

func newMemories(t *testing.T, most int) *memories {
	m := &memories{Notifier: pgtest.NewNotifier(t)}
	m.Exec(`create table histories (name text)`)
	m.Exec(`insert into histories values ('first')`)
	m.plain, m.remembering = deliverydb.NewRememberingInbox(m.DB, 1<<30, most), deliverydb.NewRememberingInbox(m.DB, 1, most)
	t.Cleanup(m.plain.Close)
	t.Cleanup(m.remembering.Close)
	return m
}

func (m *memories) page(of deliverydb.Inbox, id user.ID) inbox.Page {
	m.Helper()
	page, err := of.Page(m.Context(), id, time.Time{}, 20)
	m.Must(err)
	return page
}

// agree fails unless both stores answer the same pages, twice: the second pages come from the
// memory.
func (m *memories) agree(step string) {
	m.Helper()
	for range 2 {
		for id := user.ID(1); id <= 6; id++ {
			if diff := cmp.Diff(m.page(m.plain, id), m.page(m.remembering, id)); diff != "" {
				m.Fatalf("%s: the page of user %d (- read, + remembered):\n%s", step, id, diff)
			}
		}
		m.remembering.Remembered()
	}
}

// TestRememberedPagesAreAsNewAsReadPages: after every change of batches, exceptions and templates
// the remembered pages are those that are read from all batches.
func TestRememberedPagesAreAsNewAsReadPages(t *testing.T) {
	m := newMemories(t, 2000)
	m.agree("nothing was sent")
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 4), pgtest.Reminders(delivery.App, 60, 30)...)
	m.Remind(tpl, 12)
	m.agree("a reminder")
	if topics, size := m.remembering.Remembered(); topics == 0 || size == 0 {
		t.Fatalf("%d topics of %d bytes are remembered", topics, size)
	}
	m.Remind(tpl, 6)
	m.agree("a second reminder of a remembered drop")
	m.Exec(`insert into exceptions (batch_id, user_id, channel, outcome, reason, last_at) select min(id), 2, 0, 'recovered', 'timeout', now() + interval '1 minute' from batches`)
	m.Exec(`update batches set sent = sent, finished_at = finished_at + interval '1 second' where id = (select min(id) from batches)`)
	m.agree("a message that was sent after a failure")
	m.MoveBy(tpl, time.Hour)
	m.Send(tpl, delivery.KindCorrection)
	m.agree("a correction")
	m.Exec(`update templates set name = 'Other' where id = $1`, tpl.ID)
	m.agree("another name")
	m.Cancel(tpl, 3)
	m.agree("a user without the reservation")
	m.Exec(`delete from batches where id = (select max(id) from batches)`)
	m.agree("a removed batch")
	m.Exec(`update histories set name = 'second'`)
	m.agree("another history of the server")
}

// TestRememberedCampaigns: campaigns and their tests are remembered too, and a campaign's first
// message is on the next page.
func TestRememberedCampaigns(t *testing.T) {
	m := newMemories(t, 2000)
	random := rand.New(rand.NewPCG(3, 4))
	now := time.Now().UTC().Truncate(time.Microsecond)
	set := func() []byte {
		b := roaring64.New()
		for id := range uint64(6) {
			if random.IntN(2) == 0 {
				b.Add(id + 1)
			}
		}
		raw, err := b.ToBytes()
		m.Must(err)
		return raw
	}
	for i := range 60 {
		at := now.Add(time.Duration(i) * time.Minute)
		if i%3 == 0 {
			id := m.ID("campaigns", pgtest.Row{"starts_at": now, "ends_at": now.AddDate(0, 1, 0), "state": "running", "started_at": now})
			for _, kind := range []delivery.Kind{delivery.KindCampaign, delivery.KindTest} {
				m.Insert("batches", pgtest.Row{"kind": kind, "owner_id": id, "from_user": 1, "to_user": 6, "due_at": at, "worthless_after": at, "due": set()})
			}
		}
		m.Exec(`update batches set sent = $1, finished_at = $2 where id = (select id from batches order by md5(id::text || $3) limit 1)`, set(), at, strconv.Itoa(i))
		m.agree("campaigns")
	}
}

// TestChangesOfTransactionsUnderWay: a change that began before a topic was read, or before
// another change, and committed later, is on the next page.
func TestChangesOfTransactionsUnderWay(t *testing.T) {
	m := newMemories(t, 2000)
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 4), pgtest.Reminders(delivery.App, 60)...)
	m.Remind(tpl, 12)
	m.Exec(`update batches set sent = null`)
	early, err := m.SQL.Begin(t.Context())
	m.Must(err)
	defer func() { _ = early.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = early.Exec(t.Context(), `update batches set sent = due`)
	m.Must(err)
	m.agree("before it committed")
	later := m.Published(2 * time.Hour)
	m.ReserveAll(later, pgtest.Users(1, 4), pgtest.Reminders(delivery.App, 60)...)
	m.Remind(later, 12)
	m.agree("after another transaction")
	m.Must(early.Commit(t.Context()))
	m.agree("after it committed")
	if page := m.page(m.remembering, 1); len(page.Items) != 2 {
		t.Errorf("%d messages", len(page.Items))
	}
}

// TestTheMemoryForgets: after many changes, without room, and after a pause longer than changes
// are kept, pages are read from the database, and then remembered again.
func TestTheMemoryForgets(t *testing.T) {
	m := newMemories(t, 3)
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 4), pgtest.Reminders(delivery.App, 60)...)
	m.Remind(tpl, 12)
	m.agree("a reminder")
	for range 5 {
		m.Exec(`update batches set finished_at = finished_at + interval '1 second'`)
	}
	m.agree("more changes than are read")
	if topics, _ := m.remembering.Remembered(); topics == 0 {
		t.Error("nothing is remembered again")
	}
	cramped := deliverydb.NewRememberingInbox(m.DB, 1, 100)
	defer cramped.Close()
	cramped.Room(10)
	for range 3 {
		if page := m.page(cramped, 1); len(page.Items) != 1 {
			t.Errorf("without room: %d messages", len(page.Items))
		}
		if topics, size := cramped.Remembered(); size != 0 || topics > 1 { // the tests of campaigns, of which there are none
			t.Errorf("%d topics of %d bytes are remembered", topics, size)
		}
	}
}

// TestMarksShareStatements: marks of one user and of many at once leave the greatest instant, and
// none moves back.
func TestMarksShareStatements(t *testing.T) {
	n := pgtest.NewNotifier(t)
	start := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	done := make(chan error)
	for i := range 200 {
		go func() {
			at := start.Add(time.Duration(i/10) * time.Second)
			stands, err := n.Inbox.MarkRead(t.Context(), user.ID(i%10+1), at)
			if err == nil && stands.Before(at) {
				t.Errorf("marked %v, stands %v", at, stands)
			}
			done <- err
		}()
	}
	for range 200 {
		n.Must(<-done)
	}
	if k := n.Number(`select count(*) from inbox_reads where read_through = $1`, start.Add(19*time.Second)); k != 10 {
		t.Errorf("%d users have read everything", k)
	}
	future, err := n.Inbox.MarkRead(t.Context(), 1, start.AddDate(1, 0, 0))
	n.Must(err)
	if future.After(time.Now().Add(time.Minute)) {
		t.Errorf("read through %v", future)
	}
}

// TestChangesOfTheInboxAreRemoved: recorded changes are removed an hour after housekeeping saw them.
func TestChangesOfTheInboxAreRemoved(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 4), pgtest.Reminders(delivery.App, 60)...)
	n.Remind(tpl, template.Slot(12))
	if n.Number(`select count(*) from inbox_changes`) == 0 {
		t.Fatal("no change is recorded")
	}
	for _, seen := range []bool{true, false} {
		n.Clean()
		if left := n.Number(`select count(*) from inbox_changes where seen is not null`); (left > 0) != seen {
			t.Errorf("%d changes are seen", left)
		}
		n.Exec(`update inbox_changes set seen = seen - interval '61 minutes'`)
	}
}
