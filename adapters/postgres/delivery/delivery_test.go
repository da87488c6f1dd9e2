package delivery_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func TestFireAndDeliverEverybodyOnce(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 2500, append(pgtest.Reminders(delivery.App, 5), pgtest.Reminders(delivery.Webhook, 5, 10)...)...)
	sl := w.DueNow(tpl, 1)
	q := &pgtest.MemoryQueue{}
	timers := w.Timers(q)
	w.Must(timers.Fire(t.Context(), sl.ID))
	w.Must(timers.Fire(t.Context(), sl.ID)) // a second timer finds nothing to do
	app, hook := pgtest.NewSink(delivery.App, 1000), pgtest.NewSink(delivery.Webhook, 100)
	d := w.Deliverer(q, app, hook)
	w.Must(d.Drain(t.Context(), delivery.App))
	w.Must(d.Drain(t.Context(), delivery.Webhook))
	if n, err := w.Slots.FinishSlots(t.Context()); n != 1 || err != nil {
		t.Fatalf("finished %d %v", n, err)
	}
	for _, s := range []*pgtest.Sink{app, hook} {
		if len(s.Got) != 2500 {
			t.Errorf("%s: %d users reached", s.Over, len(s.Got))
		}
		for key, n := range s.Got {
			if n != 1 {
				t.Errorf("%s sent %d times", key, n)
			}
		}
	}
	sums := w.Balanced(tpl)
	want := delivery.Counts{Reserved: 2500, Sent: 2500}
	if sums[delivery.App] != want || sums[delivery.Webhook] != want {
		t.Errorf("balance %+v", sums)
	}
	// The other reserved slot is unchanged, and this slot is closed for
	// cancelling.
	if v := w.Cancel(tpl, 1, pgtest.Reminders(delivery.App, 5)...); v.Applied {
		t.Error("cancelled a reminder that was sent")
	}
	if v := w.Cancel(tpl, 1, pgtest.Reminders(delivery.Webhook, 10)...); !v.Applied {
		t.Errorf("%+v", v)
	}
	outcomes, err := w.Reservations.Delivered(t.Context(), 1, []int64{tpl.ID})
	w.Must(err)
	if len(outcomes) != 2 || outcomes[0].Outcome != delivery.Sent || outcomes[1].Outcome != delivery.Sent {
		t.Errorf("outcomes %+v", outcomes)
	}
	inbox, err := w.Inbox.Page(t.Context(), 1, time.Time{}, 10)
	w.Must(err)
	if len(inbox.Items) != 1 || inbox.Unread != 1 || inbox.Items[0].Name != tpl.Name {
		t.Errorf("inbox %+v", inbox)
	}
	for _, through := range []time.Time{inbox.Items[0].At, inbox.Items[0].At.Add(-time.Hour)} { // it never goes back
		if stands, err := w.Inbox.MarkRead(t.Context(), 1, through); err != nil || !stands.Equal(inbox.Items[0].At) {
			t.Errorf("read through %s: %s %v", through, stands, err)
		}
	}
	if inbox, err = w.Inbox.Page(t.Context(), 1, time.Time{}, 10); err != nil || inbox.Unread != 0 || !inbox.Items[0].Read {
		t.Errorf("after reading: %+v %v", inbox, err)
	}
}

