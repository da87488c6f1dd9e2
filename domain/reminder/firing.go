package reminder

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/task"
	"dropbell/domain/user"
)

// ErrNotFirable is returned for a slot that another worker fires, has fired or
// that ended.
var ErrNotFirable = fault.New(fault.Conflict, "not_firable", "the slot is not waiting")

// A Cut is the exclusive right to cut one slot's batches.
type Cut struct {
	Slot
	Token string
	// Wait is how long the slot still has to wait; if it is positive nothing
	// else is meaningful.
	Wait time.Duration
	// RemindOnce is [template.Template.RemindOnce] when the cut was claimed.
	RemindOnce bool
	// Expected is about how many reminders the slot has, on all channels.
	Expected int64
	// Covered are the ranges of batches that exist already, per channel, ascending.
	Covered [delivery.Channels][]delivery.Range
	// Parts divide the user ids so that no part needs much memory.
	Parts []delivery.Range
}

// Due are the users due in one part, per channel, ascending.
type Due [delivery.Channels][]user.ID

// NewBatch is a batch to be stored.
type NewBatch struct {
	Channel delivery.Channel
	Users   []user.ID // ascending, not empty
}

// FiringStore keeps slots and their batches.
type FiringStore interface {
	// BeginFiring makes a due, waiting slot firing, or takes over one whose
	// firing process fell silent. It waits for reservations being committed;
	// later ones are refused. Not yet due, or a slot whose users it
	// leaves out is still going out: Cut.Wait. Else [ErrNotFirable].
	BeginFiring(ctx context.Context, slotID int64, lasting time.Duration) (Cut, error)
	// ReadDue reads the users due in the part, without those that an earlier
	// round of the slot, or with RemindOnce another opening's slot, has reached.
	ReadDue(ctx context.Context, c Cut, part delivery.Range) (Due, error)
	// StoreBatches stores batches and extends the right to cut; it returns
	// their ids, or [delivery.ErrLeaseLost] if another worker has taken over.
	StoreBatches(ctx context.Context, c Cut, bs []NewBatch) ([]int64, error)
	// KeepFiring renews the right to cut, or returns [delivery.ErrLeaseLost].
	KeepFiring(ctx context.Context, c Cut, lasting time.Duration) error
	// EndFiring records that every batch is stored and how many users were
	// found per channel.
	EndFiring(ctx context.Context, c Cut, reserved [delivery.Channels]int64) error
	TogetherStore
	// DueSlots returns slots that wait although they were due longer ago
	// than grace, and those whose cutting was abandoned.
	DueSlots(ctx context.Context, grace time.Duration, limit int) ([]int64, error)
	// FinishSlots finishes slots whose batches are all done.
	FinishSlots(ctx context.Context) (int, error)
	// Unfinished returns those of the slots that still have work to do.
	Unfinished(ctx context.Context, slotIDs []int64) ([]int64, error)
	// TakeBack and Overdue are those of [delivery.Store].
	TakeBack(ctx context.Context) (int, error)
	Overdue(ctx context.Context, grace time.Duration) ([]delivery.Channel, error)
	// WaitingSlots returns the template's slots that wait, and the others.
	WaitingSlots(ctx context.Context, templateID int64) (waiting, gone []Slot, err error)
}

// Queue holds timers and tasks.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
	Remove(ctx context.Context, tasks ...task.Task) error
}

// Timers holds the use cases of timers: at most twelve per template,
// whatever the number of users.
type Timers struct {
	Store FiringStore
	Queue Queue
	Now   func() time.Time
	// LeaseFor is how long a silent process keeps the right to cut.
	LeaseFor time.Duration
	// WatchEvery is the watchdog's period.
	WatchEvery time.Duration
	// Firings is how many slots, or groups of small slots, this process cuts at a
	// time; less than 1 = 1. Slots that need several reads to bound memory are cut
	// one at a time, beside the others.
	Firings int

	firings firings
	swept   atomic.Int64 // nanoseconds since 1970 when a watchdog last swept
}

// Schedule makes the template's timers agree with its slots. It may run any
// number of times: a timer has one id per slot.
func (f *Timers) Schedule(ctx context.Context, templateID int64) error {
	waiting, gone, err := f.Store.WaitingSlots(ctx, templateID)
	if err != nil {
		return err
	}
	var add, remove []task.Task
	for _, s := range waiting {
		add = append(add, task.Fire(s.ID, s.DueAt))
	}
	for _, s := range gone {
		remove = append(remove, task.Fire(s.ID, s.DueAt))
	}
	return errors.Join(f.Queue.Remove(ctx, remove...), f.Queue.Enqueue(ctx, add...))
}

// longestWait is how much too early a timer may wake and still stay awake
// until its instant; queues know whole seconds only.
const longestWait = 3 * time.Second

