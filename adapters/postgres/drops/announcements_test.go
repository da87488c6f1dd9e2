package drops_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestCorrectionReachesWhoeverWasReminded: users 1–40 are reminded twice in app,
// users 21–60 once by webhook, and users 61–80 not at all. One of the first group
// could not be reached and needs no correction.
func TestCorrectionReachesWhoeverWasReminded(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 20), pgtest.Reminders(delivery.App, 60, 55)...)
	n.ReserveAll(tpl, pgtest.Users(21, 40), append(pgtest.Reminders(delivery.App, 60, 55), pgtest.Reminders(delivery.Webhook, 55)...)...)
	n.ReserveAll(tpl, pgtest.Users(41, 60), pgtest.Reminders(delivery.Webhook, 55)...)
	n.ReserveAll(tpl, pgtest.Users(61, 80), pgtest.Reminders(delivery.App, 5)...)
	n.Hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID == 60 {
			return delivery.Result{Status: delivery.Permanent, Detail: "gone"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	n.Remind(tpl, 12)
	n.Remind(tpl, 11)
	moved := n.MoveBy(tpl, 3*time.Hour)
	preview, err := n.Staff.Preview(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCorrection})
	n.Must(err)
	want := reminder.Audience{delivery.App: 40, delivery.Webhook: 39}
	if preview.Audience != want || preview.Messages() != 79 {
		t.Errorf("preview %v, want %v", preview, want)
	}
	var told []delivery.Subject
	n.Hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		told = append(told, *m.Subject)
		return delivery.Result{Status: delivery.Delivered}
	}
	a := n.Send(tpl, delivery.KindCorrection)
	if got := pgtest.Reached(t, n.App, delivery.KindCorrection); !slices.Equal(got, pgtest.Users(1, 40)) {
		t.Errorf("app reached %v", got)
	}
	if got := pgtest.Reached(t, n.Hook, delivery.KindCorrection); !slices.Equal(got, pgtest.Users(21, 59)) {
		t.Errorf("webhook reached %v", got)
	}
	for _, s := range told {
		if s.Kind != delivery.KindCorrection || s.Slot != 0 || !s.OpensAt.Equal(moved.OpensAt) || !s.DueAt.Equal(a.CreatedAt) ||
			s.TemplateID != tpl.ID || s.TemplateName != tpl.Name {
			t.Fatalf("told %+v", s)
		}
	}
	s := n.Status(tpl, a.ID)
	if s.State != reminder.AnnouncementFinished || s.FinishedAt == nil || !s.WorthlessAfter.Equal(moved.OpensAt) ||
		s.Channels[delivery.App] != (delivery.Counts{Reserved: 40, Sent: 40}) || s.Channels[delivery.Webhook] != (delivery.Counts{Reserved: 39, Sent: 39}) {
		t.Errorf("status %+v", s)
	}
	if p := n.Number(`select count(*) from batches where kind = 'correction' and priority = 5`); p != 2 {
		t.Errorf("%d batches", p)
	}
	n.Balanced(moved)
}

// TestCorrectionAfterSecondMove: users who were corrected once are corrected
// again, even if the opening returns to its first time.
func TestCorrectionAfterSecondMove(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 10), pgtest.Reminders(delivery.App, 60)...)
	n.ReserveAll(tpl, pgtest.Users(11, 20), pgtest.Reminders(delivery.App, 55)...)
	n.Remind(tpl, 12)
	n.MoveBy(tpl, 3*time.Hour)
	first := n.Send(tpl, delivery.KindCorrection)
	n.Remind(tpl, 11) // 11–20 are reminded of the second opening only
	n.MoveBy(tpl, time.Hour)
	second := n.Send(tpl, delivery.KindCorrection)
	n.MoveBy(tpl, -time.Hour)
	third := n.Send(tpl, delivery.KindCorrection) // back at the second opening
	if first.ID == second.ID || third.ID == first.ID || !third.OpensAt.Equal(first.OpensAt) {
		t.Fatalf("%+v %+v %+v", first, second, third)
	}
	for _, c := range []struct {
		a    reminder.Announcement
		want int64
	}{{first, 10}, {second, 20}, {third, 20}} {
		if s := n.Status(tpl, c.a.ID); s.Channels[delivery.App] != (delivery.Counts{Reserved: c.want, Sent: c.want}) || s.StopReason != "" {
			t.Errorf("correction %d: %+v", c.a.ID, s)
		}
	}
	got := map[user.ID]int{}
	for key, times := range n.App.Got {
		if strings.HasPrefix(key, "correction-") {
			id, _ := user.ParseID(key[strings.LastIndex(key, "-")+1:])
			got[id] += times
		}
	}
	for id := user.ID(1); id <= 20; id++ {
		if want := 2 + map[bool]int{true: 1}[id <= 10]; got[id] != want {
			t.Errorf("user %d was corrected %d times, want %d", id, got[id], want)
		}
	}
}

