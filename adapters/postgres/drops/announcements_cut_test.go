package drops_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestCuttingAnAnnouncementAgainAfterACrash stores a part of the batches and lets
// another process take over. Each recipient gets one message.
func TestCuttingAnAnnouncementAgainAfterACrash(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.Seed(tpl, 2600, pgtest.Reminders(delivery.App, 60)...)
	n.Remind(tpl, 12)
	n.MoveBy(tpl, time.Hour)
	a, err := n.Staff.Send(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCorrection})
	n.Must(err)
	cut, err := n.Store.BeginAnnouncing(t.Context(), a.ID, time.Minute)
	n.Must(err)
	var ids []user.ID
	for _, part := range cut.Parts {
		due, err := n.Store.ReadAudience(t.Context(), cut, part)
		n.Must(err)
		ids = append(ids, due[delivery.App]...)
	}
	if len(ids) != 2600 || !slices.IsSorted(ids) {
		t.Fatalf("%d users in the parts", len(ids))
	}
	parts := delivery.CutIntoBatches(ids, nil, 400)
	_, err = n.Store.StoreAnnouncementBatches(t.Context(), cut, []reminder.NewBatch{{Channel: delivery.App, Users: parts[1]}, {Channel: delivery.App, Users: parts[4]}})
	n.Must(err)
	if _, err := n.Store.BeginAnnouncing(t.Context(), a.ID, time.Minute); !errors.Is(err, reminder.ErrNotFirable) {
		t.Fatalf("taken while somebody cuts: %v", err)
	}
	n.Exec(`update announcements set cut_lease_until = now() - interval '1 second', created_at = created_at - interval '1 minute'`)
	if ids, err := n.Store.DueAnnouncements(t.Context(), time.Second, 10); err != nil || !slices.Equal(ids, []int64{a.ID}) {
		t.Fatalf("abandoned cutting is not found: %v %v", ids, err)
	}
	n.Must(n.Worker.Cut(t.Context(), a.ID))
	if _, err := n.Store.StoreAnnouncementBatches(t.Context(), cut, []reminder.NewBatch{{Channel: delivery.App, Users: parts[0]}}); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("the first process could still store: %v", err)
	}
	n.Must(n.Store.EndAnnouncing(t.Context(), cut)) // does nothing
	n.Drain()
	if got := pgtest.Reached(t, n.App, delivery.KindCorrection); len(got) != 2600 {
		t.Errorf("%d reached", len(got))
	}
	if s := n.Status(tpl, a.ID); s.Channels[delivery.App] != (delivery.Counts{Reserved: 2600, Sent: 2600}) || s.State != reminder.AnnouncementSending {
		t.Errorf("%+v", s)
	}
	if f, err := n.Store.FinishAnnouncements(t.Context()); f != 1 || err != nil {
		t.Errorf("finished %d %v", f, err)
	}
	if f, err := n.Store.FinishAnnouncements(t.Context()); f != 0 || err != nil {
		t.Errorf("finished again: %d %v", f, err)
	}
}