// TestCuttingAgainAfterACrash stores a part of the batches and lets another
// process take over. Each recipient must be in exactly one batch.
func TestCuttingAgainAfterACrash(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 3300, pgtest.Reminders(delivery.App, 5)...)
	sl := w.DueNow(tpl, 1)
	cut, err := w.Slots.BeginFiring(t.Context(), sl.ID, time.Minute)
	w.Must(err)
	due, err := w.Slots.ReadDue(t.Context(), cut, delivery.Range{From: 1, To: 1 << 40})
	w.Must(err)
	parts := delivery.CutIntoBatches(due[delivery.App], nil, 700)
	_, err = w.Slots.StoreBatches(t.Context(), cut, []reminder.NewBatch{{Channel: delivery.App, Users: parts[1]}, {Channel: delivery.App, Users: parts[3]}})
	w.Must(err)
	w.Exec(`update slots set cut_lease_until = now() - interval '1 second' where id = $1`, sl.ID)
	if ids, err := w.Slots.DueSlots(t.Context(), time.Second, 10); err != nil || len(ids) != 1 || ids[0] != sl.ID {
		t.Fatalf("abandoned cutting is not found: %v %v", ids, err)
	}
	q := &pgtest.MemoryQueue{}
	w.Must(w.Timers(q).Fire(t.Context(), sl.ID))
	if _, err := w.Slots.StoreBatches(t.Context(), cut, []reminder.NewBatch{{Channel: delivery.App, Users: parts[0]}}); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Fatalf("the first process could still store: %v", err)
	}
	app := pgtest.NewSink(delivery.App, 1000)
	w.Must(w.Deliverer(q, app).Drain(t.Context(), delivery.App))
	if len(app.Got) != 3300 {
		t.Errorf("%d reached", len(app.Got))
	}
	if sums := w.Balanced(tpl); sums[delivery.App] != (delivery.Counts{Reserved: 3300, Sent: 3300}) {
		t.Errorf("%+v", sums)
	}
}

func TestOutcomesOtherThanSent(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 50, pgtest.Reminders(delivery.Webhook, 5)...)
	w.Exec(`insert into users (id, opt_outs) values (1, 16)`) // user 1 has opted out of webhook
	sl := w.DueNow(tpl, 1)
	q := &pgtest.MemoryQueue{}
	w.Must(w.Timers(q).Fire(t.Context(), sl.ID))
	hook := pgtest.NewSink(delivery.Webhook, 7)
	hook.Answer = func(m delivery.Message, times int) delivery.Result {
		switch i := (int64(m.To.ID) - 1) / 7919; {
		case i == 1:
			return delivery.Result{Status: delivery.Permanent, Detail: "unknown user 17"}
		case i == 2 && times < 3:
			return delivery.Result{Status: delivery.Transient, Detail: "status 500"}
		case i == 3:
			return delivery.Result{Status: delivery.Transient, Detail: "status 502"}
		case i == 4 && times == 1:
			return delivery.Result{Status: delivery.Throttled, After: time.Second}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	d := w.Deliverer(q, hook)
	d.Policy = delivery.Policy{MaxAttempts: 3, Base: time.Second, Max: time.Second}
	for range 6 { // time passes: every waiting retry is due
		w.Must(d.Drain(t.Context(), delivery.Webhook))
		w.Exec(`update exceptions set next_retry_at = now() - interval '1 second' where outcome = 'failed'`)
		w.Exec(`update batches set next_run_at = now() where state = 'ready'`)
	}
	if n, _ := w.Slots.FinishSlots(t.Context()); n != 1 {
		t.Error("the slot did not finish")
	}
	want := delivery.Counts{Reserved: 50, Sent: 47, Skipped: 1, Dead: 2}
	if sums := w.Balanced(tpl); sums[delivery.Webhook] != want {
		t.Errorf("%+v, want %+v", sums, want)
	}
	check := func(i int64, outcome delivery.Outcome, reason string, attempts int) {
		t.Helper()
		got, err := w.Reservations.Delivered(t.Context(), user.ID(i*7919+1), []int64{tpl.ID})
		w.Must(err)
		if len(got) != 1 || got[0].Outcome != outcome || got[0].Reason != reason || got[0].Attempts != attempts {
			t.Errorf("user %d: %+v", i, got)
		}
	}
	check(0, delivery.Skipped, delivery.ReasonOptedOut, 0)
	check(1, delivery.Dead, delivery.ReasonRefused, 1)
	check(2, delivery.Recovered, delivery.ReasonProvider, 2)
	check(3, delivery.Dead, delivery.ReasonTooManyTries, 3)
	check(4, delivery.Recovered, delivery.ReasonThrottled, 0)
	check(5, delivery.Sent, "", 0)
}

func TestNothingIsSentAfterTheOpening(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 30, pgtest.Reminders(delivery.Webhook, 5)...)
	sl := w.DueNow(tpl, 1)
	q := &pgtest.MemoryQueue{}
	w.Must(w.Timers(q).Fire(t.Context(), sl.ID))
	hook := pgtest.NewSink(delivery.Webhook, 10)
	hook.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID == 1 {
			return delivery.Result{Status: delivery.Delivered}
		}
		return delivery.Result{Status: delivery.Transient, Detail: "status 503"}
	}
	d := w.Deliverer(q, hook)
	w.Must(d.Drain(t.Context(), delivery.Webhook))
	calls := len(hook.Got)
	w.Exec(`update batches set worthless_after = now() - interval '1 second', next_run_at = now()`)
	w.Must(d.Drain(t.Context(), delivery.Webhook))
	if len(hook.Got) != calls {
		t.Error("somebody was sent something after the opening")
	}
	if sums := w.Balanced(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 30, Sent: 1, Expired: 29}) {
		t.Errorf("%+v", sums)
	}
	got, err := w.Reservations.Delivered(t.Context(), 7920, []int64{tpl.ID})
	w.Must(err)
	if got[0].Outcome != delivery.Expired || got[0].Reason != delivery.ReasonProvider || got[0].Detail != "status 503" {
		t.Errorf("the cause is lost: %+v", got[0])
	}
}