func TestAnnouncementsAreRefusedWhereNothingChanged(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 3), pgtest.Reminders(delivery.App, 60, 5)...)
	draft, err := n.Service.Create(t.Context(), staff.System(), pgtest.Spec(time.Hour), "")
	n.Must(err)
	refused := func(what string, id int64, kind delivery.Kind) {
		t.Helper()
		_, previewed := n.Staff.Preview(t.Context(), staff.System(), id, reminder.Order{Kind: kind})
		_, sent := n.Staff.Send(t.Context(), staff.System(), id, reminder.Order{Kind: kind})
		for _, err := range []error{previewed, sent} {
			if !errors.Is(err, template.ErrTransition) || fault.CodeOf(err) != "invalid_transition" {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	refused("never moved", tpl.ID, delivery.KindCorrection)
	refused("not cancelled", tpl.ID, delivery.KindCancelled)
	refused("a draft", draft.ID, delivery.KindCorrection)
	n.MoveBy(tpl, time.Hour)
	refused("moved before anybody was reminded", tpl.ID, delivery.KindCorrection)
	n.Remind(tpl, 12)
	n.MoveBy(tpl, time.Hour)
	if _, err := n.Staff.Preview(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCorrection}); err != nil {
		t.Errorf("moved after reminding: %v", err)
	}
	if _, err := n.Staff.Send(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindReminder}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("another kind: %v", err)
	}
	if _, err := n.Staff.Send(t.Context(), staff.System(), 1<<40, reminder.Order{Kind: delivery.KindCorrection}); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("no template: %v", err)
	}
	for _, by := range []staff.Actor{{Label: "staff:1", Role: staff.Viewer}, {Label: "staff:2", Role: staff.Admin, Shops: []int64{11}}} {
		if _, err := n.Staff.Send(t.Context(), by, tpl.ID, reminder.Order{Kind: delivery.KindCorrection}); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("%+v: %v", by, err)
		}
		if _, err := n.Staff.Preview(t.Context(), by, tpl.ID, reminder.Order{Kind: delivery.KindCorrection}); !errors.Is(err, staff.ErrForbidden) {
			t.Errorf("%+v: %v", by, err)
		}
	}
	if _, err := n.Staff.List(t.Context(), staff.Actor{Role: staff.Viewer, Shops: []int64{11}}, tpl.ID); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("listed for another shop: %v", err)
	}
	n.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 second' where id = $1`, tpl.ID)
	refused("opened", tpl.ID, delivery.KindCorrection)
	_, err = n.Service.Do(t.Context(), staff.System(), draft.ID, 0, template.Cancelling, "")
	n.Must(err)
	refused("a draft that was cancelled", draft.ID, delivery.KindCancelled)
	if rows := n.Number(`select count(*) from announcements`); rows != 0 {
		t.Errorf("%d announcements were stored", rows)
	}
}

// TestSendingTwiceSendsOnce: concurrent requests, in any interleaving, create one
// announcement, one event and one audit entry.
func TestSendingTwiceSendsOnce(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 5), pgtest.Reminders(delivery.App, 60)...)
	n.Remind(tpl, 12)
	n.MoveBy(tpl, time.Hour)
	by := staff.Actor{Label: "staff:7", Name: "Mei", Role: staff.Marketer, Shops: []int64{10}}
	ids := make([]int64, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			a, err := n.Staff.Send(t.Context(), by, tpl.ID, reminder.Order{Kind: delivery.KindCorrection})
			if err != nil {
				t.Error(err)
			}
			ids[i] = a.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == 0 || id != ids[0] {
			t.Fatalf("several announcements: %v", ids)
		}
	}
	all.Go(func() { n.Must(n.Worker.Cut(t.Context(), ids[0])) })
	all.Go(func() { n.Must(n.Worker.Cut(t.Context(), ids[0])) })
	all.Wait()
	n.Drain()
	_, err := n.Store.FinishAnnouncements(t.Context())
	n.Must(err)
	again := n.Send(tpl, delivery.KindCorrection)
	if again.ID != ids[0] || again.State != reminder.AnnouncementFinished || again.CreatedBy != "staff:7 Mei" {
		t.Errorf("later: %+v", again)
	}
	if got := pgtest.Reached(t, n.App, delivery.KindCorrection); !slices.Equal(got, pgtest.Users(1, 5)) {
		t.Errorf("reached %v", got)
	}
	if e := n.Number(`select count(*) from outbox where topic = $1 and payload ->> 'announcement_id' = $2`, event.AnnouncementCreated, fmt.Sprint(ids[0])); e != 1 {
		t.Errorf("%d events", e)
	}
	if e := n.Number(`select count(*) from audit where action = 'template.announce' and actor = 'staff:7 Mei' and object_id = $1`, fmt.Sprint(tpl.ID)); e != 1 {
		t.Errorf("%d audit entries", e)
	}
}

