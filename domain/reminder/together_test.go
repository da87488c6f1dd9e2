package reminder_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/user"
	"dropbell/musttest"
)

// eveningStore is a firing store of many slots with the same instant. Slot n has n users in the
// app, and slots share no users.
type eveningStore struct {
	reminder.FiringStore
	mu      sync.Mutex
	slots   map[int64]*reminder.Slot
	size    int64         // Cut.Expected
	most    int           // slots that BeginTogether returns at most
	reading time.Duration // how long a read takes
	begun   []int64       // asked of BeginFiring
	reads   int           // under way
	widest  int           // most reads at a time
	stored  map[int64]int // users by slot
	ended   map[int64]int64
	lost    int64 // a slot that another worker takes over while it is read
	fail    error // of storing
	alone   error // of BeginTogether
}

func eveningOf(slots int64, due time.Time) *eveningStore {
	e := &eveningStore{slots: map[int64]*reminder.Slot{}, size: 10, most: reminder.GroupSlots, stored: map[int64]int{}, ended: map[int64]int64{}}
	for id := int64(1); id <= slots; id++ {
		e.slots[id] = &reminder.Slot{ID: id, TemplateID: id, Slot: 1, DueAt: due, State: reminder.Waiting}
	}
	return e
}

func (e *eveningStore) claim(id int64) reminder.Cut {
	e.slots[id].State = reminder.Firing
	return reminder.Cut{Slot: *e.slots[id], Token: "token", Expected: e.size, Parts: []delivery.Range{{From: 1, To: 1}}}
}

func (e *eveningStore) BeginFiring(_ context.Context, id int64, _ time.Duration) (reminder.Cut, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = append(e.begun, id)
	if e.slots[id].State != reminder.Waiting {
		return reminder.Cut{}, reminder.ErrNotFirable
	}
	if wait := time.Until(e.slots[id].DueAt); wait > 0 {
		return reminder.Cut{Wait: wait}, nil
	}
	return e.claim(id), nil
}

func (e *eveningStore) BeginTogether(context.Context, reminder.Cut, time.Duration) (cuts []reminder.Cut, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.alone != nil {
		return nil, e.alone
	}
	for id := int64(1); id <= int64(len(e.slots)) && len(cuts) < e.most; id++ {
		if e.slots[id].State == reminder.Waiting && !e.slots[id].DueAt.After(time.Now()) {
			cuts = append(cuts, e.claim(id))
		}
	}
	return cuts, nil
}

// counts returns how many users of the slot are in batches, and how many were counted at its end.
func (e *eveningStore) counts(id int64) (stored int, ended int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stored[id], e.ended[id]
}

func (e *eveningStore) read() {
	e.mu.Lock()
	e.reads++
	e.widest = max(e.widest, e.reads)
	e.mu.Unlock()
	time.Sleep(e.reading) // of the bubble's clock
	e.mu.Lock()
	e.reads--
	e.mu.Unlock()
}

func (e *eveningStore) ReadDue(context.Context, reminder.Cut, delivery.Range) (due reminder.Due, err error) {
	e.read()
	return due, nil
}

func (e *eveningStore) StoreBatches(context.Context, reminder.Cut, []reminder.NewBatch) ([]int64, error) {
	return nil, nil
}

func (e *eveningStore) EndFiring(_ context.Context, c reminder.Cut, _ [delivery.Channels]int64) error {
	return e.EndTogether(context.Background(), []reminder.Found{{Cut: c}})
}

func (e *eveningStore) ReadTogether(_ context.Context, cuts []reminder.Cut) ([]reminder.Due, error) {
	e.read()
	due := make([]reminder.Due, len(cuts))
	for i, c := range cuts {
		for n := range c.ID {
			due[i][delivery.App] = append(due[i][delivery.App], user.ID(n+1))
		}
	}
	return due, nil
}

func (e *eveningStore) StoreTogether(_ context.Context, cuts []reminder.Cut, bs []reminder.OwnedBatch) ([]int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := make([]int64, len(bs))
	for i, b := range bs {
		if cuts[b.Of].ID != e.lost {
			e.stored[cuts[b.Of].ID] += len(b.Users)
			ids[i] = int64(len(e.stored))
		}
	}
	return ids, e.fail
}

func (e *eveningStore) KeepFiring(context.Context, reminder.Cut, time.Duration) error     { return nil }
func (e *eveningStore) KeepTogether(context.Context, []reminder.Cut, time.Duration) error { return nil }

