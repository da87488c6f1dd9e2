package reminder_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/domain/user"
)

// fakeSlotStore is a firing store of one slot in memory. The slot is too large to be cut together
// with other slots. The store's clock differs from the process's by offset.
type fakeSlotStore struct {
	reminder.TogetherStore
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
	stolen   bool // another worker has taken over
	// keptUntil is the end of the lease.
	keptUntil time.Time
	deaf      bool // reading does not notice that its context has ended
}

func (y *fakeSlotStore) now() time.Time { return time.Now().Add(y.offset) }

func (y *fakeSlotStore) BeginFiring(_ context.Context, _ int64, lasting time.Duration) (reminder.Cut, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.begun++
	if y.slot.State != reminder.Waiting {
		return reminder.Cut{}, reminder.ErrNotFirable
	}
	if wait := y.slot.DueAt.Sub(y.now()); wait > 0 {
		return reminder.Cut{Wait: wait}, nil
	}
	y.slot.State, y.keptUntil = reminder.Firing, time.Now().Add(lasting)
	cut := reminder.Cut{Slot: y.slot, Token: "token", Covered: y.covered, Expected: reminder.SmallSlot + 1}
	width := max(1, (len(y.users)+y.parts-1)/max(1, y.parts))
	for part := range slices.Chunk(y.users, width) {
		cut.Parts = append(cut.Parts, delivery.Range{From: part[0], To: part[len(part)-1]})
	}
	return cut, nil
}

func (y *fakeSlotStore) ReadDue(ctx context.Context, _ reminder.Cut, part delivery.Range) (reminder.Due, error) {
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

func (y *fakeSlotStore) StoreBatches(_ context.Context, _ reminder.Cut, bs []reminder.NewBatch) ([]int64, error) {
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

func (y *fakeSlotStore) KeepFiring(_ context.Context, _ reminder.Cut, lasting time.Duration) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.stolen {
		return delivery.ErrLeaseLost
	}
	y.keptUntil = time.Now().Add(lasting)
	return nil
}

func (y *fakeSlotStore) EndFiring(_ context.Context, _ reminder.Cut, reserved [delivery.Channels]int64) error {
	y.slot.State = reminder.Sending
	y.ended = append(y.ended, reserved)
	return y.endErr
}

func (y *fakeSlotStore) DueSlots(context.Context, time.Duration, int) ([]int64, error) {
	return nil, nil
}
func (y *fakeSlotStore) FinishSlots(context.Context) (int, error) { return 0, nil }
func (y *fakeSlotStore) TakeBack(context.Context) (int, error)    { return 0, nil }
func (y *fakeSlotStore) Overdue(context.Context, time.Duration) ([]delivery.Channel, error) {
	return nil, nil
}
func (y *fakeSlotStore) Unfinished(context.Context, []int64) ([]int64, error) { return nil, nil }
func (y *fakeSlotStore) WaitingSlots(context.Context, int64) ([]reminder.Slot, []reminder.Slot, error) {
	return nil, nil, nil
}

// fakeQueue is a queue that remembers.
type fakeQueue struct {
	mu      sync.Mutex
	tasks   []task.Task
	removed []task.Task
	fail    error
}

func (l *fakeQueue) Enqueue(_ context.Context, ts ...task.Task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = append(l.tasks, ts...)
	return l.fail
}

func (l *fakeQueue) Remove(_ context.Context, ts ...task.Task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = append(l.removed, ts...)
	return l.fail
}

func (l *fakeQueue) named(name string) []task.Task {
	return slices.DeleteFunc(slices.Clone(l.tasks), func(t task.Task) bool { return t.Name != name })
}