// TestNoticeOfACancelledDrop: the recipients on a channel are all users who
// reserved a reminder on the channel, whether they were reminded or not.
func TestNoticeOfACancelledDrop(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 20), pgtest.Reminders(delivery.App, 60, 5)...)
	n.ReserveAll(tpl, pgtest.Users(21, 30), append(pgtest.Reminders(delivery.App, 10), pgtest.Reminders(delivery.Webhook, 60, 5)...)...)
	n.ReserveAll(tpl, pgtest.Users(31, 35), pgtest.Reminders(delivery.Webhook, 30)...)
	n.Cancel(tpl, 35, pgtest.Reminders(delivery.Webhook, 30)...)
	n.Exec(`insert into users (id, opt_outs) values (34, 16)`)
	n.Remind(tpl, 12)
	_, err := n.Service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Cancelling, "supplier failed")
	n.Must(err)
	preview, err := n.Staff.Preview(t.Context(), staff.System(), tpl.ID, reminder.Order{Kind: delivery.KindCancelled})
	n.Must(err)
	if preview.Audience != (reminder.Audience{delivery.App: 30, delivery.Webhook: 14}) {
		t.Errorf("preview %v", preview)
	}
	a := n.Send(tpl, delivery.KindCancelled)
	if got := pgtest.Reached(t, n.App, delivery.KindCancelled); !slices.Equal(got, pgtest.Users(1, 30)) {
		t.Errorf("app %v", got)
	}
	if got := pgtest.Reached(t, n.Hook, delivery.KindCancelled); !slices.Equal(got, pgtest.Users(21, 33)) {
		t.Errorf("webhook %v", got)
	}
	s := n.Status(tpl, a.ID)
	if s.Channels[delivery.Webhook] != (delivery.Counts{Reserved: 14, Sent: 13, Skipped: 1}) || s.State != reminder.AnnouncementFinished {
		t.Errorf("%+v", s)
	}
	if life := s.WorthlessAfter.Sub(s.CreatedAt); life < 24*time.Hour-time.Minute || life > 24*time.Hour+time.Minute {
		t.Errorf("worth sending for %v", life)
	}
	if again := n.Send(tpl, delivery.KindCancelled); again.ID != a.ID {
		t.Errorf("a second notice %+v", again)
	}
}

// TestNoticesRetryAndDie: announcements are retried and become dead letters, as
// reminders do.
func TestNoticesRetryAndDie(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 10), pgtest.Reminders(delivery.Webhook, 5)...)
	_, err := n.Service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Cancelling, "")
	n.Must(err)
	down := true
	n.Hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID > 5 && down {
			return delivery.Result{Status: delivery.Permanent, Detail: "unknown user"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	a := n.Send(tpl, delivery.KindCancelled)
	if s := n.Status(tpl, a.ID); s.Channels[delivery.Webhook] != (delivery.Counts{Reserved: 10, Sent: 5, Dead: 5}) || s.State != reminder.AnnouncementFinished {
		t.Fatalf("%+v", s)
	}
	down = false
	letters := &delivery.DeadLetters{Store: n.DeadLetters}
	_, err = letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{TemplateID: tpl.ID}})
	n.Must(err)
	n.Must(letters.Step(t.Context()))
	if s := n.Status(tpl, a.ID); s.State != reminder.AnnouncementSending || s.Channels[delivery.Webhook] != (delivery.Counts{Reserved: 10, Sent: 5, InFlight: 5}) {
		t.Errorf("being replayed: %+v", s)
	}
	n.Drain()
	_, err = n.Store.FinishAnnouncements(t.Context())
	n.Must(err)
	if s := n.Status(tpl, a.ID); s.State != reminder.AnnouncementFinished || s.Channels[delivery.Webhook] != (delivery.Counts{Reserved: 10, Sent: 10}) {
		t.Errorf("replayed: %+v", s)
	}
}
