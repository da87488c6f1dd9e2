package asynq

import (
	"context"
	"errors"
	"fmt"
	"time"

	queue "github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"
)

// A Depth is the number of tasks in one queue, by state.
type Depth struct {
	Queue string
	// Pending tasks are due and wait for a worker; Oldest is how long the first of these tasks
	// has waited.
	Pending int
	Oldest  time.Duration
	Active  int
	// Scheduled tasks wait for their instant, Retry tasks for their next attempt.
	Scheduled, Retry int
	// Archived tasks failed for good.
	Archived int
}

// Depth returns the depth of every queue of the product in the order of [QueueNames]. It first
// registers the queues, so a metrics collector that calls Depth also repairs an emptied Redis.
// It returns [ErrUnavailable] when Redis does not answer.
func (q *Queue) Depth(ctx context.Context) ([]Depth, error) {
	if err := q.Register(ctx); err != nil {
		return nil, err
	}
	depths, err := q.count(ctx, QueueNames())
	if err != nil {
		return nil, fmt.Errorf("depth of queues: %w: %w", ErrUnavailable, err)
	}
	return depths, nil
}

// count reads the library's lists and sets directly. The library's inspector also measures the
// memory of tasks, with some thirty calls per queue.
func (q *Queue) count(ctx context.Context, names []string) ([]Depth, error) {
	sizes := make([][5]*goredis.IntCmd, len(names))
	oldest := make([]*goredis.StringCmd, len(names))
	_, err := q.redis.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, name := range names {
			key := func(state string) string { return "asynq:{" + name + "}:" + state }
			sizes[i] = [5]*goredis.IntCmd{p.LLen(ctx, key("pending")), p.LLen(ctx, key("active")),
				p.ZCard(ctx, key("scheduled")), p.ZCard(ctx, key("retry")), p.ZCard(ctx, key("archived"))}
			oldest[i] = p.LIndex(ctx, key("pending"), -1)
		}
		return nil
	})
	if err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	depths := make([]Depth, len(names))
	for i, name := range names {
		for _, size := range sizes[i] {
			if err := size.Err(); err != nil {
				return nil, err
			}
		}
		n := func(state int) int { return int(sizes[i][state].Val()) }
		depths[i] = Depth{Queue: name, Pending: n(0), Active: n(1), Scheduled: n(2), Retry: n(3), Archived: n(4)}
		if id := oldest[i].Val(); id != "" {
			if depths[i].Oldest, err = q.waited(ctx, name, id); err != nil {
				return nil, err
			}
		}
	}
	return depths, nil
}

// waited returns how long a pending task has been pending, 0 if it is not any more.
func (q *Queue) waited(ctx context.Context, name, id string) (time.Duration, error) {
	since, err := q.redis.HGet(ctx, "asynq:{"+name+"}:t:"+id, "pending_since").Int64()
	if errors.Is(err, goredis.Nil) {
		return 0, nil
	}
	return max(0, time.Since(time.Unix(0, since))), err
}

// PruneArchive deletes archived tasks that failed longer than olderThan ago and returns their
// number. It must run now and then: once thousands of entries reach the library's own age limit
// of 90 days, the library's clean-up script fails, and the queue fails with it. When ctx ends
// early, PruneArchive returns the number deleted so far.
func (q *Queue) PruneArchive(ctx context.Context, olderThan time.Duration) (int, error) {
	if err := q.Register(ctx); err != nil {
		return 0, err
	}
	total, before := 0, time.Now().Add(-olderThan)
	for _, name := range QueueNames() {
		n, err := q.pruneQueue(ctx, name, before)
		total += n
		if err != nil {
			return total, fmt.Errorf("prune archive of %s: %w: %w", name, ErrUnavailable, err)
		}
	}
	return total, nil
}

func (q *Queue) pruneQueue(ctx context.Context, name string, before time.Time) (int, error) {
	deleted := 0
	for ctx.Err() == nil {
		// Archived tasks are listed oldest first, so the first page suffices.
		page, err := q.inspector.ListArchivedTasks(name, queue.PageSize(200))
		if err != nil {
			return deleted, err
		}
		n, err := q.deleteBefore(name, page, before)
		deleted += n
		if err != nil || n < len(page) || n == 0 {
			return deleted, err
		}
	}
	return deleted, ctx.Err()
}

func (q *Queue) deleteBefore(name string, page []*queue.TaskInfo, before time.Time) (int, error) {
	for i, info := range page {
		if !info.LastFailedAt.Before(before) {
			return i, nil
		}
		if err := q.inspector.DeleteTask(name, info.ID); err != nil && !absent(err) {
			return i, err
		}
	}
	return len(page), nil
}
