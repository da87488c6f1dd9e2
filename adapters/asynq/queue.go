// Package asynq runs tasks on the queue library of the same name. The queue only
// executes: the state of all work is in PostgreSQL, so that an emptied Redis, a
// task that ran twice or a lost archive costs time, not work.
package asynq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/task"
	"dropbell/killpoint"

	queue "github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// ErrUnavailable is returned when Redis does not answer.
var ErrUnavailable = fault.New(fault.Unavailable, "overloaded", "the queue is not reachable; try again in a moment").Told("fault.redis_away")

const (
	// parallelCalls is how many tasks one Enqueue or Remove sends at a time; the library has no
	// pipelined call.
	parallelCalls  = 32
	maxRetry       = 5
	defaultTimeout = time.Minute
	// registryKey is the library's set of known queues. Without its entry a
	// queue works but can be neither inspected nor deleted from.
	registryKey = "asynq:queues"
)

// A Queue puts tasks into Redis and takes them out again. It is safe for
// concurrent use.
type Queue struct {
	redis     goredis.UniversalClient
	client    *queue.Client
	inspector *queue.Inspector
	logger    *slog.Logger
}

// NewQueue returns a queue on the Redis at redisURL (several addresses
// separated by commas mean a cluster). It does not connect yet.
func NewQueue(redisURL string, logger *slog.Logger) (*Queue, error) {
	client, err := redisclient.New(redisURL, parallelCalls)
	if err != nil {
		return nil, err
	}
	return &Queue{redis: client, client: queue.NewClientFromRedisClient(client),
		inspector: queue.NewInspectorFromRedisClient(client), logger: logger}, nil
}

// QueueNames returns every queue of the product, timers first.
func QueueNames() []string {
	names := []string{task.TimerQueue}
	for _, channel := range delivery.AllChannels() {
		names = append(names, task.ChannelQueue(channel.String()))
	}
	return append(names, task.CodeQueue, task.JobQueue, task.HookQueue, task.HouseQueue)
}

// Close frees the connections.
func (q *Queue) Close() error { return q.redis.Close() }

// Enqueue makes every task run once it is due. A task that waits or runs already counts as
// queued, even if the worker that ran it has died: asynq gives such a task to another worker
// within two minutes. A caller that cannot wait two minutes must use another key. A task whose
// retries are used up is queued again.
//
// On error some of the tasks may have been queued; calling Enqueue again is safe. Enqueue
// returns [ErrUnavailable] when Redis does not answer.
func (q *Queue) Enqueue(ctx context.Context, tasks ...task.Task) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelCalls)
	for _, t := range tasks {
		group.Go(func() error { return q.enqueue(ctx, t) })
	}
	return group.Wait()
}

func (q *Queue) enqueue(ctx context.Context, t task.Task) error {
	payload, err := json.Marshal(t.Payload)
	if err != nil {
		return fmt.Errorf("payload of task %s: %w", t.ID(), err)
	}
	entry, options := queue.NewTaskWithHeaders(t.Name, payload, traceOf(ctx, t)), optionsOf(t, time.Now())
	err = killpoint.Around("tasks.enqueue", func() error {
		_, err := q.client.EnqueueContext(ctx, entry, options...)
		return err
	})
	if !alreadyThere(err) {
		return q.failed("enqueue", t, err)
	}
	if gone, err := q.clearFinished(ctx, t); err != nil || !gone {
		return q.failed("revive", t, err)
	}
	_, err = q.client.EnqueueContext(ctx, entry, options...)
	if alreadyThere(err) {
		return nil
	}
	return q.failed("enqueue", t, err)
}

func alreadyThere(err error) bool {
	return errors.Is(err, queue.ErrTaskIDConflict) || errors.Is(err, queue.ErrDuplicateTask)
}

func optionsOf(t task.Task, now time.Time) []queue.Option {
	options := []queue.Option{queue.Queue(t.Queue), queue.TaskID(t.ID()), queue.MaxRetry(maxRetry),
		queue.Timeout(wholeSeconds(t.Timeout))}
	if t.At.After(now) {
		options = append(options, queue.ProcessAt(roundUp(t.At)))
	}
	return options
}

// wholeSeconds rounds up, because the library truncates a time-out to whole seconds and replaces
// zero by half an hour.
func wholeSeconds(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return defaultTimeout
	}
	return (timeout + time.Second - 1).Truncate(time.Second)
}

// roundUp returns the first whole second that is not before at. The library truncates instants
// to whole seconds, which would run a task up to 1 s early.
func roundUp(at time.Time) time.Time {
	whole := at.Truncate(time.Second)
	if whole.Before(at) {
		whole = whole.Add(time.Second)
	}
	return whole
}

// clearFinished removes the record of a finished execution (an archived failure keeps its id
// taken) and reports whether the id is free now.
func (q *Queue) clearFinished(ctx context.Context, t task.Task) (bool, error) {
	if err := q.register(ctx, t.Queue); err != nil {
		return false, err
	}
	info, err := q.inspector.GetTaskInfo(t.Queue, t.ID())
	if absent(err) {
		return true, nil
	}
	if err != nil || (info.State != queue.TaskStateArchived && info.State != queue.TaskStateCompleted) {
		return false, err
	}
	q.logger.WarnContext(ctx, "reviving a task whose retries were used up", "task", t.ID(), "queue", t.Queue)
	if err := q.inspector.DeleteTask(t.Queue, t.ID()); err != nil && !absent(err) {
		return false, err
	}
	return true, nil
}

// Remove takes tasks out of the queue. Absent tasks and running tasks are no error. Running
// tasks continue, so a handler must check itself whether its work is still wanted. Remove
// returns [ErrUnavailable] when Redis does not answer; calling Remove again is safe.
func (q *Queue) Remove(ctx context.Context, tasks ...task.Task) error {
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = t.Queue
	}
	if err := q.register(ctx, names...); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelCalls)
	for _, t := range tasks {
		group.Go(func() error { return q.remove(ctx, t) })
	}
	return group.Wait()
}

func (q *Queue) remove(ctx context.Context, t task.Task) error {
	// The inspector takes no context.
	if err := ctx.Err(); err != nil {
		return err
	}
	err := q.inspector.DeleteTask(t.Queue, t.ID())
	if err == nil || absent(err) {
		return nil
	}
	// Refusing an active task has no error value of its own.
	info, infoErr := q.inspector.GetTaskInfo(t.Queue, t.ID())
	if absent(infoErr) || (infoErr == nil && info.State == queue.TaskStateActive) {
		return nil
	}
	return q.failed("remove", t, err)
}

func absent(err error) bool {
	return errors.Is(err, queue.ErrTaskNotFound) || errors.Is(err, queue.ErrQueueNotFound)
}

func (q *Queue) failed(what string, t task.Task, err error) error {
	if err == nil {
		return nil
	}
	if _, isFault := errors.AsType[*fault.Fault](err); isFault {
		return err
	}
	return fmt.Errorf("%s %s: %w: %w", what, t.ID(), ErrUnavailable, err)
}

// Register registers all queues again after Redis came back empty: the library's clients
// register a queue once per process only. Call Register now and then; a call costs one round
// trip. Register returns [ErrUnavailable] when Redis does not answer.
func (q *Queue) Register(ctx context.Context) error { return q.register(ctx, QueueNames()...) }

func (q *Queue) register(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	members := make([]any, len(names))
	for i, name := range names {
		members[i] = name
	}
	if err := q.redis.SAdd(ctx, registryKey, members...).Err(); err != nil {
		return fmt.Errorf("register queues: %w: %w", ErrUnavailable, err)
	}
	return nil
}
