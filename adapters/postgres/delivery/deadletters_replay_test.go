package delivery_test

import (
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// TestReplayedSlotFinishesOnceMore: the slot goes from finished to sending and
// back, and balances at every step. The recipients keep all earlier attempts, and
// the batch keeps its first end.
func TestReplayedSlotFinishesOnceMore(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(id user.ID) string { return map[bool]string{true: "status 500"}[id <= 20] }
	tpl, sl := m.Bury(1, 60, 25)
	if sums := m.Balanced(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 60, Sent: 40, Dead: 20}) || m.SlotState(sl.ID) != "finished" {
		t.Fatalf("%+v", sums)
	}
	ended := m.Number(`select sum(extract(epoch from finished_at) * 1000000)::bigint from batches`)
	if j := m.Work(delivery.Replay, delivery.DeadLetterFilter{}, 0); j.Done != 20 {
		t.Errorf("%+v", j)
	}
	if sums := m.Balanced(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 60, Sent: 40, InFlight: 20}) || m.SlotState(sl.ID) != "sending" {
		t.Errorf("replay begun: %+v", sums)
	}
	if n, err := m.Slots.FinishSlots(t.Context()); n != 0 || err != nil {
		t.Errorf("finished with a batch to go: %d %v", n, err)
	}
	if n := m.Number(`select count(*) from exceptions where outcome = 'failed' and attempts = 0 and next_retry_at <= clock_timestamp()`); n != 20 {
		t.Errorf("%d wait with all attempts before them", n)
	}
	m.Daemon.Policy.MaxAttempts = 3
	m.Cause = func(id user.ID) string { return map[bool]string{true: "status 502"}[id <= 5] }
	for range 4 {
		m.Drain()
		m.Balanced(tpl)
		m.Exec(`update exceptions set next_retry_at = now() - interval '1 second' where outcome = 'failed'`)
		m.Exec(`update batches set next_run_at = now() where state = 'ready'`)
	}
	if sums := m.Finish(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 60, Sent: 55, Dead: 5}) || m.SlotState(sl.ID) != "finished" {
		t.Errorf("replay ended: %+v", sums)
	}
	if n := m.Number(`select count(*) from exceptions where outcome = 'dead' and attempts = 3`); n != 5 {
		t.Errorf("%d died after three more attempts", n)
	}
	for id := user.ID(1); id <= 60; id++ {
		if want := map[bool]int{true: 1, false: 2}[id > 20] + map[bool]int{true: 2}[id <= 5]; m.Times(tpl, id) != want {
			t.Errorf("user %d: %d calls, want %d", id, m.Times(tpl, id), want)
		}
	}
	if now := m.Number(`select sum(extract(epoch from finished_at) * 1000000)::bigint from batches`); now != ended {
		t.Error("the replay changed when the batches were delivered")
	}
	m.CountersAgree("in the end")
}

// TestReplayDoesNotOutliveTheDeadline: a message that is replayed in time and
// then not sent before its deadline expires.
func TestReplayDoesNotOutliveTheDeadline(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "status 500" }
	tpl, _ := m.Bury(1, 10, 10)
	if j := m.Work(delivery.Replay, delivery.DeadLetterFilter{}, 0); j.Done != 10 {
		t.Fatalf("%+v", j)
	}
	m.Exec(`update batches set worthless_after = clock_timestamp(), next_run_at = clock_timestamp()`)
	m.Drain()
	for id := user.ID(1); id <= 10; id++ {
		if n := m.Times(tpl, id); n != 1 {
			t.Errorf("user %d: %d calls", id, n)
		}
	}
	if sums := m.Finish(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 10, Expired: 10}) {
		t.Errorf("%+v", sums)
	}
	if n := m.Number(`select count(*) from exceptions where outcome = 'expired' and detail = 'status 500'`); n != 10 {
		t.Errorf("%d know why", n)
	}
}

// TestReplayWaitsForAWorker: a worker that holds the batch has outcomes in
// memory, which a replay must not change meanwhile.
func TestReplayWaitsForAWorker(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "status 500" }
	tpl, _ := m.Bury(1, 10, 10)
	m.Work(delivery.Replay, delivery.DeadLetterFilter{UserID: 1}, 0)
	lease, err := m.Batches.LeaseNext(t.Context(), delivery.Webhook, time.Minute)
	m.Must(err)
	j, err := m.Letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{}})
	m.Must(err)
	m.Must(m.Letters.Step(t.Context()))
	if got := m.Job(j.ID); got.State != "running" || got.Done != 0 {
		t.Fatalf("did not wait: %+v", got)
	}
	if more, err := m.Store.StepDeadLetterJob(t.Context()); more || err != nil {
		t.Errorf("looks again without a pause: %v %v", more, err)
	}
	_, err = lease.Checkpoint(t.Context(), delivery.Progress{Sent: []user.ID{1}, Done: true,
		Exceptions: []delivery.Exception{{UserID: 1, Outcome: delivery.Recovered, Reason: delivery.ReasonProvider, FirstAt: pgtest.Clock(), LastAt: pgtest.Clock()}}})
	m.Must(err)
	m.Exec(`update dead_letter_jobs set lease_until = now() where id = $1`, j.ID)
	m.Must(m.Letters.Step(t.Context()))
	if got := m.Job(j.ID); got.State != "finished" || got.Done != 9 || got.Total != 9 {
		t.Errorf("%+v", got)
	}
	m.Cause = func(user.ID) string { return "" }
	m.Drain()
	if sums := m.Finish(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 10, Sent: 10}) {
		t.Errorf("%+v", sums)
	}
	if n := m.Times(tpl, 1); n != 1 {
		t.Errorf("user 1 was called %d times", n)
	}
}
