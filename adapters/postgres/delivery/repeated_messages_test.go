package delivery_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// corrections returns how many corrections each user was sent in the app.
func corrections(n *pgtest.Notifier) map[user.ID]int {
	n.App.Mu.Lock()
	defer n.App.Mu.Unlock()
	got := map[user.ID]int{}
	for key, times := range n.App.Got {
		if strings.HasPrefix(key, string(delivery.KindCorrection)+"-") {
			id, _ := user.ParseID(key[strings.LastIndex(key, "-")+1:])
			got[id] += times
		}
	}
	return got
}

// sendAs creates, cuts and delivers a correction, and returns its preview.
func sendAs(n *pgtest.Notifier, t template.Template, o reminder.Order) reminder.Reach {
	n.Helper()
	reach, err := n.Staff.Preview(n.Context(), staff.System(), t.ID, o)
	n.Must(err)
	a, err := n.Staff.Send(n.Context(), staff.System(), t.ID, o)
	n.Must(err)
	n.Must(n.Worker.Cut(n.Context(), a.ID))
	n.Drain()
	_, err = n.Store.FinishAnnouncements(n.Context())
	n.Must(err)
	return reach
}

// TestNobodyGetsMoreThanThreeCorrections moves an opening eleven times, sends a
// correction after each move, and counts the corrections of each user. Users 1–10
// are reminded before the first move, users 11–15 after the third. Before each
// correction the preview says how many users it reaches, how many of them had a
// correction before, and how many users are left out.
func TestNobodyGetsMoreThanThreeCorrections(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 10), pgtest.Reminders(delivery.App, 60)...)
	n.ReserveAll(tpl, pgtest.Users(11, 15), pgtest.Reminders(delivery.App, 55)...)
	n.Remind(tpl, 12)
	want := []reminder.Reach{
		{Users: 10}, {Users: 10, Again: 10}, {Users: 10, Again: 10}, // then slot 11 fires
		{Users: 5, LeftOut: 10}, {Users: 5, Again: 5, LeftOut: 10}, {Users: 5, Again: 5, LeftOut: 10},
		{LeftOut: 15}, {LeftOut: 15}, {LeftOut: 15}, {LeftOut: 15}, {LeftOut: 15},
	}
	for i, w := range want {
		if i == 3 {
			n.Remind(tpl, 11)
		}
		n.MoveBy(tpl, time.Duration(1+i)*time.Minute)
		w.Audience[delivery.App] = w.Users
		if got := sendAs(n, tpl, reminder.Order{Kind: delivery.KindCorrection}); got != w {
			t.Errorf("move %d: preview %+v, want %+v", i+1, got, w)
		}
	}
	got := corrections(n)
	for id := user.ID(1); id <= 15; id++ {
		if got[id] != reminder.MaxCorrections {
			t.Errorf("user %d got %d corrections, want %d", id, got[id], reminder.MaxCorrections)
		}
	}
}

// TestNobodyAgain: staff may leave out users who have had a correction; all other
// users are told.
func TestNobodyAgain(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 10), pgtest.Reminders(delivery.App, 60)...)
	n.ReserveAll(tpl, pgtest.Users(11, 15), pgtest.Reminders(delivery.App, 55)...)
	n.Remind(tpl, 12)
	n.MoveBy(tpl, time.Hour)
	n.Send(tpl, delivery.KindCorrection)
	n.Remind(tpl, 11)
	n.MoveBy(tpl, time.Hour)
	if got := sendAs(n, tpl, reminder.Order{Kind: delivery.KindCorrection, NobodyAgain: true}); got.Users != 5 || got.Again != 0 || got.LeftOut != 10 {
		t.Errorf("%+v", got)
	}
	for id, times := range corrections(n) {
		if times != 1 {
			t.Errorf("user %d got %d corrections", id, times)
		}
	}
	if got := corrections(n); len(got) != 15 {
		t.Errorf("%d users were corrected", len(got))
	}
}