// TestCorrectionWaitsForWhatItCorrects: a correction is not cut while reminders
// of the old opening are still being sent, because its recipients are not known
// yet.
func TestCorrectionWaitsForWhatItCorrects(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.Seed(tpl, 1500, pgtest.Reminders(delivery.App, 60)...)
	sl := n.DueNow(tpl, 12)
	n.Must(n.Timers(n.Queue).Fire(t.Context(), sl.ID))
	running, err := n.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
	n.Must(err)
	n.MoveBy(tpl, time.Hour)
	a, err := n.Staff.Send(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCorrection})
	n.Must(err)
	n.Must(n.Worker.Cut(t.Context(), a.ID))
	n.Exec(`update announcements set created_at = created_at - interval '1 minute'`)
	if ids, err := n.Store.DueAnnouncements(t.Context(), time.Second, 10); err != nil || len(ids) != 0 {
		t.Errorf("due although reminders are still on their way: %v %v", ids, err)
	}
	if s := n.Status(tpl, a.ID); s.State != reminder.AnnouncementWaiting {
		t.Fatalf("%+v", s)
	}
	// A call in flight reached 100 users after all.
	reachedLate := running.Batch().Left[:100]
	stop, err := running.Checkpoint(t.Context(), delivery.Progress{Sent: slices.Clone(reachedLate), Rest: delivery.Skipped, RestReason: delivery.ReasonMoved, Done: true})
	n.Must(err)
	if stop != delivery.ReasonMoved {
		t.Errorf("stop %q", stop)
	}
	n.Drain()
	if f, err := n.Slots.FinishSlots(t.Context()); f != 1 || err != nil {
		t.Fatalf("%d %v", f, err)
	}
	n.Must(n.Worker.Sweep(t.Context())) // the work of the lost event
	if !slices.ContainsFunc(n.Queue.Tasks, func(q task.Task) bool {
		return q.Name == task.Announcing && q.Payload == task.AnnouncementPayload{AnnouncementID: a.ID}
	}) {
		t.Error("the sweep queued nothing")
	}
	n.Must(n.Worker.Cut(t.Context(), a.ID))
	n.Drain()
	n.Must(n.Worker.Sweep(t.Context()))
	if got := pgtest.Reached(t, n.App, delivery.KindCorrection); !slices.Equal(got, reachedLate) {
		t.Errorf("%d reached", len(got))
	}
	if s := n.Status(tpl, a.ID); s.State != reminder.AnnouncementFinished {
		t.Errorf("the sweep did not finish it: %+v", s)
	}
}

// TestCorrectionStopsWhenItIsWrong moves or cancels the drop in every state of
// the correction.
func TestCorrectionStopsWhenItIsWrong(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		change       func(n *pgtest.Notifier, tpl template.Template)
	}{
		{"moved", delivery.ReasonMoved, func(n *pgtest.Notifier, tpl template.Template) { n.MoveBy(tpl, time.Hour) }},
		{"cancelled", delivery.ReasonCancelled, func(n *pgtest.Notifier, tpl template.Template) {
			_, err := n.Service.Do(n.Context(), staff.System(), tpl.ID, 0, template.Cancelling, "")
			n.Must(err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := pgtest.NewNotifier(t)
			start := func() (template.Template, reminder.Announcement) {
				tpl := n.Published(2 * time.Hour)
				n.ReserveAll(tpl, pgtest.Users(1, 30), pgtest.Reminders(delivery.App, 60)...)
				n.Remind(tpl, 12)
				n.MoveBy(tpl, time.Hour)
				a, err := n.Staff.Send(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCorrection})
				n.Must(err)
				return tpl, a
			}
			waiting, first := start()
			c.change(n, waiting)
			if s := n.Status(waiting, first.ID); s.State != reminder.AnnouncementFinished || s.StopReason != c.reason || s.FinishedAt == nil {
				t.Errorf("waiting: %+v", s)
			}
			n.Must(n.Worker.Cut(t.Context(), first.ID)) // the task that was queued finds nothing to do
			cutting, second := start()
			cut, err := n.Store.BeginAnnouncing(t.Context(), second.ID, time.Minute)
			n.Must(err)
			_, err = n.Store.StoreAnnouncementBatches(t.Context(), cut, []reminder.NewBatch{{Channel: delivery.App, Users: pgtest.Users(1, 10)}})
			n.Must(err)
			c.change(n, cutting)
			_, err = n.Store.StoreAnnouncementBatches(t.Context(), cut, []reminder.NewBatch{{Channel: delivery.App, Users: pgtest.Users(11, 30)}})
			n.Must(err)
			n.Must(n.Store.EndAnnouncing(t.Context(), cut))
			n.Drain()
			_, err = n.Store.FinishAnnouncements(t.Context())
			n.Must(err)
			if s := n.Status(cutting, second.ID); s.State != reminder.AnnouncementFinished || s.Channels[delivery.App] != (delivery.Counts{Reserved: 30, Skipped: 30}) {
				t.Errorf("cutting: %+v", s)
			}
			if got := pgtest.Reached(t, n.App, delivery.KindCorrection); len(got) != 0 {
				t.Errorf("reached %v", got)
			}
			if bad := n.Number(`select count(*) from batches where kind = 'correction' and rest_reason is distinct from $1`, c.reason); bad != 0 {
				t.Errorf("%d batches ended for another reason", bad)
			}
		})
	}
}