func (e *eveningStore) EndTogether(_ context.Context, found []reminder.Found) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range found {
		e.slots[f.ID].State = reminder.Sending
		e.ended[f.ID] = f.Reserved[delivery.App]
	}
	return nil
}

// fireAll calls each slot's timer, as the queue does, a bounded number at a time.
func fireAll(t *testing.T, timers *reminder.Timers, slots, atATime int) {
	t.Helper()
	var all sync.WaitGroup
	turns := make(chan struct{}, atATime)
	for id := range int64(slots) {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := timers.Fire(t.Context(), id+1); err != nil {
				t.Errorf("slot %d: %v", id+1, err)
			}
		})
	}
	all.Wait()
}

// TestSmallSlotsAreCutTogether: a thousand timers of one instant ask the store about few slots,
// and each slot has separate batches and a separate count.
func TestSmallSlotsAreCutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 1000
		e, q := eveningOf(slots, time.Now().Add(time.Second)), &fakeQueue{}
		timers := timersOn(e, q)
		timers.Firings = 1
		fireAll(t, timers, slots, 32)
		for id := int64(1); id <= slots; id++ {
			if e.stored[id] != int(id) || e.ended[id] != id {
				t.Fatalf("slot %d: %d users in batches, %d counted", id, e.stored[id], e.ended[id])
			}
		}
		// 32 timers were awake before the instant; after it one for each group asked.
		if len(e.begun) > 32+slots/reminder.GroupSlots {
			t.Errorf("the store was asked for %d slots", len(e.begun))
		}
		watched := 0
		for _, w := range q.named(task.WatchMany) {
			watched += len(w.Payload.(task.SlotsPayload).SlotIDs)
		}
		if watched+len(q.named(task.Watch)) != slots {
			t.Errorf("%d slots are watched", watched)
		}
	})
}

// TestSmallBatchesWakeAWorkerTogether: sixteen batches of a few recipients have one task, like a
// full batch of a thousand recipients.
func TestSmallBatchesWakeAWorkerTogether(t *testing.T) {
	for drops, want := range map[int64]int{1: 1, 16: 1, 17: 2, 100: 7} { // drop n has n users
		e, q := eveningOf(drops, time.Now()), &fakeQueue{}
		musttest.OK(t, timersOn(e, q).Fire(t.Context(), 1))
		if tasks := q.named(task.Deliver); len(tasks) != want {
			t.Errorf("%d drops: %d tasks, want %d", drops, len(tasks), want)
		}
	}
}

// TestATimerThatFiresTwiceCutsOnce, also in the middle of the first time.
func TestATimerThatFiresTwiceCutsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, q := eveningOf(3, time.Now()), &fakeQueue{}
		e.reading = time.Second
		timers := timersOn(e, q)
		timers.Firings = 4
		var all sync.WaitGroup
		for _, id := range []int64{1, 1, 2, 3, 2} {
			all.Go(func() { _ = timers.Fire(t.Context(), id) })
		}
		all.Wait()
		for _, id := range []int64{1, 2, 3} {
			if e.stored[id] != int(id) {
				t.Errorf("slot %d has %d users", id, e.stored[id])
			}
		}
	})
}

// TestASlotLostFromAGroupIsLeftToItsNewWorker: the others are ended.
func TestASlotLostFromAGroupIsLeftToItsNewWorker(t *testing.T) {
	e, q := eveningOf(3, time.Now()), &fakeQueue{}
	e.lost = 2
	timers := timersOn(e, q)
	musttest.OK(t, timers.Fire(t.Context(), 1))
	if _, ended := e.ended[2]; ended || len(e.ended) != 2 {
		t.Errorf("ended %v", e.ended)
	}
	for _, run := range q.named(task.Deliver) {
		if run.Payload.(task.BatchPayload).BatchID == 0 {
			t.Error("a batch that was not stored wakes a worker")
		}
	}
	e.begun = nil
	if _ = timers.Fire(t.Context(), 2); !slices.Equal(e.begun, []int64{2}) {
		t.Error("the lost slot was fired again without asking the store")
	}
}

