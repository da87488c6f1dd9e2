package asynq

import (
	"context"
	"fmt"
	"time"

	queue "github.com/hibiken/asynq"
)

// A Depth is how much one queue holds.
type Depth struct {
	Queue string
	// Pending tasks are due and wait for a worker; Oldest is how long the
	// first of them has waited.
	Pending int
	Oldest  time.Duration
	Active  int
	// Scheduled tasks wait for their instant, Retry ones for their next attempt.
	Scheduled, Retry int
	// Archived tasks failed for good.
	Archived int
}

// Depth returns every queue of the product in the order of [QueueNames]. It
// makes queues known first, so a metrics collector that calls it also heals
// an emptied Redis. It returns [ErrUnavailable] when Redis does not answer.
func (q *Queue) Depth(ctx context.Context) ([]Depth, error) {
	if err := q.Register(ctx); err != nil {
		return nil, err
	}
	names := QueueNames()
	depths := make([]Depth, len(names))
	for i, name := range names {
		info, err := q.inspector.GetQueueInfo(name)
		if err != nil {
			return nil, fmt.Errorf("depth of queue %s: %w: %w", name, ErrUnavailable, err)
		}
		depths[i] = Depth{Queue: name, Pending: info.Pending, Oldest: info.Latency, Active: info.Active,
			Scheduled: info.Scheduled, Retry: info.Retry, Archived: info.Archived}
	}
	return depths, nil
}

// PruneArchive deletes archived tasks that failed longer than olderThan ago
// and returns how many. It must run now and then: once thousands of entries
// reach the library's own age limit of 90 days, its clean-up script fails and
// the queue with it. Cut short by ctx it returns what it deleted so far.
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
