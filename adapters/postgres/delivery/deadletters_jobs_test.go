package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// TestDyingInMidJobRepeatsNothing lets every step fail at its end a few times:
// the whole work of the step is rolled back.
func TestDyingInMidJobRepeatsNothing(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "status 500" }
	tpl, sl := m.Bury(1, 30, 10)
	j, err := m.Letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay, Filter: delivery.DeadLetterFilter{}})
	m.Must(err)
	m.Exec(`create function die() returns trigger language plpgsql as $$ begin raise exception 'power cut'; end $$`)
	for step := range 3 {
		m.Exec(`create trigger die before update on dead_letter_jobs for each row execute function die()`)
		if err := m.Letters.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "power cut") {
			t.Fatalf("the step did not die: %v", err)
		}
		m.Exec(`drop trigger die on dead_letter_jobs`)
		if n := m.Number(`select count(*) from exceptions where outcome = 'dead'`); n != int64(30-10*step) {
			t.Errorf("step %d: %d are dead after the rollback", step, n)
		}
		m.Balanced(tpl)
		m.CountersAgree("after a rollback")
		if more, err := m.Store.StepDeadLetterJob(t.Context()); !more || err != nil {
			t.Fatalf("%v %v", more, err)
		}
	}
	m.Must(m.Letters.Step(t.Context()))
	if got := m.Job(j.ID); got.Done != 30 || got.State != "finished" {
		t.Errorf("%+v", got)
	}
	m.Cause = func(user.ID) string { return "" }
	m.Drain()
	if sums := m.Finish(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 30, Sent: 30}) || m.SlotState(sl.ID) != "finished" {
		t.Errorf("%+v", sums)
	}
	for id := user.ID(1); id <= 30; id++ {
		if n := m.Times(tpl, id); n != 2 {
			t.Errorf("user %d: %d calls, one each was due before and after", id, n)
		}
	}
}

// TestWorkersStepAtOnce lets several workers step two jobs, while other workers
// deliver the revived messages and finish slots.
func TestWorkersStepAtOnce(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(id user.ID) string { return fmt.Sprintf("cause %c", 'a'+id%3) }
	tpl, sl := m.Bury(1, 240, 10)
	m.Cause = func(user.ID) string { return "" }
	var jobs []delivery.DeadLetterJob
	for _, f := range []delivery.DeadLetterFilter{{Fingerprint: new("cause a")}, {Fingerprint: new("cause b")}, {}} {
		action := delivery.Replay
		if f.Fingerprint != nil && *f.Fingerprint == "cause b" {
			action = delivery.Discard
		}
		j, err := m.Letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: action, Filter: f})
		m.Must(err)
		jobs = append(jobs, j)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	unfinished := func() int64 { return m.Number(`select count(*) from dead_letter_jobs where state = 'running'`) }
	var all sync.WaitGroup
	loop := func(what string, do func() error) {
		all.Go(func() {
			for deadline.Err() == nil {
				if err := do(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if unfinished() == 0 {
					return
				}
			}
		})
	}
	for range 3 {
		loop("step", func() error {
			m.Exec(`update dead_letter_jobs set lease_until = null where lease_until is not null`) // no pause
			return m.Letters.Step(t.Context())
		})
		loop("deliver", func() error { return m.Daemon.Drain(t.Context(), delivery.Webhook) })
	}
	loop("finish", func() error { _, err := m.Slots.FinishSlots(t.Context()); return err })
	all.Wait()
	if unfinished() != 0 {
		t.Fatal("the jobs did not end")
	}
	m.Drain()
	sums := m.Finish(tpl)
	a, b, rest := m.Job(jobs[0].ID), m.Job(jobs[1].ID), m.Job(jobs[2].ID)
	if a.Done+b.Done+rest.Done != 240 || a.Late+b.Late+rest.Late+a.Sent+b.Sent+rest.Sent != 0 {
		t.Errorf("%+v\n%+v\n%+v", a, b, rest)
	}
	if sums[delivery.Webhook] != (delivery.Counts{Reserved: 240, Sent: 240 - b.Done, Dead: b.Done}) || m.SlotState(sl.ID) != "finished" {
		t.Errorf("%d discarded, %+v, the slot is %s", b.Done, sums, m.SlotState(sl.ID))
	}
	if n := m.Number(`select count(*) from exceptions where outcome = 'discarded' and reason = $1`, delivery.ReasonOperator); n != b.Done {
		t.Errorf("%d rows say that an operator gave up", n)
	}
	for id := user.ID(1); id <= 240; id++ {
		if n := m.Times(tpl, id); n > 2 {
			t.Errorf("user %d: %d calls", id, n)
		}
	}
	m.CountersAgree("in the end")
}