// Fire cuts a due slot into batches, stores them and wakes the workers during
// the cut. A small slot is cut together with others that are due; see
// [Timers.fireTogether]. Fire returns nil if there was nothing to do: fired
// already, ended, or another worker fires it.
func (f *Timers) Fire(ctx context.Context, slotID int64) error {
	cut, release, err := f.begin(ctx, slotID)
	defer release()
	switch {
	case errors.Is(err, ErrNotFirable):
		return nil
	case err != nil:
		return err
	case cut.Wait > 0: // far too early: a clock is wrong or the timer is stale
		return f.Queue.Enqueue(ctx, task.Fire(slotID, f.Now().Add(cut.Wait)).Again(strconv.FormatInt(f.Now().Unix(), 10)))
	case cut.small():
		return f.fireTogether(ctx, cut)
	case cut.huge():
		release()
	}
	reserved, err := f.cutting(cut).run(ctx)
	if errors.Is(err, delivery.ErrLeaseLost) {
		return nil // the worker that took over finishes
	}
	if err != nil {
		return err
	}
	if err := f.Store.EndFiring(ctx, cut, reserved); err != nil {
		return err
	}
	return f.Queue.Enqueue(ctx, task.WatchSlot(slotID, f.Now().Add(f.WatchEvery)))
}

// begin waits for the database's clock if the timer woke a little early. release,
// which may be called more than once, frees the place that the slot takes among
// [Timers.Firings]; no place is held while waiting for the instant.
func (f *Timers) begin(ctx context.Context, slotID int64) (cut Cut, release func(), err error) {
	for {
		if f.firings.cutHere(slotID) {
			return cut, func() {}, ErrNotFirable
		}
		if release, err = f.firings.enter(ctx, f.Firings); err != nil {
			return cut, release, err
		}
		if f.firings.cutHere(slotID) {
			return cut, release, ErrNotFirable
		}
		cut, err = f.Store.BeginFiring(ctx, slotID, f.LeaseFor)
		if err != nil || cut.Wait <= 0 || cut.Wait > longestWait {
			return cut, release, err
		}
		release()
		t := time.NewTimer(cut.Wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return cut, release, ctx.Err()
		}
	}
}

func (f *Timers) cutting(cut Cut) cutting {
	c := cutting{queue: f.Queue, parts: cut.Parts, covered: cut.Covered, lasting: f.LeaseFor,
		read:  func(ctx context.Context, part delivery.Range) (Due, error) { return f.Store.ReadDue(ctx, cut, part) },
		store: func(ctx context.Context, bs []NewBatch) ([]int64, error) { return f.Store.StoreBatches(ctx, cut, bs) },
		renew: func(ctx context.Context) error { return f.Store.KeepFiring(ctx, cut, f.LeaseFor) }}
	if cut.huge() {
		c.enter = f.firings.enterHuge
	}
	return c
}

// Watch is the watchdog's look at slots that were fired together: it takes
// batches back from workers that fell silent, goes on with abandoned cutting,
// finishes what is finished, and looks again until the slots are. Each look is at
// all there is, so of many at the same time one is enough.
func (f *Timers) Watch(ctx context.Context, slotIDs ...int64) error {
	if last, now := f.swept.Load(), f.Now().UnixNano(); now-last >= int64(sweepAgain) && f.swept.CompareAndSwap(last, now) {
		if err := f.Sweep(ctx); err != nil {
			return err
		}
	}
	open, err := f.Store.Unfinished(ctx, slotIDs)
	if err != nil || len(open) == 0 {
		return err
	}
	return f.Queue.Enqueue(ctx, watch(open, f.Now().Add(f.WatchEvery)))
}

// watch returns the watchdog's next look at the slots.
func watch(slotIDs []int64, at time.Time) task.Task {
	if len(slotIDs) == 1 {
		return task.WatchSlot(slotIDs[0], at)
	}
	return task.WatchSlots(slotIDs, at)
}

// sweepAgain is how soon after a watchdog's sweep another one sweeps again.
const sweepAgain = time.Second

// sweepGrace is how long the timer of a due slot is waited for.
const sweepGrace = 1500 * time.Millisecond

// Sweep finds in PostgreSQL what the queue should have done and has not:
// slots due and not fired, cutting that was abandoned, batches that no worker works
// on, slots whose batches are all done. It needs no timer to have survived.
func (f *Timers) Sweep(ctx context.Context) error {
	due, err := f.Store.DueSlots(ctx, sweepGrace, 100)
	if err != nil {
		return err
	}
	var tasks []task.Task
	for _, id := range due {
		// A key of its own: the lost timer's id may be taken by a dead worker.
		tasks = append(tasks, task.Fire(id, time.Time{}).Again(bucket(f.Now(), 5*time.Second)))
	}
	if _, err := f.Store.TakeBack(ctx); err != nil {
		return err
	}
	idle, err := f.Store.Overdue(ctx, sweepGrace)
	if err != nil {
		return err
	}
	for _, c := range idle {
		for i := range wakers {
			tasks = append(tasks, task.Wake(c.String(), i, bucket(f.Now(), 5*time.Second)))
		}
	}
	if _, err := f.Store.FinishSlots(ctx); err != nil {
		return err
	}
	return f.Queue.Enqueue(ctx, tasks...)
}

// wakers is how many workers the sweep wakes per channel; each drains.
const wakers = 4

func bucket(now time.Time, size time.Duration) string {
	return strconv.FormatInt(now.UnixNano()/int64(size), 10)
}