// TestTwoWorkersOneBatch: the second worker gets no lease. A worker whose lease
// was taken over can no longer record anything.
func TestTwoWorkersOneBatch(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 100, pgtest.Reminders(delivery.App, 5)...)
	sl := w.DueNow(tpl, 1)
	w.Must(w.Timers(&pgtest.MemoryQueue{}).Fire(t.Context(), sl.ID))
	first, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
	w.Must(err)
	if _, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute); !errors.Is(err, delivery.ErrNoWork) {
		t.Fatalf("leased twice: %v", err)
	}
	w.Exec(`update batches set lease_until = now() - interval '1 second'`)
	if n, err := w.Batches.TakeBack(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	second, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
	w.Must(err)
	if _, err := first.Checkpoint(t.Context(), delivery.Progress{Sent: first.Batch().Left[:10]}); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("the first worker could still record: %v", err)
	}
	if _, err := first.Extend(t.Context()); !errors.Is(err, delivery.ErrLeaseLost) {
		t.Errorf("the first worker could still extend: %v", err)
	}
	all := delivery.Progress{Sent: second.Batch().Left, Done: true}
	if _, err := second.Checkpoint(t.Context(), all); err != nil {
		t.Error(err)
	}
	if _, err := second.Checkpoint(t.Context(), all); err != nil {
		t.Errorf("repeating the last checkpoint: %v", err)
	}
}

func TestMovedOpening(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 1500, pgtest.Reminders(delivery.App, 5, 10)...)
	old := w.DueNow(tpl, 2)
	q := &pgtest.MemoryQueue{}
	timers := w.Timers(q)
	w.Must(timers.Fire(t.Context(), old.ID))
	app := pgtest.NewSink(delivery.App, 1000)
	d := w.Deliverer(q, app)
	w.Must(d.RunNext(t.Context(), delivery.App)) // one of two batches goes out
	changed := tpl.Spec
	changed.OpensAt = changed.OpensAt.Add(2 * time.Hour)
	changed.ClosesAt = changed.ClosesAt.Add(2 * time.Hour)
	moved, err := w.Service.Edit(t.Context(), staff.System(), tpl.ID, template.Edition{Version: tpl.Version, Spec: changed})
	w.Must(err)
	w.Must(d.Drain(t.Context(), delivery.App))
	if _, err := w.Slots.FinishSlots(t.Context()); err != nil {
		t.Fatal(err)
	}
	sums := w.Balanced(moved)
	if c := sums[delivery.App]; c.Reserved != 1500 || c.Sent+c.Skipped != 1500 || c.Skipped == 0 || c.Sent == 0 {
		t.Errorf("%+v", c)
	}
	sent := len(app.Got)
	again := w.DueNow(moved, 2)
	if again.ID == old.ID {
		t.Fatal("the moved slot kept its row")
	}
	w.Must(timers.Fire(t.Context(), again.ID))
	w.Must(d.Drain(t.Context(), delivery.App))
	if len(app.Got) != sent+1500 {
		t.Errorf("%d messages for the new time", len(app.Got)-sent)
	}
	for key, n := range app.Got {
		if n != 1 {
			t.Errorf("%s sent %d times", key, n)
		}
	}
	w.Must(timers.Schedule(t.Context(), tpl.ID))
	if len(q.Removed) == 0 {
		t.Error("no old timer was removed")
	}
	w.Balanced(moved)
}

