package program

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/task"
	"dropbell/worker/work"
)

// stageQueue runs the tasks of a rehearsal in this process, as many of a channel at once as a worker does. It keeps
// nothing: a rehearsal ends with its process.
type stageQueue struct {
	timers     *reminder.Timers
	announcer  *reminder.Announcer
	deliveries *delivery.Service
	// run does a task. A task that fails is found again by the sweep, as after the death of a worker.
	run    func(task.Task)
	places map[string]chan struct{} // of each channel
	hooks  *work.Hooks              // nil = no server of the shop is told

	mu      sync.Mutex
	waiting map[string]*time.Timer // by the ids of tasks
	ended   bool
	running sync.WaitGroup
}

// newStageQueue returns a queue whose tasks end with ctx.
func newStageQueue(ctx context.Context, atOnce map[string]int) *stageQueue {
	q := &stageQueue{waiting: map[string]*time.Timer{}, places: map[string]chan struct{}{}}
	for _, c := range delivery.AllChannels() {
		q.places[c.String()] = make(chan struct{}, max(1, atOnce[c.String()]))
	}
	q.run = func(t task.Task) { _ = q.do(ctx, t) }
	return q
}

// Enqueue queues tasks. A task that waits already is not queued again.
func (q *stageQueue) Enqueue(_ context.Context, tasks ...task.Task) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range tasks {
		if _, waits := q.waiting[t.ID()]; waits || q.ended {
			continue
		}
		q.waiting[t.ID()] = time.AfterFunc(max(0, time.Until(t.At)), func() { q.start(t) })
	}
	return nil
}

// Remove removes tasks that wait.
func (q *stageQueue) Remove(_ context.Context, tasks ...task.Task) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range tasks {
		if timer := q.waiting[t.ID()]; timer != nil {
			timer.Stop()
			delete(q.waiting, t.ID())
		}
	}
	return nil
}

// stop ends the queue and waits for the tasks that run.
func (q *stageQueue) stop() {
	q.mu.Lock()
	q.ended = true
	for _, timer := range q.waiting {
		timer.Stop()
	}
	q.mu.Unlock()
	q.running.Wait()
}

func (q *stageQueue) start(t task.Task) {
	q.mu.Lock()
	delete(q.waiting, t.ID())
	if q.ended {
		q.mu.Unlock()
		return
	}
	q.running.Add(1)
	q.mu.Unlock()
	defer q.running.Done()
	q.run(t)
}

func (q *stageQueue) do(ctx context.Context, t task.Task) error {
	switch payload := t.Payload.(type) {
	case task.SlotPayload:
		if t.Name == task.FireSlot {
			return q.timers.Fire(ctx, payload.SlotID)
		}
		return q.timers.Watch(ctx, payload.SlotID)
	case task.SlotsPayload:
		ids := make([]int64, len(payload.SlotIDs))
		for i, text := range payload.SlotIDs {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return err
			}
			ids[i] = id
		}
		return q.timers.Watch(ctx, ids...)
	case task.AnnouncementPayload:
		return q.announcer.Cut(ctx, payload.AnnouncementID)
	case task.HookPayload:
		return q.hooks.Send(ctx, payload)
	case task.BatchPayload:
		c, err := delivery.ParseChannel(payload.Channel)
		if err != nil {
			return err
		}
		select {
		case q.places[payload.Channel] <- struct{}{}:
			defer func() { <-q.places[payload.Channel] }()
		case <-ctx.Done():
			return ctx.Err()
		}
		return q.deliveries.Drain(ctx, c)
	}
	return errors.New("a rehearsal has no task " + t.Name)
}
