package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestInboxPagesDivideNoInstant: the next page begins before the time of the last
// message, so messages of the same time must not be divided between pages.
func TestInboxPagesDivideNoInstant(t *testing.T) {
	n := pgtest.NewNotifier(t)
	for range 4 {
		tpl := n.Published(2 * time.Hour)
		n.ReserveAll(tpl, pgtest.Users(1, 1), pgtest.Reminders(delivery.App, 60)...)
		n.Remind(tpl, 12)
	}
	n.Exec(`update batches b set finished_at = (select min(finished_at) from batches where template_id = case b.template_id when 129 then 65 else b.template_id end)`)
	seen, before := map[string]bool{}, time.Time{}
	var sizes []int
	for range 4 {
		page, err := n.Inbox.Page(t.Context(), 1, before, 2)
		n.Must(err)
		for _, m := range page.Items {
			seen[m.ID], before = true, m.At
		}
		sizes = append(sizes, len(page.Items))
	}
	if len(seen) != 4 || !slices.Equal(sizes, []int{3, 1, 0, 0}) {
		t.Errorf("%d messages on pages of %v", len(seen), sizes)
	}
}

// TestWhatWasSentStaysInTheInbox: a user who cancels the remaining reminders of a
// reservation keeps the sent messages. After reserving again the user still has
// each message once.
func TestWhatWasSentStaysInTheInbox(t *testing.T) {
	n := pgtest.NewNotifier(t)
	count := func(id user.ID) int {
		box, err := n.Inbox.Page(t.Context(), id, time.Time{}, 10)
		n.Must(err)
		return len(box.Items)
	}
	untouched := n.Published(2 * time.Hour)
	n.ReserveAll(untouched, pgtest.Users(1, 1), pgtest.Reminders(delivery.App, 5)...)
	n.Cancel(untouched, 1)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 3), pgtest.Reminders(delivery.App, 60)...)
	n.Remind(tpl, 12)
	tpl = n.MoveBy(tpl, time.Hour)
	if v := n.Cancel(tpl, 1); !v.Applied || !v.After.IsEmpty() || count(1) != 1 {
		t.Errorf("after cancelling: %+v and %d messages", v, count(1))
	}
	n.ReserveAll(tpl, pgtest.Users(1, 1), pgtest.Reminders(delivery.App, 5)...)
	if count(1) != 1 {
		t.Errorf("reserved again: %d messages", count(1))
	}
	_, err := n.Service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Cancelling, "")
	n.Must(err)
	n.Send(tpl, delivery.KindCancelled)
	for range 2 {
		n.Cancel(tpl, 2)
		if count(2) != 2 {
			t.Errorf("after tidying up: %d messages", count(2))
		}
	}
	if former := n.Number(`select count(*) from former_reservations`); former != 3 {
		t.Errorf("%d remembered: one of the first drop, of which nothing was sent", former)
	}
}

// TestInboxShowsAnnouncements: the inbox and the live push contain the same
// items.
func TestInboxShowsAnnouncements(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.Exec(`update templates set claim_url = 'https://shop.example/1' where id = $1`, tpl.ID)
	n.ReserveAll(tpl, pgtest.Users(1, 3), pgtest.Reminders(delivery.App, 60)...)
	n.ReserveAll(tpl, pgtest.Users(4, 4), pgtest.Reminders(delivery.App, 5)...)
	n.Remind(tpl, 12)
	moved := n.MoveBy(tpl, time.Hour)
	correction := n.Send(tpl, delivery.KindCorrection)
	_, err := n.Service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Cancelling, "")
	n.Must(err)
	notice := n.Send(tpl, delivery.KindCancelled)
	box, err := n.Inbox.Page(t.Context(), 2, time.Time{}, 10)
	n.Must(err)
	if len(box.Items) != 3 || box.Unread != 3 {
		t.Fatalf("%+v", box)
	}
	for i, want := range []struct {
		id, url string
		kind    delivery.Kind
		opens   time.Time
		due     time.Time
	}{
		{fmt.Sprint(1_000_000_000_000_000_000 + notice.ID), "", delivery.KindCancelled, moved.OpensAt, notice.CreatedAt},
		{fmt.Sprint(1_000_000_000_000_000_000 + correction.ID), "https://shop.example/1", delivery.KindCorrection, moved.OpensAt, correction.CreatedAt},
		{"", "https://shop.example/1", delivery.KindReminder, tpl.OpensAt, time.Time{}},
	} {
		it := box.Items[i]
		if want.id != "" && it.ID != want.id || it.Kind != want.kind || it.ClaimURL != want.url || !it.OpensAt.Equal(want.opens) ||
			!want.due.IsZero() && (!it.DueAt.Equal(want.due) || it.Slot != 0) || it.Name != tpl.Name || it.Read {
			t.Errorf("item %d: %+v", i, it)
		}
	}
	rows, err := n.SQL.Query(t.Context(), `select id from batches where channel = 0 order by id`)
	n.Must(err)
	var pushed []string
	for rows.Next() {
		var id int64
		n.Must(rows.Scan(&id))
		connected := func(_, _ user.ID, reached inbox.Users) []user.ID {
			return slices.DeleteFunc([]user.ID{2, 9}, func(id user.ID) bool { return !reached.Contains(id) })
		}
		p, reached, err := n.Inbox.Arrival(t.Context(), delivery.KindReminder, id, connected)
		n.Must(err)
		shown := p.Message(2)
		pushed = append(pushed, shown.ID)
		if i := slices.IndexFunc(box.Items, func(it inbox.Message) bool { return it == shown }); i < 0 || !reached || !slices.Equal(p.Users, []user.ID{2}) {
			t.Errorf("pushed %+v", shown)
		}
	}
	if len(pushed) != 3 {
		t.Errorf("pushed %v", pushed)
	}
	only, err := n.Inbox.Page(t.Context(), 4, time.Time{}, 10) // was never reminded
	n.Must(err)
	if len(only.Items) != 1 || only.Items[0].Kind != delivery.KindCancelled {
		t.Errorf("%+v", only)
	}
}

