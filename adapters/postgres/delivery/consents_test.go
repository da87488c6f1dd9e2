package delivery_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

const miniProgram = "wx0123456789abcdef"

// account registers the user with an openid.
func (w *fixture) account(id user.ID, openID string) {
	w.Helper()
	_, err := w.Users.PutDevice(w.Context(), id, user.Device{Platform: user.WeChat, Token: openID, App: miniProgram}, "")
	w.Must(err)
}

// consents returns the slots, in minutes before the opening, to which the user has consented.
func (w *fixture) consents(t template.Template, id user.ID) reminder.Consents {
	w.Helper()
	r, err := w.Reservations.Reservation(w.Context(), t.ID, id)
	w.Must(err)
	return r.Consents
}

func (w *fixture) consent(t template.Template, id user.ID, slot template.Slot) {
	w.Helper()
	_, err := w.Reservations.SetConsent(w.Context(), t.ID, id, slot, true)
	w.Must(err)
}

// TestAConsentIsOneMessages: a consent is used up by one message, with each of the two stores.
func TestAConsentIsOneMessages(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	for id := user.ID(1); id <= 4; id++ {
		w.account(id, "openid-of-user-number-000"+id.String())
		w.Reserve(tpl, id, append(pgtest.Reminders(delivery.WebPush, 5, 10), pgtest.Reminders(delivery.App, 5)...)...)
	}
	w.consent(tpl, 1, 1)
	w.consent(tpl, 1, 1) // repeated
	w.consent(tpl, 1, 2)
	w.consent(tpl, 2, 1)
	w.consent(tpl, 4, 2)
	sink := pgtest.NewSink(delivery.WebPush, 10)
	sink.Answer = func(m delivery.Message, _ int) delivery.Result {
		switch {
		case !m.Consented:
			return delivery.Result{Status: delivery.Permanent, Skip: true, Held: true, Unsent: true, Reason: delivery.ReasonNoConsent}
		case m.To.ID == 2: // the service says that there is none
			return delivery.Result{Status: delivery.Permanent, Skip: true, Unsent: true, ConsentUsed: true, Reason: delivery.ReasonNoConsent}
		}
		return delivery.Result{Status: delivery.Delivered, ConsentUsed: true}
	}
	sl := w.DueNow(tpl, 1)
	q := &pgtest.MemoryQueue{}
	w.Must(w.Timers(q).Fire(t.Context(), sl.ID))
	w.Must(w.Deliverer(q, sink).Drain(t.Context(), delivery.WebPush))
	if got := w.Balanced(tpl)[delivery.WebPush]; got != (delivery.Counts{Reserved: 4, Sent: 1, Skipped: 3}) {
		t.Errorf("balance %+v", got)
	}
	if reasons := w.Number(`select count(*) from exceptions where reason = 'no_consent' and outcome = 'skipped'`); reasons != 3 {
		t.Errorf("%d are skipped without a consent", reasons)
	}
	for id, want := range map[user.ID]reminder.Consents{1: 1 << 1, 2: 0, 3: 0, 4: 1 << 1} {
		if got := w.consents(tpl, id); got != want {
			t.Errorf("user %d has the consents %b, want %b", id, got, want)
		}
	}
	// The slot has fired: a late report of the acceptance changes nothing.
	if _, err := w.Reservations.SetConsent(t.Context(), tpl.ID, 3, 1, true); !errors.Is(err, reminder.ErrAlreadyDue) {
		t.Errorf("a consent to a reminder that is due: %v", err)
	}
}

