package queue_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"dropbell/domain/fault"
	"dropbell/domain/queue"
	"dropbell/domain/staff"
)

// store holds one task, and notes in one list what is recorded and done.
type store struct {
	task  queue.Task
	notes []string
	full  error // of the audit log
}

func (s *store) Queues(context.Context, int) ([]queue.Queue, error) {
	return []queue.Queue{{Name: "timers"}}, nil
}
func (s *store) Tasks(context.Context, string, queue.State, int, int) ([]queue.Task, error) {
	return []queue.Task{s.task}, nil
}
func (s *store) Task(_ context.Context, _, id string) (queue.Task, error) {
	if id != s.task.ID {
		return queue.Task{}, queue.ErrNoTask
	}
	return s.task, nil
}
func (s *store) Pause(_ context.Context, name string, paused bool) error {
	s.notes = append(s.notes, "pause "+name)
	return nil
}
func (s *store) Do(_ context.Context, _, id string, step queue.Step) error {
	s.notes = append(s.notes, string(step)+" "+id)
	return nil
}
func (s *store) Record(_ context.Context, e staff.Entry) error {
	if s.full == nil {
		s.notes = append(s.notes, e.Action)
	}
	return s.full
}

// Every change is recorded before it is made. A change that cannot be recorded, or
// that the member or the task's state does not allow, is not made.
func TestChangesAreRecordedFirst(t *testing.T) {
	operator, viewer := staff.Actor{Role: staff.Operator}, staff.Actor{Role: staff.Viewer}
	limited := staff.Actor{Role: staff.Operator, Shops: []int64{10}}
	for _, c := range []struct {
		name  string
		do    func(*queue.Service) error
		state queue.State
		full  error
		want  []string
		fails error
	}{
		{name: "a pause", do: func(s *queue.Service) error { return s.Pause(t.Context(), operator, "timers", true) }, want: []string{"queue.pause", "pause timers"}},
		{name: "a pause of nothing", do: func(s *queue.Service) error { return s.Pause(t.Context(), operator, "x", true) }, fails: queue.ErrNoQueue},
		{name: "a viewer's pause", do: func(s *queue.Service) error { return s.Pause(t.Context(), viewer, "timers", true) }, fails: staff.ErrForbidden},
		{name: "a pause by one limited to shops", do: func(s *queue.Service) error { return s.Pause(t.Context(), limited, "timers", true) }, fails: staff.ErrEveryShop},
		{name: "a step", state: queue.Retry, do: func(s *queue.Service) error { return s.Do(t.Context(), operator, "timers", "a", queue.Run) }, want: []string{"queue.change", "run a"}},
		{name: "a viewer's step", do: func(s *queue.Service) error { return s.Do(t.Context(), viewer, "timers", "a", queue.Run) }, fails: staff.ErrForbidden},
		{name: "a step with nothing", do: func(s *queue.Service) error { return s.Do(t.Context(), operator, "timers", "b", queue.Run) }, fails: queue.ErrNoTask},
		{name: "a step while it is executed", state: queue.Active, do: func(s *queue.Service) error { return s.Do(t.Context(), operator, "timers", "a", queue.Delete) }, fails: queue.ErrActive},
		{name: "without an audit log", state: queue.Retry, full: fault.ErrStale, do: func(s *queue.Service) error { return s.Do(t.Context(), operator, "timers", "a", queue.Delete) }, fails: fault.ErrStale},
	} {
		s := &store{task: queue.Task{ID: "a", State: c.state}, full: c.full}
		if err := c.do(&queue.Service{Store: s, Audit: s}); !errors.Is(err, c.fails) || (err == nil) != (c.fails == nil) || !slices.Equal(s.notes, c.want) {
			t.Errorf("%s: %v, %v", c.name, err, s.notes)
		}
	}
}

func TestSteps(t *testing.T) {
	for state, want := range map[queue.State][]queue.Step{queue.Pending: {queue.Archive, queue.Delete}, queue.Active: nil,
		queue.Scheduled: {queue.Run, queue.Archive, queue.Delete}, queue.Archived: {queue.Run, queue.Delete}} {
		if got := queue.Steps(state); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
}
