package reminder_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// yard is a firing store of one slot in memory; its clock runs offset away
// from the process's.
type yard struct {
	mu       sync.Mutex
	slot     reminder.Slot
	offset   time.Duration
	users    []user.ID // reserved on app and, the even ones, on email
	covered  [delivery.Channels][]delivery.Range
	parts    int
	stored   []reminder.NewBatch
	begun    int
	ended    []([delivery.Channels]int64)
	loseAt   int // StoreBatches with this number loses the lease; 0 = none
	stores   int
	readErr  error
	storeErr error
	endErr   error
	onRead   func()
	deaf     bool // reading does not notice that its context has ended
}

func (y *yard) now() time.Time { return time.Now().Add(y.offset) }

func (y *yard) BeginFiring(context.Context, int64, time.Duration) (reminder.Cut, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.begun++
	if y.slot.State != reminder.Waiting {
		return reminder.Cut{}, reminder.ErrNotFirable
	}
	if wait := y.slot.DueAt.Sub(y.now()); wait > 0 {
		return reminder.Cut{Wait: wait}, nil
	}
	y.slot.State = reminder.Firing
	cut := reminder.Cut{Slot: y.slot, Token: "token", Covered: y.covered}
	width := max(1, (len(y.users)+y.parts-1)/max(1, y.parts))
	for part := range slices.Chunk(y.users, width) {
		cut.Parts = append(cut.Parts, delivery.Range{From: part[0], To: part[len(part)-1]})
	}
	return cut, nil
}

func (y *yard) ReadDue(ctx context.Context, _ reminder.Cut, part delivery.Range) (reminder.Due, error) {
	var due reminder.Due
	if y.onRead != nil {
		y.onRead()
	}
	if err := ctx.Err(); err != nil && !y.deaf {
		return due, err
	}
	for _, id := range y.users {
		if id < part.From || id > part.To {
			continue
		}
		due[delivery.App] = append(due[delivery.App], id)
		if id%2 == 0 {
			due[delivery.Email] = append(due[delivery.Email], id)
		}
	}
	return due, y.readErr
}

func (y *yard) StoreBatches(_ context.Context, _ reminder.Cut, bs []reminder.NewBatch) ([]int64, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.stores++
	if y.stores == y.loseAt {
		return nil, delivery.ErrLeaseLost
	}
	if y.storeErr != nil {
		return nil, y.storeErr
	}
	ids := make([]int64, len(bs))
	for i, b := range bs {
		y.stored = append(y.stored, reminder.NewBatch{Channel: b.Channel, Users: slices.Clone(b.Users)})
		ids[i] = int64(len(y.stored))
	}
	return ids, nil
}

func (y *yard) EndFiring(_ context.Context, _ reminder.Cut, reserved [delivery.Channels]int64) error {
	y.slot.State = reminder.Sending
	y.ended = append(y.ended, reserved)
	return y.endErr
}

func (y *yard) DueSlots(context.Context, time.Duration, int) ([]int64, error)      { return nil, nil }
func (y *yard) FinishSlots(context.Context) (int, error)                           { return 0, nil }
func (y *yard) TakeBack(context.Context) (int, error)                              { return 0, nil }
func (y *yard) Overdue(context.Context, time.Duration) ([]delivery.Channel, error) { return nil, nil }
func (y *yard) Unfinished(context.Context, int64) (bool, error)                    { return false, nil }
func (y *yard) WaitingSlots(context.Context, int64) ([]reminder.Slot, []reminder.Slot, error) {
	return nil, nil, nil
}

// line is a queue that remembers.
type line struct {
	mu      sync.Mutex
	tasks   []task.Task
	removed []task.Task
	fail    error
}

func (l *line) Enqueue(_ context.Context, ts ...task.Task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = append(l.tasks, ts...)
	return l.fail
}

func (l *line) Remove(_ context.Context, ts ...task.Task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = append(l.removed, ts...)
	return l.fail
}

func (l *line) named(name string) []task.Task {
	return slices.DeleteFunc(slices.Clone(l.tasks), func(t task.Task) bool { return t.Name != name })
}

