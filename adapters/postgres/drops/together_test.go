package drops_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// evening is a set of drops with the same due time. Drop n has n+1 users who
// reserved in the app, with ids far apart. Every second user reserved by webhook
// as well.
type evening struct {
	*pgtest.Notifier
	drops []template.Template
	slots []reminder.Slot
}

const hourBefore = 12 // the slot that the tests fire

func newEvening(t *testing.T, drops int) *evening {
	t.Helper()
	e := &evening{Notifier: pgtest.NewNotifier(t)}
	for n := range drops {
		tpl := e.Published(2 * time.Hour)
		for _, id := range e.users(n) {
			rs := pgtest.Reminders(delivery.App, 60)
			if id%2 == 0 {
				rs = append(rs, pgtest.Reminders(delivery.Webhook, 60)...)
			}
			e.Reserve(tpl, id, rs...)
		}
		e.drops = append(e.drops, tpl)
	}
	e.RelayCounts()
	for _, tpl := range e.drops {
		e.slots = append(e.slots, e.DueNow(tpl, hourBefore))
	}
	return e
}

func (e *evening) users(n int) (ids []user.ID) {
	for i := range n + 1 {
		ids = append(ids, user.ID(1+n+i*100_003))
	}
	return ids
}

// settle delivers all ready batches. It returns an error unless each drop has
// sent one reminder to each of its users and its balance adds up.
func (e *evening) settle() {
	e.Helper()
	e.Drain()
	_, err := e.Slots.FinishSlots(e.Context())
	e.Must(err)
	for n, tpl := range e.drops {
		ids := e.users(n)
		hooked := slices.DeleteFunc(slices.Clone(ids), func(id user.ID) bool { return id%2 != 0 })
		sums := e.Balanced(tpl)
		if app, hook := sums[delivery.App], sums[delivery.Webhook]; app.Sent != int64(len(ids)) || hook.Sent != int64(len(hooked)) || app.Reserved != app.Sent {
			e.Errorf("drop %d: app %+v, webhook %+v", n, app, hook)
		}
		if s := e.Slot(tpl, hourBefore); s.State != reminder.Finished {
			e.Errorf("drop %d: %s", n, s.State)
		}
		if again := e.Number(`select count(*) from batches where owner_id = $1 and channel = 0`, e.slots[n].ID); again != 1 {
			e.Errorf("drop %d has %d batches in the app", n, again)
		}
	}
	e.reachedOnce(e.App, func(n int) []user.ID { return e.users(n) })
}

// reachedOnce errors unless each reserver got one message.
func (e *evening) reachedOnce(s *pgtest.Sink, of func(int) []user.ID) {
	e.Helper()
	want := 0
	for n := range e.drops {
		want += len(of(n))
	}
	if got := len(pgtest.Reached(e.T, s, delivery.KindReminder)); got != want {
		e.Errorf("%d messages in the app, want %d", got, want)
	}
}

// TestDropsOfOneInstantAreCutTogether: one timer cuts all drops, and each drop
// has its own batches, balance, results and events.
func TestDropsOfOneInstantAreCutTogether(t *testing.T) {
	e := newEvening(t, 12)
	timers := e.Timers(e.Queue)
	e.Must(timers.Fire(t.Context(), e.slots[0].ID))
	if left := e.Number(`select count(*) from slots where slot = $1 and state <> 'sending'`, hourBefore); left != 0 {
		t.Errorf("%d slots were left to their timers", left)
	}
	if fired := e.Number(`select count(*) from outbox where topic = 'slot.fired.v1'`); fired != 12 {
		t.Errorf("%d events", fired)
	}
	if n := e.Number(`select count(*) from slot_results r join slots s on s.id = r.slot_id where s.slot = $1 and r.expected > 0`, hourBefore); n != 12*delivery.Channels {
		t.Errorf("%d results", n)
	}
	for _, s := range e.slots { // their own timers find nothing to do
		e.Must(timers.Fire(t.Context(), s.ID))
		e.Must(e.Timers(e.Queue).Fire(t.Context(), s.ID))
	}
	e.settle()
}

// TestSlotsThatAreNotCutTogether: slots are not cut together if they are not due,
// too large, locked, or must leave out users.
func TestSlotsThatAreNotCutTogether(t *testing.T) {
	e := newEvening(t, 7)
	e.Exec(`update slots set due_at = clock_timestamp() + interval '1 minute' where id = $1`, e.slots[1].ID)
	e.Exec(`update bookings set booked = $2 where template_id = $1`, e.drops[2].ID, reminder.SmallSlot)
	e.Exec(`update templates set remind_once = true where id = $1`, e.drops[3].ID)
	e.Exec(`update slots set round = 1 where id = $1`, e.slots[4].ID)
	_, release := e.Hold(`select from slots where id = $1 for share`, e.slots[5].ID) // as a group of reservations does
	e.Must(e.Timers(e.Queue).Fire(t.Context(), e.slots[0].ID))
	release()
	for n, want := range []reminder.SlotState{reminder.Sending, reminder.Waiting, reminder.Waiting, reminder.Waiting, reminder.Waiting, reminder.Waiting, reminder.Sending} {
		if got := e.Slot(e.drops[n], hourBefore).State; got != want {
			t.Errorf("slot %d is %s, want %s", n, got, want)
		}
	}
}