func TestCancelledDropSendsNothingMore(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	w.Seed(tpl, 1500, pgtest.Reminders(delivery.App, 5, 10)...)
	sl := w.DueNow(tpl, 2)
	q := &pgtest.MemoryQueue{}
	w.Must(w.Timers(q).Fire(t.Context(), sl.ID))
	_, err := w.Service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Cancelling, "supplier failed")
	w.Must(err)
	app := pgtest.NewSink(delivery.App, 1000)
	w.Must(w.Deliverer(q, app).Drain(t.Context(), delivery.App))
	if len(app.Got) != 0 {
		t.Errorf("%d messages after cancellation", len(app.Got))
	}
	if sums := w.Balanced(tpl); sums[delivery.App] != (delivery.Counts{Reserved: 1500, Skipped: 1500}) {
		t.Errorf("%+v", sums)
	}
	if n := w.Number(`select count(*) from slots where template_id = $1 and state = 'waiting'`, tpl.ID); n != 0 {
		t.Errorf("%d slots still wait", n)
	}
	if n := w.Number(`select count(*) from exceptions`); n != 0 {
		t.Errorf("%d rows for a reason that all share", n)
	}
}

// TestNoGapAtTheEdge reserves and cancels as fast as possible while the slot
// fires. Every accepted reminder is in a batch, and no cancelled reminder is.
func TestNoGapAtTheEdge(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(30 * time.Minute)
	sl := w.Slot(tpl, 1)
	w.Exec(`update slots set due_at = clock_timestamp() + interval '700 milliseconds' where id = $1`, sl.ID)
	bit := pgtest.Reminders(delivery.App, 5)
	accepted := make([]atomic.Bool, 4001)
	var after atomic.Int64
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := g + 1; i < len(accepted); i += 16 {
				c := reminder.Change{TemplateID: tpl.ID, UserID: user.ID(i), Bits: reminder.BitmapOf(bit...)}
				v, err := w.Reservations.Reserve(context.Background(), c)
				if err != nil {
					t.Error(err)
				}
				accepted[i].Store(v.Applied)
				if !v.Applied {
					after.Add(1)
				} else if i%3 == 0 {
					v, err := w.Reservations.Cancel(context.Background(), c)
					if err != nil {
						t.Error(err)
					}
					accepted[i].Store(!v.Applied)
				}
			}
		})
	}
	w.Must(w.Timers(&pgtest.MemoryQueue{}).Fire(t.Context(), sl.ID))
	all.Wait()
	for i := len(accepted) - 1; i > 0 && after.Load() == 0; i-- {
		// The machine was done before the due time; a later reservation is still
		// refused.
		if v := w.Reserve(tpl, user.ID(100000+i), bit...); v.Applied {
			t.Fatal("accepted after firing")
		}
		after.Add(1)
	}
	found := map[user.ID]bool{}
	for {
		l, err := w.Batches.LeaseNext(t.Context(), delivery.App, time.Minute)
		if errors.Is(err, delivery.ErrNoWork) {
			break
		}
		w.Must(err)
		for _, id := range l.Batch().Left {
			if found[id] {
				t.Errorf("user %d is in two batches", id)
			}
			found[id] = true
		}
	}
	for i := 1; i < len(accepted); i++ {
		if accepted[i].Load() != found[user.ID(i)] {
			t.Errorf("user %d: accepted %v, in a batch %v", i, accepted[i].Load(), found[user.ID(i)])
		}
	}
	t.Logf("%d accepted, %d refused", len(found), after.Load())
}