func timersOn(store reminder.FiringStore, q *line) *reminder.Timers {
	return &reminder.Timers{Store: store, Queue: q, Now: time.Now, LeaseFor: 10 * time.Second, WatchEvery: 10 * time.Second}
}

func slotDueIn(d time.Duration) reminder.Slot {
	return reminder.Slot{ID: 7, TemplateID: 1, Slot: 1, DueAt: time.Now().Add(d), State: reminder.Waiting}
}

func ids(n int) []user.ID {
	list := make([]user.ID, n)
	for i := range list {
		list[i] = user.ID(i + 1)
	}
	return list
}

func TestFireCutsEverybodyOnce(t *testing.T) {
	for _, n := range []int{0, 1, 999, 1000, 1001, 120_500} {
		for _, parts := range []int{1, 2, 7} {
			synctest.Test(t, func(t *testing.T) {
				y, q := &yard{slot: slotDueIn(0), users: ids(n), parts: parts}, &line{}
				if err := timersOn(y, q).Fire(t.Context(), 7); err != nil {
					t.Fatal(err)
				}
				if err := timersOn(y, q).Fire(t.Context(), 7); err != nil || len(y.ended) != 1 {
					t.Errorf("a second timer: %v, ended %d times", err, len(y.ended))
				}
				if want := ([delivery.Channels]int64{int64(n), int64(n / 2)}); y.ended[0] != want {
					t.Errorf("counted %v, want %v", y.ended[0], want)
				}
				var got [delivery.Channels][]user.ID
				for _, b := range y.stored {
					if len(b.Users) == 0 || len(b.Users) > delivery.BatchSize || !slices.IsSorted(b.Users) {
						t.Errorf("a batch of %d", len(b.Users))
					}
					got[b.Channel] = append(got[b.Channel], b.Users...)
				}
				for c := range got {
					slices.Sort(got[c])
				}
				if !slices.Equal(got[delivery.App], y.users) || len(got[delivery.Email]) != n/2 || len(slices.Compact(got[delivery.Email])) != n/2 {
					t.Errorf("%d users in %d parts: %d on app, %d on email", n, parts, len(got[delivery.App]), len(got[delivery.Email]))
				}
				woken := map[string]bool{}
				for _, run := range q.named(task.Deliver) {
					woken[run.ID()] = true
				}
				if len(woken) != len(y.stored) {
					t.Errorf("%d batches, %d tasks", len(y.stored), len(woken))
				}
				if watch := q.named(task.Watch); len(watch) != 1 || !watch[0].At.Equal(time.Now().Add(10*time.Second)) {
					t.Errorf("watchdog %+v", watch)
				}
			})
		}
	}
}

func TestFireGoesOnWhereACrashLeftOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &yard{slot: slotDueIn(0), users: ids(5000), parts: 2}, &line{}
		y.covered[delivery.App] = []delivery.Range{{From: 1, To: 1000}, {From: 2501, To: 3500}}
		if err := timersOn(y, q).Fire(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		seen := map[user.ID]int{}
		for _, b := range y.stored {
			for _, id := range b.Users {
				if b.Channel == delivery.App {
					seen[id]++
				}
			}
		}
		for id := user.ID(1); id <= 5000; id++ {
			want := 1
			if id <= 1000 || id >= 2501 && id <= 3500 {
				want = 0
			}
			if seen[id] != want {
				t.Fatalf("user %d was cut %d times, want %d", id, seen[id], want)
			}
		}
		if y.ended[0][delivery.App] != 5000 {
			t.Errorf("counted %v; those who were cut before are reserved too", y.ended[0])
		}
	})
}

func TestATimerThatWakesEarlyWaits(t *testing.T) {
	for _, wait := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			y, q := &yard{slot: slotDueIn(wait), users: ids(10), parts: 1}, &line{}
			start := time.Now()
			if err := timersOn(y, q).Fire(t.Context(), 7); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited != wait || len(y.ended) != 1 || len(q.named(task.FireSlot)) != 0 {
				t.Errorf("%v early: fired after %v, ended %d times", wait, waited, len(y.ended))
			}
		})
	}
}