// TestTwoWorkersShareAnInstant: two workers claim slots at the same time, and
// each user is in one batch.
func TestTwoWorkersShareAnInstant(t *testing.T) {
	e := newEvening(t, 30)
	var all sync.WaitGroup
	for range 2 {
		timers := e.Timers(e.Queue)
		timers.Firings = 2
		for _, s := range e.slots {
			all.Go(func() {
				if err := timers.Fire(t.Context(), s.ID); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	e.settle()
}

// dyingSlots simulates a worker that dies after storing the batches of some
// slots, before recording that.
type dyingSlots struct{ dropsdb.Slots }

var errDied = errors.New("killed")

func (s dyingSlots) StoreTogether(ctx context.Context, cuts []reminder.Cut, bs []reminder.OwnedBatch) ([]int64, error) {
	if _, err := s.Slots.StoreTogether(ctx, cuts, bs[:len(bs)/2]); err != nil {
		return nil, err
	}
	return nil, errDied
}

// TestADeadWorkersGroupIsTakenOver: one timer takes over the group again, and no
// batch is cut twice.
func TestADeadWorkersGroupIsTakenOver(t *testing.T) {
	e := newEvening(t, 12)
	dead := e.Timers(e.Queue)
	dead.Store = dyingSlots{e.Slots}
	if err := dead.Fire(t.Context(), e.slots[3].ID); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	alive := e.Timers(e.Queue)
	e.Must(alive.Fire(t.Context(), e.slots[5].ID)) // its lease still holds
	if sending := e.Number(`select count(*) from slots where state = 'sending'`); sending != 0 {
		t.Errorf("%d slots were taken from a worker that may live", sending)
	}
	e.Exec(`update slots set cut_lease_until = clock_timestamp() - interval '1 second' where state = 'firing'`)
	due, err := e.Slots.DueSlots(t.Context(), 0, 100)
	e.Must(err)
	if len(due) != 12 {
		t.Fatalf("the sweep finds %d slots", len(due))
	}
	e.Must(alive.Fire(t.Context(), due[0]))
	e.settle()
}

// TestAGroupsSlotsAreFencedOneByOne: while the slots of a group are read, one
// slot is taken over by another worker, and the opening of another slot is moved.
func TestAGroupsSlotsAreFencedOneByOne(t *testing.T) {
	e := newEvening(t, 3)
	first, err := e.Slots.BeginFiring(t.Context(), e.slots[0].ID, time.Minute)
	e.Must(err)
	more, err := e.Slots.BeginTogether(t.Context(), first, time.Minute)
	e.Must(err)
	cuts := append([]reminder.Cut{first}, more...)
	due, err := e.Slots.ReadTogether(t.Context(), cuts)
	e.Must(err)
	var batches []reminder.OwnedBatch
	var found []reminder.Found
	for i, c := range cuts {
		f := reminder.Found{Cut: c}
		for ch, ids := range due[i] {
			f.Reserved[ch] = int64(len(ids))
			if len(ids) > 0 {
				batches = append(batches, reminder.OwnedBatch{Of: i, NewBatch: reminder.NewBatch{Channel: delivery.Channel(ch), Users: ids}})
			}
		}
		found = append(found, f)
	}
	e.Exec(`update slots set cut_token = $2 where id = $1`, cuts[1].ID, uuid.NewString())
	e.Exec(`update slots set stop_reason = 'opening_moved' where id = $1`, cuts[2].ID)
	ids, err := e.Slots.StoreTogether(t.Context(), cuts, batches)
	e.Must(err)
	for i, id := range ids {
		if mine := batches[i].Of != 1; mine != (id != 0) {
			t.Errorf("batch of slot %d has the id %d", batches[i].Of, id)
		}
	}
	if n := e.Number(`select count(*) from batches where owner_id = $1 and stop_reason = 'opening_moved'`, cuts[2].ID); n == 0 {
		t.Error("the stop is not inherited")
	}
	e.Must(e.Slots.KeepTogether(t.Context(), cuts, time.Minute))
	e.Must(e.Slots.EndTogether(t.Context(), found))
	for i, want := range []reminder.SlotState{reminder.Sending, reminder.Firing, reminder.Sending} {
		if got := e.SlotState(cuts[i].ID); got != string(want) {
			t.Errorf("slot %d is %s, want %s", i, got, want)
		}
	}
	if err := e.Slots.KeepTogether(t.Context(), cuts, time.Minute); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("nothing is left to keep: %v", err)
	}
}

// TestManySlotsFinishInOneSweep: there are more slots than one transaction
// finishes.
func TestManySlotsFinishInOneSweep(t *testing.T) {
	e := newEvening(t, 1)
	tpl := e.drops[0].ID
	ago := pgtest.SQL("now() - i * interval '1 day'")
	e.Fill("slots", "generate_series(1, 600) i", pgtest.Row{"template_id": tpl, "opens_at": ago, "due_at": ago, "state": "sending"})
	n, err := e.Slots.FinishSlots(t.Context())
	if err != nil || n != 600 {
		t.Errorf("%d finished, %v", n, err)
	}
	if told := e.Number(`select count(*) from outbox where topic = 'slot.finished.v1'`); told != 600 {
		t.Errorf("%d events", told)
	}
}