// TestAGroupThatFailsIsTakenUpAgain: its slots are not taken for fired.
func TestAGroupThatFailsIsTakenUpAgain(t *testing.T) {
	broken := errors.New("disk full")
	e, q := eveningOf(3, time.Now()), &fakeQueue{}
	e.fail = broken
	timers := timersOn(e, q)
	if err := timers.Fire(t.Context(), 1); !errors.Is(err, broken) || len(e.ended) != 0 {
		t.Fatalf("%v, ended %v", err, e.ended)
	}
	e.fail, e.stored = nil, map[int64]int{}
	for id := range e.slots {
		e.slots[id].State = reminder.Waiting // as BeginFiring finds them once their leases have run out
	}
	if err := timers.Fire(t.Context(), 3); err != nil || len(e.ended) != 3 {
		t.Errorf("%v, ended %v", err, e.ended)
	}
}

// TestASlotIsCutWithoutOthersToo: if other slots cannot be claimed, they are left to their
// timers, and the failure is reported.
func TestASlotIsCutWithoutOthersToo(t *testing.T) {
	e, q := eveningOf(3, time.Now()), &fakeQueue{}
	e.alone = errors.New("connection refused")
	timers := timersOn(e, q)
	if err := timers.Fire(t.Context(), 2); !errors.Is(err, e.alone) || len(e.ended) != 1 || e.stored[2] != 2 {
		t.Errorf("%v, ended %v", err, e.ended)
	}
	e.alone = nil
	if err := timers.Fire(t.Context(), 1); err != nil || len(e.ended) != 3 || e.stored[2] != 2 {
		t.Errorf("%v, ended %v", err, e.ended)
	}
}

// TestFiringsAreBounded: no more slots are cut at a time than allowed. Slots that are too large
// for one read are cut one at a time, and do not keep other slots waiting.
func TestFiringsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		size   int64
		widest int
	}{"of one read": {1_000_000, 3}, "huge": {5_000_000, 1}} {
		synctest.Test(t, func(t *testing.T) {
			e, q := eveningOf(20, time.Now()), &fakeQueue{}
			e.size, e.reading = c.size, time.Second
			timers := timersOn(e, q)
			timers.Firings = 3
			fireAll(t, timers, 20, 20)
			if e.widest != c.widest || len(e.ended) != 20 {
				t.Errorf("%s: %d read at a time, %d ended", name, e.widest, len(e.ended))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		e, q := eveningOf(10, time.Now()), &fakeQueue{}
		e.size, e.reading = 5_000_000, time.Minute
		timers := timersOn(e, q)
		timers.Firings = 2
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for id := range int64(9) {
			all.Go(func() { _ = timers.Fire(ctx, id+1) })
		}
		synctest.Wait()
		e.mu.Lock()
		e.size = 10
		e.mu.Unlock()
		err := timers.Fire(t.Context(), 10)
		if _, ended := e.counts(10); err != nil || ended != 10 {
			t.Errorf("a small slot waited for huge ones: %v", err)
		}
		cancel()
		all.Wait()
	})
}

// TestATimerThatWaitsTakesNoPlace: timers of the next instant do not delay the firing of slots
// that are due.
func TestATimerThatWaitsTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, q := eveningOf(5, time.Now().Add(2*time.Second)), &fakeQueue{}
		e.slots[5].DueAt = time.Now()
		timers := timersOn(e, q)
		timers.Firings = 1
		var all sync.WaitGroup
		for id := range int64(4) {
			all.Go(func() { _ = timers.Fire(t.Context(), id+1) })
		}
		synctest.Wait()
		start := time.Now()
		err := timers.Fire(t.Context(), 5)
		if stored, _ := e.counts(5); err != nil || time.Since(start) > 0 || stored != 5 {
			t.Errorf("fired after %v: %v", time.Since(start), err)
		}
		all.Wait()
	})
}

// TestManyWatchdogsSweepOnce: a sweep concerns all slots, so the watchdogs of a thousand slots
// that fired together need one sweep.
func TestManyWatchdogsSweepOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := &fakeSweepStore{open: true}, &fakeQueue{}
		timers := timersOn(l, q)
		for range 2 {
			l.asked = nil
			for id := range int64(50) {
				musttest.OK(t, timers.Watch(t.Context(), id+1, id+100))
			}
			sweeps := len(slices.DeleteFunc(slices.Clone(l.asked), func(name string) bool { return name != "take back" }))
			if sweeps != 1 {
				t.Errorf("%d sweeps", sweeps)
			}
			time.Sleep(time.Second) // of the bubble's clock
		}
		if again := q.named(task.WatchMany); len(again) != 100 || !slices.Equal(again[0].Payload.(task.SlotsPayload).SlotIDs, []string{"1", "100"}) {
			t.Errorf("watched on: %+v", again)
		}
	})
}
