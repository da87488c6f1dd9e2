package reminder_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/musttest"
)

// fakeSweepStore implements what sweeping and scheduling need.
type fakeSweepStore struct {
	fakeSlotStore
	due           []int64
	idle          []delivery.Channel
	open          bool
	fail          map[string]error
	waiting, gone []reminder.Slot
	asked         []string
}

func (l *fakeSweepStore) note(name string) error {
	l.asked = append(l.asked, name)
	return l.fail[name]
}

func (l *fakeSweepStore) DueSlots(context.Context, time.Duration, int) ([]int64, error) {
	return l.due, l.note("due")
}
func (l *fakeSweepStore) TakeBack(context.Context) (int, error) { return 0, l.note("take back") }
func (l *fakeSweepStore) Overdue(context.Context, time.Duration) ([]delivery.Channel, error) {
	return l.idle, l.note("overdue")
}
func (l *fakeSweepStore) FinishSlots(context.Context) (int, error) { return 0, l.note("finish") }
func (l *fakeSweepStore) Unfinished(_ context.Context, ids []int64) ([]int64, error) {
	if !l.open {
		ids = nil
	}
	return ids, l.note("unfinished")
}
func (l *fakeSweepStore) WaitingSlots(context.Context, int64) ([]reminder.Slot, []reminder.Slot, error) {
	return l.waiting, l.gone, l.fail["waiting"]
}

func TestSweepQueuesWhatTheQueueLost(t *testing.T) {
	l, q := &fakeSweepStore{due: []int64{7, 8}, idle: []delivery.Channel{delivery.Email, delivery.SMS}}, &fakeQueue{}
	timers, now := timersOn(l, q), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	timers.Now = func() time.Time { return now }
	for range 2 { // the second sweep, of the same five seconds, adds nothing new
		musttest.OK(t, timers.Sweep(t.Context()))
	}
	distinct := map[string]task.Task{}
	for _, tk := range q.tasks {
		distinct[tk.Queue+" "+tk.ID()] = tk
	}
	if len(distinct) != 2+2*4 || len(q.tasks) != 2*len(distinct) {
		t.Errorf("%d tasks, %d of them distinct: %v", len(q.tasks), len(distinct), distinct)
	}
	perQueue := map[string]int{}
	for _, tk := range distinct {
		perQueue[tk.Queue]++
		if !tk.At.IsZero() {
			t.Errorf("%s waits until %v", tk.ID(), tk.At)
		}
		if tk.Name == task.FireSlot && strings.Count(tk.ID(), ":") != 2 {
			t.Errorf("%s may be taken by the timer that was lost", tk.ID())
		}
	}
	if perQueue[task.TimerQueue] != 2 || perQueue["deliver-email"] != 4 || perQueue["deliver-sms"] != 4 {
		t.Errorf("per queue %v", perQueue)
	}
	now = now.Add(5 * time.Second)
	before := len(q.tasks)
	musttest.OK(t, timers.Sweep(t.Context()))
	for _, tk := range q.tasks[before:] {
		if _, taken := distinct[tk.Queue+" "+tk.ID()]; taken {
			t.Errorf("%s may still be held by a dead worker", tk.ID())
		}
	}
}

func TestSweepStopsAtTheFirstFailure(t *testing.T) {
	broken := errors.New("disk full")
	for _, step := range []string{"due", "take back", "overdue", "finish"} {
		l, q := &fakeSweepStore{due: []int64{7}, fail: map[string]error{step: broken}}, &fakeQueue{}
		if err := timersOn(l, q).Sweep(t.Context()); !errors.Is(err, broken) || l.asked[len(l.asked)-1] != step {
			t.Errorf("%s: %v after %v", step, err, l.asked)
		}
	}
}

func TestWatchLooksAgainUntilTheSlotIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := &fakeSweepStore{open: true}, &fakeQueue{}
		musttest.OK(t, timersOn(l, q).Watch(t.Context(), 7))
		watch := q.named(task.Watch)
		if len(watch) != 1 || !watch[0].At.Equal(time.Now().Add(10*time.Second)) || watch[0].Payload != (task.SlotPayload{SlotID: 7}) {
			t.Errorf("queued %+v", watch)
		}
		if want := []string{"due", "take back", "overdue", "finish", "unfinished"}; !slices.Equal(l.asked, want) {
			t.Errorf("asked %v; a slot that was just finished must not be watched on", l.asked)
		}
		l, q = &fakeSweepStore{}, &fakeQueue{}
		if err := timersOn(l, q).Watch(t.Context(), 7); err != nil || len(q.tasks) != 0 {
			t.Errorf("a finished slot: %v, queued %+v", err, q.tasks)
		}
		l = &fakeSweepStore{open: true, fail: map[string]error{"unfinished": fault.ErrStale}}
		if err := timersOn(l, q).Watch(t.Context(), 7); !errors.Is(err, fault.ErrStale) {
			t.Errorf("%v", err)
		}
	})
}

func TestScheduleAddsWhatWaitsAndRemovesTheRest(t *testing.T) {
	due := opens.Add(-5 * time.Minute)
	l, q := &fakeSweepStore{}, &fakeQueue{}
	for id := range int64(12) {
		l.waiting = append(l.waiting, reminder.Slot{ID: 100 + id, Slot: template.Slot(id + 1), DueAt: due})
		l.gone = append(l.gone, reminder.Slot{ID: 200 + id, DueAt: due})
	}
	musttest.OK(t, timersOn(l, q).Schedule(t.Context(), 1))
	for i := range 12 {
		if q.tasks[i].ID() != task.Fire(100+int64(i), due).ID() || !q.tasks[i].At.Equal(task.Fire(1, due).At) {
			t.Errorf("added %+v", q.tasks[i])
		}
		if q.removed[i].ID() != task.Fire(200+int64(i), due).ID() {
			t.Errorf("removed %+v", q.removed[i])
		}
	}
	if len(q.tasks) != 12 || len(q.removed) != 12 {
		t.Errorf("%d added, %d removed", len(q.tasks), len(q.removed))
	}
	q.fail = errors.New("connection refused")
	if err := timersOn(l, q).Schedule(t.Context(), 1); !errors.Is(err, q.fail) || len(q.tasks) != 24 {
		t.Errorf("a queue that fails to remove must still be given the new timers: %v, %d", err, len(q.tasks))
	}
	l.fail = map[string]error{"waiting": fault.ErrStale}
	if err := timersOn(l, q).Schedule(t.Context(), 1); !errors.Is(err, fault.ErrStale) {
		t.Errorf("%v", err)
	}
}