// TestTheDatabaseSaysWhenATimerIsEarly: however wrong this machine's clock
// is, the slot fires at its instant on the database's.
func TestTheDatabaseSaysWhenATimerIsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, offset := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
			y, q := &yard{users: ids(10), parts: 1, offset: offset}, &line{}
			y.slot = slotDueIn(offset + 2*time.Second) // two seconds from now on the database's clock
			start := time.Now()
			if err := timersOn(y, q).Fire(t.Context(), 7); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited != 2*time.Second || len(y.ended) != 1 {
				t.Errorf("clock off by %v: fired after %v, ended %d times", offset, waited, len(y.ended))
			}
		}
	})
}

func TestATimerFarTooEarlyIsQueuedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &yard{slot: slotDueIn(3*time.Second + time.Millisecond), users: ids(10), parts: 1}, &line{}
		start := time.Now()
		if err := timersOn(y, q).Fire(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		again := q.named(task.FireSlot)
		if time.Since(start) != 0 || len(y.stored) != 0 || len(again) != 1 {
			t.Fatalf("after %v: %d batches, queued %+v", time.Since(start), len(y.stored), q.tasks)
		}
		// Its own id is taken by the task that runs now.
		if again[0].ID() == task.Fire(7, time.Time{}).ID() || again[0].At.After(y.slot.DueAt) {
			t.Errorf("queued as %s at %v", again[0].ID(), again[0].At)
		}
	})
}

func TestShutdownWhileATimerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &yard{slot: slotDueIn(2 * time.Second)}, &line{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := timersOn(y, q).Fire(ctx, 7); !errors.Is(err, context.DeadlineExceeded) || len(y.ended) != 0 {
			t.Errorf("%v, ended %d times", err, len(y.ended))
		}
	})
}

func TestALostLeaseStopsSilently(t *testing.T) {
	for _, at := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			y, q := &yard{slot: slotDueIn(0), users: ids(200_000), parts: 4, loseAt: at}, &line{}
			if err := timersOn(y, q).Fire(t.Context(), 7); err != nil {
				t.Errorf("lost at %d: %v", at, err)
			}
			if len(y.ended) != 0 || y.stores != at || len(q.named(task.Watch)) != 0 {
				t.Errorf("lost at %d: stored %d times, ended %d times, %d watchdogs", at, y.stores, len(y.ended), len(q.named(task.Watch)))
			}
		})
	}
}

func TestFailuresOfTheStoreArePassedOn(t *testing.T) {
	broken := errors.New("disk full")
	for name, y := range map[string]*yard{
		"reading": {readErr: broken}, "storing": {storeErr: broken}, "ending": {endErr: broken}} {
		synctest.Test(t, func(t *testing.T) {
			y.slot, y.users, y.parts = slotDueIn(0), ids(3000), 3
			q := &line{}
			if err := timersOn(y, q).Fire(t.Context(), 7); !errors.Is(err, broken) {
				t.Errorf("%s: %v", name, err)
			}
			if name != "ending" && len(y.ended) != 0 {
				t.Errorf("%s failed and the slot was ended", name)
			}
			if len(q.named(task.Watch)) != 0 {
				t.Errorf("%s failed and nobody is told", name)
			}
		})
	}
}

// TestShutdownWhileCutting: what was read only in part must not be ended as
// if it were everybody.
func TestShutdownWhileCutting(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			y, q := &yard{slot: slotDueIn(0), users: ids(5000), parts: 5, deaf: i%2 == 0}, &line{}
			reads := 0
			y.onRead = func() {
				y.mu.Lock()
				defer y.mu.Unlock()
				if reads++; reads == 3 {
					cancel()
				}
			}
			if err := timersOn(y, q).Fire(ctx, 7); !errors.Is(err, context.Canceled) || len(y.ended) != 0 {
				t.Errorf("%v, ended %d times", err, len(y.ended))
			}
		})
	}
}

// TestAQueueThatIsAwayLosesNoBatch: batches are stored all the same, and the
// sweep wakes workers for them.
func TestAQueueThatIsAwayLosesNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, q := &yard{slot: slotDueIn(0), users: ids(3000), parts: 1}, &line{fail: errors.New("connection refused")}
		if err := timersOn(y, q).Fire(t.Context(), 7); !errors.Is(err, q.fail) {
			t.Errorf("the watchdog could not be queued and nobody is told: %v", err)
		}
		if len(y.ended) != 1 || len(y.stored) != 5 {
			t.Errorf("%d batches, ended %d times", len(y.stored), len(y.ended))
		}
	})
}