// TestLastMessageRight: a user whose last message names the present opening is
// not corrected again, whatever earlier messages said.
func TestLastMessageRight(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 10), pgtest.Reminders(delivery.App, 60)...)
	n.Remind(tpl, 12)
	n.MoveBy(tpl, time.Hour)
	n.Send(tpl, delivery.KindCorrection)
	n.MoveBy(tpl, time.Hour) // without a correction
	n.MoveBy(tpl, -time.Hour)
	if got := sendAs(n, tpl, reminder.Order{Kind: delivery.KindCorrection}); got.Messages() != 0 {
		t.Errorf("%+v", got)
	}
	for id, times := range corrections(n) {
		if times != 1 {
			t.Errorf("user %d got %d corrections", id, times)
		}
	}
}

// moveOnce moves the opening for users who were not reminded yet.
func moveOnce(n *pgtest.Notifier, t template.Template, by time.Duration) template.Template {
	n.Helper()
	now, err := n.Templates.Template(n.Context(), t.ID)
	n.Must(err)
	s := now.Spec
	s.OpensAt, s.ClosesAt = s.OpensAt.Add(by), s.ClosesAt.Add(by)
	moved, err := n.Service.Edit(n.Context(), staff.System(), t.ID, template.Edition{Version: now.Version, Spec: s, RemindOnce: true})
	n.Must(err)
	return moved
}

// TestRemindOnce moves an opening back and forth eleven times while its reminders
// are being sent, each time with the choice not to remind users again. Every user
// gets one reminder of the slot. A user who reserves meanwhile gets it too, and
// the user's own view shows it as sent.
func TestRemindOnce(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 300), pgtest.Reminders(delivery.App, 60)...)
	n.CutSlot(tpl, 12, 100)
	n.Must(n.Daemon.RunNext(t.Context(), delivery.App)) // a hundred are reminded when the opening moves
	for i := range 11 {
		moveOnce(n, tpl, []time.Duration{time.Hour, -time.Hour}[i%2])
	}
	n.ReserveAll(tpl, []user.ID{500}, pgtest.Reminders(delivery.App, 60)...)
	n.Drain()
	_, err := n.Slots.FinishSlots(t.Context())
	n.Must(err)
	n.Remind(tpl, 12)
	want := append(pgtest.Users(1, 300), 500)
	if got := pgtest.Reached(t, n.App, delivery.KindReminder); !slices.Equal(got, want) {
		t.Errorf("%d were reminded, want %d", len(got), len(want))
	}
	n.Balanced(tpl)
	// Once more, and all users have been reminded before: none is now.
	moved := moveOnce(n, tpl, time.Hour)
	if line := view(n, moved, 1); len(line.Items) != 1 || line.Items[0].State != string(delivery.Sent) {
		t.Errorf("%+v", line.Items)
	}
	n.Remind(moved, 12)
	if got := pgtest.Reached(t, n.App, delivery.KindReminder); !slices.Equal(got, want) {
		t.Errorf("%d were reminded after another move, want %d", len(got), len(want))
	}
	// A move without the choice reminds all users of the new time.
	again := n.MoveBy(tpl, time.Hour)
	if line := view(n, again, 1); line.Items[0].State != string(reminder.Waiting) {
		t.Errorf("%+v", line.Items)
	}
	n.Remind(again, 12)
	if got := len(n.App.Got); got != 2*len(want) {
		t.Errorf("%d reminders went out in all, want %d", got, 2*len(want))
	}
}

// view returns the reservation as its user sees it.
func view(n *pgtest.Notifier, t template.Template, id user.ID) reminder.View {
	n.Helper()
	s := &reminder.Service{Store: n.Reservations, Templates: n.Templates, Now: pgtest.Clock}
	v, err := s.Reservation(n.Context(), id, t.ID)
	n.Must(err)
	return v
}
