package drops_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// again fires another round of slot 12 and delivers it.
func again(n *pgtest.Notifier, sl reminder.Slot) {
	n.Helper()
	n.Must(n.Fixture.Timers(n.Queue).Fire(n.Context(), sl.ID))
	n.Drain()
	_, err := n.Slots.FinishSlots(n.Context())
	n.Must(err)
}

// TestAnOpeningThatComesBackReachesEverybody moves the opening away while its
// reminders are being sent, and back again. Users whom the reminders had not
// reached, and users who reserved meanwhile, are each reminded once.
func TestAnOpeningThatComesBackReachesEverybody(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	const refused, cancels, joins = 7, 250, 500
	m.Cause = func(id user.ID) string {
		if id == refused {
			return "status 503"
		}
		return ""
	}
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 300), pgtest.Reminders(delivery.Webhook, 60)...)
	first := m.CutSlot(tpl, 12, 100)
	m.Must(m.Daemon.RunNext(t.Context(), delivery.Webhook))
	m.MoveBy(tpl, time.Hour)
	if v := m.Cancel(tpl, cancels, pgtest.Reminders(delivery.Webhook, 60)...); !v.Applied {
		t.Fatalf("%+v", v)
	}
	m.Reserve(tpl, joins, pgtest.Reminders(delivery.Webhook, 60)...)
	m.MoveBy(tpl, -time.Hour)
	second := m.DueNow(tpl, 12)
	if second.ID == first.ID || second.Round != 1 {
		t.Fatalf("%+v", second)
	}
	if cut, err := m.Slots.BeginFiring(t.Context(), second.ID, time.Minute); err != nil || cut.Wait <= 0 {
		t.Fatalf("the first round has not ended: %+v %v", cut, err)
	}
	m.Drain() // the batches of the first round that the move stopped
	_, err := m.Slots.FinishSlots(t.Context())
	m.Must(err)
	again(m.Notifier, second)
	want := append(slices.DeleteFunc(pgtest.Users(1, 300), func(id user.ID) bool { return id == cancels }), joins)
	if got := pgtest.Reached(t, m.Hook, delivery.KindReminder); !slices.Equal(got, want) {
		t.Errorf("%d were told, not %d", len(got), len(want))
	}
	sum := m.Balanced(tpl)[delivery.Webhook]
	counted := sum
	counted.Sent, counted.Skipped, counted.Dead, counted.Reserved = 99+200, 200, 1, 500
	if diff := cmp.Diff(counted, sum); diff != "" {
		t.Errorf("sums (-want +got):\n%s", diff)
	}
	if s := m.Slot(tpl, 12); s.State != reminder.Finished {
		t.Errorf("%+v", s)
	}
	line := tells(m, tpl, 200, "reserved", "fired webhook60", "opening_moved", "opening_moved", "outcome webhook60 skipped opening_moved",
		"fired webhook60", "outcome webhook60 sent")
	if len(line.Items) != 1 || line.Items[0].State != string(delivery.Sent) {
		t.Errorf("%+v", line.Items)
	}
	// A dead recipient of the first round, in a batch that was sent to its end,
	// can be replayed in that round once.
	m.Cause = func(user.ID) string { return "" }
	if job := m.Work(delivery.Replay, delivery.DeadLetterFilter{TemplateID: tpl.ID}, 0); job.Done != 1 {
		t.Errorf("%+v", job)
	}
	m.Drain()
	if got := m.Times(tpl, refused); got != 2 { // refused once
		t.Errorf("told %d times", got)
	}
	m.Finish(tpl)
}

// TestARoundTakenOver: a worker that takes over the cutting of a round leaves out
// the same users.
func TestARoundTakenOver(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 300), pgtest.Reminders(delivery.App, 60)...)
	n.CutSlot(tpl, 12, 100)
	n.Must(n.Daemon.RunNext(t.Context(), delivery.App))
	n.MoveBy(tpl, time.Hour)
	n.MoveBy(tpl, -time.Hour)
	n.Drain()
	_, err := n.Slots.FinishSlots(t.Context())
	n.Must(err)
	second := n.DueNow(tpl, 12)
	cut, err := n.Slots.BeginFiring(t.Context(), second.ID, pgtest.ShortLease)
	n.Must(err)
	due, err := n.Slots.ReadDue(t.Context(), cut, delivery.Range{From: 1, To: 300})
	n.Must(err)
	if len(due[delivery.App]) != 200 {
		t.Fatalf("%d are left", len(due[delivery.App]))
	}
	_, err = n.Slots.StoreBatches(t.Context(), cut, []reminder.NewBatch{{Channel: delivery.App, Users: due[delivery.App][:50]}})
	n.Must(err)
	n.Exec(`update slots set cut_lease_until = clock_timestamp() - interval '1 second' where id = $1`, second.ID) // and then it died
	again(n, second)
	if got := pgtest.Reached(t, n.App, delivery.KindReminder); !slices.Equal(got, pgtest.Users(1, 300)) {
		t.Errorf("%d were told", len(got))
	}
	if sum := n.Balanced(tpl)[delivery.App]; sum.Sent != 300 || sum.Skipped != 200 {
		t.Errorf("%+v", sum)
	}
}

// TestARoundWaitsForTheOneBefore: a waiting worker fires the round as soon as the
// previous round has ended.
func TestARoundWaitsForTheOneBefore(t *testing.T) {
	n := pgtest.NewNotifier(t)
	tpl := n.Published(2 * time.Hour)
	n.ReserveAll(tpl, pgtest.Users(1, 20), pgtest.Reminders(delivery.App, 60)...)
	first := n.CutSlot(tpl, 12, 100)
	n.MoveBy(tpl, time.Hour)
	n.MoveBy(tpl, -time.Hour)
	second := n.DueNow(tpl, 12)
	asked := make(chan struct{}, 100)
	timers := n.Fixture.Timers(n.Queue)
	timers.Store = askedSlots{n.Slots, asked}
	fired := make(chan error, 1)
	go func() { fired <- timers.Fire(context.WithoutCancel(t.Context()), second.ID) }()
	<-asked
	<-asked // it goes on asking
	if s := n.SlotState(first.ID); s != string(reminder.Sending) {
		t.Fatalf("the first round is %s", s)
	}
	n.Drain()
	_, err := n.Slots.FinishSlots(t.Context())
	n.Must(err)
	n.Must(<-fired)
	n.Drain()
	if got := pgtest.Reached(t, n.App, delivery.KindReminder); !slices.Equal(got, pgtest.Users(1, 20)) {
		t.Errorf("%d were told", len(got))
	}
	if _, err := n.Slots.BeginFiring(t.Context(), second.ID, time.Minute); !errors.Is(err, reminder.ErrNotFirable) {
		t.Errorf("fired again: %v", err)
	}
}

type askedSlots struct {
	reminder.FiringStore
	asked chan<- struct{}
}

func (s askedSlots) BeginFiring(ctx context.Context, id int64, lasting time.Duration) (reminder.Cut, error) {
	cut, err := s.FiringStore.BeginFiring(ctx, id, lasting)
	s.asked <- struct{}{}
	return cut, err
}