// TestConsentsOfOneUserThatAreUsedTogether: one statement records messages of several slots
// and removes one consent for each message.
func TestConsentsOfOneUserThatAreUsedTogether(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(90 * time.Minute)
	w.account(1, "openid-of-user-number-0001")
	w.Reserve(tpl, 1, pgtest.Reminders(delivery.WebPush, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60)...)
	q := &pgtest.MemoryQueue{}
	var leases []delivery.Lease
	for slot := template.Slot(1); slot <= 12; slot++ {
		w.consent(tpl, 1, slot)
	}
	for slot := template.Slot(1); slot <= 12; slot++ {
		w.Must(w.Timers(q).Fire(t.Context(), w.DueNow(tpl, slot).ID))
		l, err := w.Batches.LeaseNext(t.Context(), delivery.WebPush, time.Minute)
		w.Must(err)
		leases = append(leases, l)
	}
	var together sync.WaitGroup
	for _, l := range leases[1:] {
		together.Go(func() {
			if _, err := l.Checkpoint(t.Context(), delivery.Progress{Sent: []user.ID{1}, ConsentsUsed: []user.ID{1}, Done: true}); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	if got := w.consents(tpl, 1); got != 1 {
		t.Errorf("the consents %b are left, want that of the message that is not recorded", got)
	}
}

// TestAConsentGoesWithItsReminder: a consent is removed when its reminder is cancelled, or
// when another user takes over the account. No other consent is removed.
func TestAConsentGoesWithItsReminder(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(90 * time.Minute)
	for id := user.ID(1); id <= 3; id++ {
		w.account(id, "openid-of-user-number-000"+id.String())
		w.Reserve(tpl, id, pgtest.Reminders(delivery.WebPush, 5, 10, 60)...)
		for _, slot := range []template.Slot{1, 2, 12} {
			w.consent(tpl, id, slot)
		}
	}
	w.Cancel(tpl, 1, pgtest.Reminders(delivery.WebPush, 10)...)
	w.Reserve(tpl, 1, pgtest.Reminders(delivery.WebPush, 10)...) // without a consent
	w.account(4, "openid-of-user-number-0002")                   // user 4 signs in in the same account
	w.Cancel(tpl, 3)
	w.Reserve(tpl, 3, pgtest.Reminders(delivery.WebPush, 5)...)
	for id, want := range map[user.ID]reminder.Consents{1: 1<<0 | 1<<11, 2: 0, 3: 0} {
		if got := w.consents(tpl, id); got != want {
			t.Errorf("user %d has the consents %b, want %b", id, got, want)
		}
	}
	if got, err := w.Reservations.SetConsent(t.Context(), tpl.ID, 1, 12, false); err != nil || got.Consents != 1 {
		t.Errorf("withdrawn: %b, %v", got.Consents, err)
	}
	if got, err := w.Reservations.SetConsent(t.Context(), tpl.ID, 1, 1, false); err != nil || got.Consents != 0 {
		t.Errorf("withdrawn: %b, %v", got.Consents, err)
	}
	if n := w.Number(`select count(*) from reservations where consents = 0`); n != 0 {
		t.Errorf("%d rows without consents take room for them", n)
	}
	for slot, want := range map[template.Slot]error{3: reminder.ErrNotReserved} {
		if _, err := w.Reservations.SetConsent(t.Context(), tpl.ID, 1, slot, true); !errors.Is(err, want) {
			t.Errorf("a consent to slot %d: %v, want %v", slot, err, want)
		}
	}
	if _, err := w.Reservations.SetConsent(t.Context(), tpl.ID, 9, 1, true); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a consent without a reservation: %v", err)
	}
}

// TestConsentsOfARunningBatch: after the opening was moved, reminders of the new opening wait
// while a batch of the old opening may be using the same consents.
func TestConsentsOfARunningBatch(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.account(1, "openid-of-user-number-0001")
	w.Reserve(tpl, 1, pgtest.Reminders(delivery.WebPush, 5)...)
	w.consent(tpl, 1, 1)
	q := &pgtest.MemoryQueue{}
	w.Must(w.Timers(q).Fire(t.Context(), w.DueNow(tpl, 1).ID))
	first, err := w.Batches.LeaseNext(t.Context(), delivery.WebPush, time.Minute)
	w.Must(err)
	moved := w.Move(tpl, tpl.OpensAt.Add(time.Hour))
	w.Must(w.Timers(q).Fire(t.Context(), w.DueNow(moved, 1).ID))
	second, err := w.Batches.LeaseNext(t.Context(), delivery.WebPush, time.Minute)
	w.Must(err)
	ids := []user.ID{1}
	if _, err := w.Batches.Consents(t.Context(), second.Batch(), ids); !errors.Is(err, delivery.ErrConsentsTaken) {
		t.Errorf("while the first batch runs: %v", err)
	}
	_, err = first.Checkpoint(t.Context(), delivery.Progress{Sent: ids, ConsentsUsed: ids, Done: true})
	w.Must(err)
	if held, err := w.Batches.Consents(t.Context(), second.Batch(), ids); err != nil || held[1] {
		t.Errorf("after it: %v, %v", held, err)
	}
}