// TestRecentIsWhatEndedSince: Recent returns the app batches that ended since a
// time. While dead letters are replayed it returns all users, because a replay
// does not change a batch's end.
func TestRecentIsWhatEndedSince(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(3, 7), pgtest.Reminders(delivery.App, 60)...)
	n.Remind(tpl, 12)
	var ended time.Time
	n.Must(n.SQL.QueryRow(t.Context(), `select finished_at from batches where channel = 0`).Scan(&ended))
	recent := func(since time.Time, limit int) ([]inbox.Span, bool) {
		spans, complete, err := n.Inbox.Recent(t.Context(), since, limit)
		n.Must(err)
		return spans, complete
	}
	if spans, complete := recent(ended, 10); len(spans) != 1 || !complete || spans[0].From != 3 || spans[0].To != 7 || !spans[0].At.Equal(ended) {
		t.Errorf("%+v, %v", spans, complete)
	}
	if _, complete := recent(ended, 0); complete {
		t.Error("more than the limit is complete")
	}
	if spans, complete := recent(ended.Add(time.Microsecond), 10); len(spans) != 0 || !complete {
		t.Errorf("later: %+v, %v", spans, complete)
	}
	n.Exec(`insert into dead_letter_jobs (action, filter, created_by) values ('replay', '{}', 'ann')`)
	if spans, _ := recent(ended.Add(time.Hour), 10); len(spans) != 1 || spans[0].From > 1 || spans[0].To < 1<<40 {
		t.Errorf("during a replay: %+v", spans)
	}
}

// TestCampaignsInTheInbox: probing campaigns by their end and stopping early
// gives the same pages as reading all campaigns. Campaigns end in another order
// than they began; some have not ended, some reached only other users, and some
// were tested.
func TestCampaignsInTheInbox(t *testing.T) {
	const me = user.ID(7)
	n := pgtest.NewNotifier(t)
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var mine []time.Time // when a message reached me
	batch := func(kind delivery.Kind, campaign int64, at time.Time, reached ...uint64) {
		sent, err := roaring64.BitmapOf(reached...).ToBytes()
		n.Must(err)
		n.Insert("batches", pgtest.Row{"kind": kind, "owner_id": campaign, "from_user": 5, "to_user": 9, "state": "done", "due_at": at, "worthless_after": at,
			"due": sent, "sent": sent, "finished_at": at})
		if slices.Contains(reached, uint64(me)) {
			mine = append(mine, at)
		}
	}
	for i := range 150 {
		at := start.Add(time.Duration(random.IntN(150)) * time.Hour)
		var settled *time.Time
		if i%10 != 0 {
			end := at.Add(time.Duration(random.IntN(48)) * time.Hour)
			settled = &end
		}
		var id int64
		id = n.ID("campaigns", pgtest.Row{"starts_at": start, "ends_at": start.AddDate(0, 1, 0), "state": "finished", "started_at": start, "settled_at": settled})
		reached := []uint64{5, 7, 9}
		if i%7 == 0 {
			reached = []uint64{5, 9}
		}
		batch(delivery.KindCampaign, id, at, reached...)
		if i%50 == 0 {
			batch(delivery.KindTest, id, at.Add(time.Minute), 7)
		}
	}
	slices.SortFunc(mine, func(a, b time.Time) int { return b.Compare(a) })
	for range 60 {
		read := start.Add(time.Duration(random.IntN(200)-20) * time.Hour)
		n.Exec(`insert into inbox_reads (user_id, read_through) values ($1, $2) on conflict (user_id) do update set read_through = $2`, me, read)
		var before time.Time
		if random.IntN(2) == 0 {
			before = start.Add(time.Duration(random.IntN(170)) * time.Hour)
		}
		limit := 1 + random.IntN(40)
		var want []time.Time
		unread := 0
		for _, at := range mine {
			if at.After(read) {
				unread++
			}
			if (before.IsZero() || at.Before(before)) && (len(want) < limit || at.Equal(want[len(want)-1])) {
				want = append(want, at)
			}
		}
		page, err := n.Inbox.Page(t.Context(), me, before, limit)
		n.Must(err)
		var got []time.Time
		for _, m := range page.Items {
			got = append(got, m.At)
			if m.Read != !m.At.After(read) || m.ID == "" {
				t.Errorf("%+v, read through %v", m, read)
			}
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) || page.Unread != min(unread, inbox.MaxUnread) {
			t.Fatalf("before %v, limit %d, read through %v: %d messages, %d unread; want %d, %d", before, limit, read, len(got), page.Unread, len(want), unread)
		}
	}
}
