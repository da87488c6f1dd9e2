package asynq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	queue "github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"

	staffview "dropbell/domain/queue"
)

// An Inspector shows staff the queues and changes single tasks. It is safe for
// concurrent use.
type Inspector struct{ *Queue }

// NewInspector returns an inspector that uses client and does not close it.
func NewInspector(client goredis.UniversalClient) *Inspector {
	return &Inspector{&Queue{redis: client, inspector: queue.NewInspectorFromRedisClient(client)}}
}

// Queues returns every queue of the product in the order of [QueueNames].
func (i *Inspector) Queues(ctx context.Context, days int) ([]staffview.Queue, error) {
	depths, err := i.Depth(ctx)
	if err != nil {
		return nil, err
	}
	names := QueueNames()
	paused := make([]*goredis.IntCmd, len(names))
	counts := make([][][2]*goredis.StringCmd, len(names))
	today := time.Now().UTC().Truncate(24 * time.Hour)
	date := func(n int) time.Time { return today.AddDate(0, 0, n-days+1) }
	_, err = i.redis.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for q, name := range names {
			key := "asynq:{" + name + "}:"
			paused[q], counts[q] = p.Exists(ctx, key+"paused"), make([][2]*goredis.StringCmd, days)
			for n := range days {
				on := date(n).Format(time.DateOnly)
				counts[q][n] = [2]*goredis.StringCmd{p.Get(ctx, key+"processed:"+on), p.Get(ctx, key+"failed:"+on)}
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, away("read queues", err)
	}
	list := make([]staffview.Queue, len(names))
	for q, d := range depths {
		list[q] = staffview.Queue{Name: d.Queue, Paused: paused[q].Val() > 0, Latency: d.Oldest, Days: make([]staffview.Day, days),
			Sizes: map[staffview.State]int64{staffview.Pending: int64(d.Pending), staffview.Active: int64(d.Active), staffview.Scheduled: int64(d.Scheduled),
				staffview.Retry: int64(d.Retry), staffview.Archived: int64(d.Archived)}}
		for n := range days {
			processed, _ := counts[q][n][0].Int64() // a day without the key had none
			failed, _ := counts[q][n][1].Int64()
			list[q].Days[n] = staffview.Day{Date: date(n), Processed: processed, Failed: failed}
		}
	}
	return list, nil
}

// Tasks returns a page of the tasks of a queue in a state.
func (i *Inspector) Tasks(ctx context.Context, name string, state staffview.State, page, size int) ([]staffview.Task, error) {
	list := map[staffview.State]func(string, ...queue.ListOption) ([]*queue.TaskInfo, error){
		staffview.Pending: i.inspector.ListPendingTasks, staffview.Active: i.inspector.ListActiveTasks, staffview.Scheduled: i.inspector.ListScheduledTasks,
		staffview.Retry: i.inspector.ListRetryTasks, staffview.Archived: i.inspector.ListArchivedTasks}[state]
	if list == nil || !slices.Contains(QueueNames(), name) {
		return nil, staffview.ErrNoQueue
	}
	if err := i.Register(ctx); err != nil {
		return nil, err
	}
	infos, err := list(name, queue.Page(page), queue.PageSize(size))
	if err != nil {
		return nil, i.refusal("list tasks", err)
	}
	tasks := make([]staffview.Task, len(infos))
	for n, info := range infos {
		tasks[n] = shown(info)
	}
	return tasks, nil
}

// Task returns one task.
func (i *Inspector) Task(ctx context.Context, name, id string) (staffview.Task, error) {
	if err := i.Register(ctx); err != nil {
		return staffview.Task{}, err
	}
	info, err := i.inspector.GetTaskInfo(name, id)
	if err != nil {
		return staffview.Task{}, i.refusal("read task", err)
	}
	return shown(info), nil
}

func shown(info *queue.TaskInfo) staffview.Task {
	t := staffview.Task{ID: info.ID, Name: info.Type, Queue: info.Queue, State: staffview.State(info.State.String()), Payload: showPayload("", info.Payload),
		Retried: info.Retried, MaxRetry: info.MaxRetry, LastError: strings.ToValidUTF8(info.LastErr, "?"), FailedAt: info.LastFailedAt}
	if t.State == staffview.Scheduled || t.State == staffview.Retry {
		t.Next = info.NextProcessAt
	}
	return t
}

// Pause stops or continues the execution of the queue's tasks.
func (i *Inspector) Pause(_ context.Context, name string, paused bool) error {
	set := i.inspector.UnpauseQueue
	if paused {
		set = i.inspector.PauseQueue
	}
	// Pausing a queue that is paused is the library's only refusal.
	if err := set(name); err != nil && !strings.Contains(err.Error(), "already paused") && !strings.Contains(err.Error(), "not paused") {
		return i.refusal("pause queue", err)
	}
	return nil
}

// Do takes a step with a task.
func (i *Inspector) Do(_ context.Context, name, id string, step staffview.Step) error {
	do := map[staffview.Step]func(queueName, id string) error{staffview.Run: i.inspector.RunTask, staffview.Archive: i.inspector.ArchiveTask, staffview.Delete: i.inspector.DeleteTask}[step]
	if do == nil {
		return staffview.ErrActive
	}
	if err := do(name, id); err != nil {
		return i.refusal(string(step)+" task", err)
	}
	return nil
}

// refusal translates the library's error for staff.
func (i *Inspector) refusal(doing string, err error) error {
	switch {
	case errors.Is(err, queue.ErrQueueNotFound):
		return staffview.ErrNoQueue
	case errors.Is(err, queue.ErrTaskNotFound):
		return staffview.ErrNoTask
	case strings.Contains(err.Error(), "FAILED_PRECONDITION"), strings.Contains(err.Error(), "already"), strings.Contains(err.Error(), "active state"):
		return staffview.ErrActive
	}
	return away(doing, err)
}

func away(doing string, err error) error { return fmt.Errorf("%s: %w: %w", doing, ErrUnavailable, err) }