// lookout is a store that has only what sweeping and scheduling ask for.
type lookout struct {
	yard
	due           []int64
	idle          []delivery.Channel
	open          bool
	fail          map[string]error
	waiting, gone []reminder.Slot
	asked         []string
}

func (l *lookout) note(name string) error {
	l.asked = append(l.asked, name)
	return l.fail[name]
}

func (l *lookout) DueSlots(context.Context, time.Duration, int) ([]int64, error) {
	return l.due, l.note("due")
}
func (l *lookout) TakeBack(context.Context) (int, error) { return 0, l.note("take back") }
func (l *lookout) Overdue(context.Context, time.Duration) ([]delivery.Channel, error) {
	return l.idle, l.note("overdue")
}
func (l *lookout) FinishSlots(context.Context) (int, error) { return 0, l.note("finish") }
func (l *lookout) Unfinished(context.Context, int64) (bool, error) {
	return l.open, l.note("unfinished")
}
func (l *lookout) WaitingSlots(context.Context, int64) ([]reminder.Slot, []reminder.Slot, error) {
	return l.waiting, l.gone, l.fail["waiting"]
}

func TestSweepQueuesWhatTheQueueLost(t *testing.T) {
	l, q := &lookout{due: []int64{7, 8}, idle: []delivery.Channel{delivery.Email, delivery.SMS}}, &line{}
	timers, now := timersOn(l, q), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	timers.Now = func() time.Time { return now }
	for range 2 { // the second sweep, of the same five seconds, adds nothing new
		if err := timers.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
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
	if err := timers.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tk := range q.tasks[before:] {
		if _, taken := distinct[tk.Queue+" "+tk.ID()]; taken {
			t.Errorf("%s may still be held by a dead worker", tk.ID())
		}
	}
}

func TestSweepStopsAtTheFirstFailure(t *testing.T) {
	broken := errors.New("disk full")
	for _, step := range []string{"due", "take back", "overdue", "finish"} {
		l, q := &lookout{due: []int64{7}, fail: map[string]error{step: broken}}, &line{}
		if err := timersOn(l, q).Sweep(t.Context()); !errors.Is(err, broken) || l.asked[len(l.asked)-1] != step {
			t.Errorf("%s: %v after %v", step, err, l.asked)
		}
	}
}

func TestWatchLooksAgainUntilTheSlotIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, q := &lookout{open: true}, &line{}
		if err := timersOn(l, q).Watch(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		watch := q.named(task.Watch)
		if len(watch) != 1 || !watch[0].At.Equal(time.Now().Add(10*time.Second)) || watch[0].Payload != (task.SlotPayload{SlotID: 7}) {
			t.Errorf("queued %+v", watch)
		}
		if want := []string{"due", "take back", "overdue", "finish", "unfinished"}; !slices.Equal(l.asked, want) {
			t.Errorf("asked %v; a slot that was just finished must not be watched on", l.asked)
		}
		l, q = &lookout{}, &line{}
		if err := timersOn(l, q).Watch(t.Context(), 7); err != nil || len(q.tasks) != 0 {
			t.Errorf("a finished slot: %v, queued %+v", err, q.tasks)
		}
		l = &lookout{open: true, fail: map[string]error{"unfinished": fault.ErrStale}}
		if err := timersOn(l, q).Watch(t.Context(), 7); !errors.Is(err, fault.ErrStale) {
			t.Errorf("%v", err)
		}
	})
}

func TestScheduleAddsWhatWaitsAndRemovesTheRest(t *testing.T) {
	due := opens.Add(-5 * time.Minute)
	l, q := &lookout{}, &line{}
	for id := range int64(12) {
		l.waiting = append(l.waiting, reminder.Slot{ID: 100 + id, Slot: template.Slot(id + 1), DueAt: due})
		l.gone = append(l.gone, reminder.Slot{ID: 200 + id, DueAt: due})
	}
	if err := timersOn(l, q).Schedule(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
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
