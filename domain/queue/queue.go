// Package queue holds the use cases of staff for the queues of tasks. The queues
// only execute: the state of all work is in the database, and sweeps queue lost
// tasks again.
package queue

import (
	"context"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// Faults of looking at queues.
var (
	ErrNoQueue = fault.New(fault.NotFound, "queue_not_found", "there is no such queue; look at the list of queues")
	// ErrNoTask also stands for a task that has been executed meanwhile.
	ErrNoTask = fault.New(fault.NotFound, "queue_task_not_found", "the task is not in the queue any more; load the list again")
	// ErrActive is the refusal to change a task that a worker executes, or to take
	// a step that leads to the task's present state.
	ErrActive = fault.New(fault.Conflict, "queue_task_active", "the state of the task does not allow this; load the list again")
)

// State is the state of a task in its queue.
type State string

// The states. Pending tasks wait for a worker, scheduled tasks for their instant,
// retry tasks for their next attempt. Archived tasks have failed for good.
const (
	Pending   State = "pending"
	Active    State = "active"
	Scheduled State = "scheduled"
	Retry     State = "retry"
	Archived  State = "archived"
)

// States returns all states in the order of a task's life.
func States() []State { return []State{Pending, Active, Scheduled, Retry, Archived} }

// A Queue is one queue with its present contents.
type Queue struct {
	Name   string
	Paused bool
	// Sizes are the numbers of tasks by state.
	Sizes map[State]int64
	// Latency is how long the first pending task has waited.
	Latency time.Duration
	// Days count the work by days of UTC, today last.
	Days []Day
}

// Day counts the tasks that workers processed on one day of UTC. Failed attempts
// are included.
type Day struct {
	Date              time.Time
	Processed, Failed int64
}

// Today is the last of the days.
func (q Queue) Today() Day {
	if len(q.Days) == 0 {
		return Day{}
	}
	return q.Days[len(q.Days)-1]
}

// Size is the number of tasks in all states.
func (q Queue) Size() (n int64) {
	for _, s := range q.Sizes {
		n += s
	}
	return n
}

// A Task is one entry of a queue.
type Task struct {
	ID, Name, Queue string
	State           State
	// Payload is shortened.
	Payload           string
	Retried, MaxRetry int
	// LastError is of the last attempt, at FailedAt; both are zero before one.
	LastError string
	FailedAt  time.Time
	// Next is when the task is executed; zero for tasks that only wait for a
	// worker.
	Next time.Time
}

// Step is a change of a task by staff.
type Step string

// The steps. Run executes the task as soon as a worker is free; archive keeps it
// without executing it; delete removes it.
const (
	Run     Step = "run"
	Archive Step = "archive"
	Delete  Step = "delete"
)

// May reports whether the state allows the step.
func (s Step) May(state State) bool {
	switch {
	case state == Active:
		return false
	case s == Run:
		return state != Pending
	case s == Archive:
		return state != Archived
	}
	return s == Delete
}

// Steps returns the steps that a task in the state allows.
func Steps(state State) (list []Step) {
	for _, s := range []Step{Run, Archive, Delete} {
		if s.May(state) {
			list = append(list, s)
		}
	}
	return list
}

// Store is the store of the queues. Its methods return a fault of the kind
// [fault.Unavailable] while the store does not answer.
type Store interface {
	// Queues returns every queue of the product, with the last days.
	Queues(ctx context.Context, days int) ([]Queue, error)
	// Tasks returns a page of the tasks in a state, from 1 on, or [ErrNoQueue].
	Tasks(ctx context.Context, name string, state State, page, size int) ([]Task, error)
	// Task returns one task, or [ErrNoTask].
	Task(ctx context.Context, name, id string) (Task, error)
	// Pause stops or continues the execution of the queue's tasks; repeating it
	// changes nothing.
	Pause(ctx context.Context, name string, paused bool) error
	// Do takes a step with a task, or returns [ErrNoTask] or [ErrActive].
	Do(ctx context.Context, name, id string, step Step) error
}

// AuditLog records actions that change nothing in the database.
type AuditLog interface {
	Record(ctx context.Context, e staff.Entry) error
}

// Service shows the queues and changes them. All shops share the queues, so members
// who are limited to shops may neither see nor change them.
type Service struct {
	Store Store
	Audit AuditLog
}

// days is the number of days that are shown.
const days = 7

// Queues returns every queue.
func (s *Service) Queues(ctx context.Context, by staff.Actor) ([]Queue, error) {
	if err := by.MayEverywhere(staff.View); err != nil {
		return nil, err
	}
	return s.Store.Queues(ctx, days)
}

// Queue returns one queue, or [ErrNoQueue].
func (s *Service) Queue(ctx context.Context, by staff.Actor, name string) (Queue, error) {
	all, err := s.Queues(ctx, by)
	for _, q := range all {
		if q.Name == name {
			return q, nil
		}
	}
	if err == nil {
		err = ErrNoQueue
	}
	return Queue{}, err
}

// Tasks returns a page of the tasks in a state, from 1 on.
func (s *Service) Tasks(ctx context.Context, by staff.Actor, name string, state State, page, size int) ([]Task, error) {
	if err := by.MayEverywhere(staff.View); err != nil {
		return nil, err
	}
	return s.Store.Tasks(ctx, name, state, max(1, page), size)
}

// Task returns one task.
func (s *Service) Task(ctx context.Context, by staff.Actor, name, id string) (Task, error) {
	if err := by.MayEverywhere(staff.View); err != nil {
		return Task{}, err
	}
	return s.Store.Task(ctx, name, id)
}

// Pause stops or continues a queue. The audit log records the change before it is
// made, so no change is missing there.
func (s *Service) Pause(ctx context.Context, by staff.Actor, name string, paused bool) error {
	if _, err := s.Queue(ctx, by, name); err != nil {
		return err
	}
	action := "queue.resume"
	if paused {
		action = "queue.pause"
	}
	if err := s.record(ctx, by, action, name, nil); err != nil {
		return err
	}
	return s.Store.Pause(ctx, name, paused)
}

// Do takes a step with a task, which is recorded before.
func (s *Service) Do(ctx context.Context, by staff.Actor, name, id string, step Step) error {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return err
	}
	task, err := s.Store.Task(ctx, name, id)
	if err != nil {
		return err
	}
	if !step.May(task.State) {
		return ErrActive
	}
	if err := s.record(ctx, by, "queue.change", name, map[string]string{"step": string(step), "task": id, "state": string(task.State)}); err != nil {
		return err
	}
	return s.Store.Do(ctx, name, id, step)
}

func (s *Service) record(ctx context.Context, by staff.Actor, action, name string, after any) error {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return err
	}
	return s.Audit.Record(ctx, staff.Entry{Actor: by, Action: action, ObjectKind: "queue", ObjectID: name, After: after})
}
