package reminder

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/pause"
	"dropbell/domain/task"
	"dropbell/domain/user"
)

// ErrNotFirable is returned for a slot that has ended, has been fired, or is being fired by
// another worker.
var ErrNotFirable = fault.New(fault.Conflict, "not_firable", "the slot is not waiting")

// A Cut is the exclusive right to cut one slot's batches.
type Cut struct {
	Slot
	Token string
	// Wait is how long the slot still has to wait. If Wait is positive, the other fields mean
	// nothing.
	Wait time.Duration
	// RemindOnce is [template.Template.RemindOnce] when the cut was claimed.
	RemindOnce bool
	// Expected is the approximate number of the slot's reminders on all channels.
	Expected int64
	// Covered are the ranges of batches that exist already, per channel, ascending.
	Covered [delivery.Channels][]delivery.Range
	// Parts divide the user ids so that reading one part needs little memory.
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
	// BeginFiring makes a due, waiting slot firing, or takes a slot over whose firing process
	// stopped renewing its lease. It waits for reservations that are being committed; later
	// reservations are refused. If the slot is not yet due, or if a slot whose users it leaves
	// out is still being sent, Cut.Wait is positive. For a slot in any other state it returns
	// [ErrNotFirable].
	BeginFiring(ctx context.Context, slotID int64, lasting time.Duration) (Cut, error)
	// ReadDue reads the users due in the part. It leaves out users who were reached by an earlier
	// round of the slot or, with RemindOnce, by a slot of another opening.
	ReadDue(ctx context.Context, c Cut, part delivery.Range) (Due, error)
	// StoreBatches stores batches and extends the right to cut; it returns
	// their ids, or [delivery.ErrLeaseLost] if another worker has taken over.
	StoreBatches(ctx context.Context, c Cut, bs []NewBatch) ([]int64, error)
	// KeepFiring renews the right to cut, or returns [delivery.ErrLeaseLost].
	KeepFiring(ctx context.Context, c Cut, lasting time.Duration) error
	// EndFiring records that every batch is stored, and how many users were found per channel.
	EndFiring(ctx context.Context, c Cut, reserved [delivery.Channels]int64) error
	TogetherStore
	// DueSlots returns waiting slots that were due longer ago than grace, and slots whose cutting
	// was abandoned.
	DueSlots(ctx context.Context, grace time.Duration, limit int) ([]int64, error)
	// FinishSlots finishes slots whose batches are all done.
	FinishSlots(ctx context.Context) (int, error)
	// Unfinished returns the slots among slotIDs that are not finished.
	Unfinished(ctx context.Context, slotIDs []int64) ([]int64, error)
	// TakeBack and Overdue are the methods of [delivery.Store] with these names.
	TakeBack(ctx context.Context) (int, error)
	Overdue(ctx context.Context, grace time.Duration) ([]delivery.Channel, error)
	// WaitingSlots returns the template's waiting slots, and in gone its other slots.
	WaitingSlots(ctx context.Context, templateID int64) (waiting, gone []Slot, err error)
}

// Queue holds timers and tasks.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
	Remove(ctx context.Context, tasks ...task.Task) error
}

// Timers holds the use cases of timers. A template has at most twelve timers for each instant at
// which it, or a door of it, opens, whatever the number of users.
type Timers struct {
	Store FiringStore
	Queue Queue
	Now   func() time.Time
	// LeaseFor is how long the right to cut lasts without a renewal.
	LeaseFor time.Duration
	// WatchEvery is the watchdog's period.
	WatchEvery time.Duration
	// Firings is how many slots, or groups of small slots, this process cuts at a time; less than
	// 1 = 1. Huge slots, which are read in several parts to bound memory, do not count: they are
	// cut one at a time, concurrently with other slots.
	Firings int

	firings firings
	swept   atomic.Int64 // nanoseconds since 1970 when a watchdog last swept
}

// Schedule adds and removes timers so that they match the template's slots. It may run any number
// of times: a timer has one id per slot.
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

// longestWait is the longest time for which a timer that woke too early waits for its instant.
// Timers wake early because queues know whole seconds only.
const longestWait = 3 * time.Second

// Fire cuts a due slot into batches, stores them and wakes the workers during the cut. A small
// slot is cut together with other due slots; see [Timers.fireTogether]. Fire returns nil if there
// is nothing to do because the slot has fired, has ended, or is being fired by another worker.
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

// begin begins to fire the slot; if the timer woke a little early, it first waits for the instant
// by the database's clock. release frees the slot's place among [Timers.Firings] and may be
// called more than once. No place is held during the wait.
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
		if !pause.For(ctx, cut.Wait) {
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

// Watch is one run of the watchdog for slots that were fired together. It sweeps, see
// [Timers.Sweep], and enqueues the next run until the slots are finished. A sweep concerns all
// slots, so concurrent watchdogs share one.
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

// watch returns the task of the watchdog's next run for the slots.
func watch(slotIDs []int64, at time.Time) task.Task {
	if len(slotIDs) == 1 {
		return task.WatchSlot(slotIDs[0], at)
	}
	return task.WatchSlots(slotIDs, at)
}

// sweepAgain is the least time between two sweeps by watchdogs.
const sweepAgain = time.Second

// sweepGrace is how long after its instant a slot's timer may fire before the sweep enqueues it
// again.
const sweepGrace = 1500 * time.Millisecond

// Sweep finds in PostgreSQL the work that the queue has missed: due slots that were not fired,
// abandoned cutting, batches that no worker processes, and unfinished slots whose batches are all
// done. It depends on no timer.
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

// wakers is how many workers the sweep wakes per channel; each worker drains the channel.
const wakers = 4

func bucket(now time.Time, size time.Duration) string {
	return strconv.FormatInt(now.UnixNano()/int64(size), 10)
}