// rest makes a paced replay look as if it had been without a worker for long.
func rest(m *pgtest.FailingHook) {
	m.Exec(`update dead_letter_jobs set paced_at = now() - interval '1 hour', lease_until = null where state = 'running'`)
}

// TestReplayRate: dead letters are released at the rate, across batches, each
// once. At most three seconds' worth is released at once.
func TestReplayRate(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "status 500" }
	m.Bury(1, 25, 10)
	j, err := m.Letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay, Rate: 1})
	m.Must(err)
	for done := int64(1); done <= 25; done += 3 {
		m.Must(m.Letters.Step(t.Context()))
		if got := m.Job(j.ID); got.Done != done || got.State != "running" {
			t.Fatalf("%d should be let go: %+v", done, got)
		}
		if n := m.Number(`select count(*) from exceptions where outcome = 'failed' and next_retry_at <= clock_timestamp()`); n != done {
			t.Fatalf("%d wait for a retry, want %d", n, done)
		}
		m.Must(m.Letters.Step(t.Context())) // too early
		rest(m)
	}
	m.Must(m.Letters.Step(t.Context()))
	if got := m.Job(j.ID); got.Done != 25 || got.State != "finished" {
		t.Errorf("%+v", got)
	}
	m.CountersAgree("in the end")
}

// TestAPacedReplay: a paced replay can be cancelled. Letters whose turn would
// come after the deadline stay dead, as the dry run says.
func TestAPacedReplay(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "status 500" }
	tpl, _ := m.Bury(1, 40, 15)
	m.Exec(`update batches set worthless_after = now() + interval '20.5 seconds'`)
	got, err := m.Letters.DryRun(t.Context(), staff.System(), delivery.DeadLetterFilter{}, 1)
	m.Must(err)
	if got.InTime < 15 || got.InTime > 21 || got.TooLate != 40-got.InTime || got.Total != 40 || got.ByRate != got.TooLate || got.Takes(1) != time.Duration(got.InTime)*time.Second {
		t.Errorf("one a second: %+v", got)
	}
	if got, err = m.Letters.DryRun(t.Context(), staff.System(), delivery.DeadLetterFilter{}, 1000); err != nil || got.InTime != 40 || got.ByRate != 0 {
		t.Errorf("a thousand a second: %+v %v", got, err)
	}
	j, err := m.Letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay, Rate: 1})
	m.Must(err)
	m.Must(m.Letters.Step(t.Context()))
	m.Exec(`update batches set worthless_after = now() - interval '1 second'`)
	rest(m)
	m.Must(m.Letters.Step(t.Context()))
	if got := m.Job(j.ID); got.Done != 1 || got.Late != 39 || got.State != "finished" {
		t.Errorf("after the deadline: %+v", got)
	}
	m.Exec(`update batches set worthless_after = now() + interval '1 hour'`)
	j, err = m.Letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay, Rate: 1})
	m.Must(err)
	m.Must(m.Letters.Step(t.Context()))
	m.Must(m.Letters.Cancel(t.Context(), staff.System(), j.ID))
	rest(m)
	m.Must(m.Letters.Step(t.Context()))
	if n := m.Number(`select count(*) from exceptions where outcome = 'dead'`); n != 38 {
		t.Errorf("%d are dead, want 38", n)
	}
	m.Cause = func(user.ID) string { return "" }
	m.Drain()
	if sums := m.Finish(tpl); sums[delivery.Webhook] != (delivery.Counts{Reserved: 40, Sent: 2, Dead: 38}) {
		t.Errorf("%+v", sums)
	}
	m.CountersAgree("in the end")
}

func TestReplayLeavesAWaitingBatchItsTurn(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "status 500" }
	m.Bury(1, 10, 10)
	m.Work(delivery.Replay, delivery.DeadLetterFilter{UserID: 10}, 0)
	m.Exec(`update batches set next_run_at = clock_timestamp() + interval '1 second'`)
	soon := m.Number(`select (extract(epoch from next_run_at) * 1000)::bigint from batches`)
	m.Exec(`update exceptions set next_retry_at = clock_timestamp() + interval '20 seconds' where user_id = 10`)
	m.Exec(`update dead_letter_jobs set done = 0`)
	if j := m.Work(delivery.Replay, delivery.DeadLetterFilter{UserID: 1}, 1); j.Done != 1 {
		t.Fatalf("%+v", j)
	}
	if now := m.Number(`select (extract(epoch from next_run_at) * 1000)::bigint from batches`); now > soon {
		t.Errorf("the batch was put off by %d ms", now-soon)
	}
}

// TestDeadLetterCountersInRandomHistories runs deaths, replays, discards and
// recounts in random order. After each step the counters match the rows.
func TestDeadLetterCountersInRandomHistories(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex
	m.Cause = func(user.ID) string {
		mu.Lock()
		defer mu.Unlock()
		return []string{"", "status 500", "no route", "teapot"}[rng.IntN(4)]
	}
	tpl, _ := m.Bury(1, 120, 17)
	pick := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	for i := range 25 {
		filter := delivery.DeadLetterFilter{}
		switch pick(4) {
		case 0:
			filter.Fingerprint = new([]string{"status #", "no route", "teapot", "no such"}[pick(4)])
		case 1:
			filter.UserID = user.ID(1 + pick(120))
		case 2:
			filter.BatchID = m.Number(`select min(id) from batches`) + int64(pick(8))
		}
		what := ""
		switch pick(8) {
		case 0:
			what = "recount"
			m.Exec(`update dead_letter_groups set dead = dead + 3 where fingerprint = 'teapot'`)
			m.Must(m.Store.RecountDeadLetters(t.Context()))
		case 1, 2:
			what = "discard"
			m.Work(delivery.Discard, filter, 0)
		default:
			what = "replay"
			m.Work(delivery.Replay, filter, 0)
		}
		when := fmt.Sprintf("step %d, %s %+v", i, what, filter)
		m.CountersAgree(when)
		m.Drain()
		m.CountersAgree(when + ", delivered")
		sums := m.Finish(tpl)
		if c := sums[delivery.Webhook]; c.Reserved != 120 || c.Sent+c.Dead != 120 {
			t.Errorf("%s: %+v", when, c)
		}
		if t.Failed() {
			return
		}
	}
}

// TestRepeatedCheckpointCountsTheDeadOnce: a checkpoint is repeated because its
// answer was lost.
func TestRepeatedCheckpointCountsTheDeadOnce(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 5), pgtest.Reminders(delivery.Webhook, 5)...)
	m.CutSlot(tpl, 1, 10)
	lease, err := m.Batches.LeaseNext(t.Context(), delivery.Webhook, time.Minute)
	m.Must(err)
	died := delivery.Progress{Exceptions: []delivery.Exception{{UserID: 2, Outcome: delivery.Dead, Reason: delivery.ReasonRefused, Detail: "gone",
		Fingerprint: "gone", Attempts: 1, FirstAt: pgtest.Clock(), LastAt: pgtest.Clock()}}}
	for range 3 {
		_, err := lease.Checkpoint(t.Context(), died)
		m.Must(err)
	}
	m.CountersAgree("after three equal checkpoints")
	if n := m.Number(`select dead from dead_letter_groups`); n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// TestReplayRateOfGreatUserIDs: a partly settled batch is stored with the last
// user reached, whose id may need 64 bits.
func TestReplayRateOfGreatUserIDs(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(user.ID) string { return "status 500" }
	m.Bury(3_000_000_001, 3_000_000_006, 10)
	j, err := m.Letters.Start(t.Context(), staff.System(), delivery.DeadLetterOrder{Action: delivery.Replay, Rate: 1})
	m.Must(err)
	m.Must(m.Letters.Step(t.Context()))
	if got := m.Job(j.ID); got.Done != 1 || got.State != "running" {
		t.Fatalf("one should be let go: %+v", got)
	}
	for range 2 { // at most three at once
		rest(m)
		m.Must(m.Letters.Step(t.Context()))
	}
	if got := m.Job(j.ID); got.Done != 6 || got.State != "finished" {
		t.Errorf("%+v", got)
	}
}
