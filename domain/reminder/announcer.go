package reminder

import (
	"context"
	"errors"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/task"
)

// AnnouncementCut is the exclusive right to cut one announcement's batches.
type AnnouncementCut struct {
	Announcement
	Token   string
	Covered [delivery.Channels][]delivery.Range // as in [Cut]
	Parts   []delivery.Range
}

// AnnouncingStore cuts announcements into batches. Its tokens and leases work as in
// [FiringStore].
type AnnouncingStore interface {
	// BeginAnnouncing takes the lease of a waiting announcement, or of an announcement whose
	// cutting was abandoned. It returns [ErrNotFirable] in any other state, and while the
	// messages that the announcement corrects are still being sent.
	BeginAnnouncing(ctx context.Context, id int64, lasting time.Duration) (AnnouncementCut, error)
	ReadAudience(ctx context.Context, c AnnouncementCut, part delivery.Range) (Due, error)
	StoreAnnouncementBatches(ctx context.Context, c AnnouncementCut, bs []NewBatch) ([]int64, error)
	KeepAnnouncing(ctx context.Context, c AnnouncementCut, lasting time.Duration) error
	EndAnnouncing(ctx context.Context, c AnnouncementCut) error
	// DueAnnouncements returns announcements that BeginAnnouncing would lease and that were
	// created longer ago than grace.
	DueAnnouncements(ctx context.Context, grace time.Duration, limit int) ([]int64, error)
	// FinishAnnouncements finishes announcements whose batches are all done.
	FinishAnnouncements(ctx context.Context) (int, error)
}

// Announcer cuts announcements into batches, which the ordinary workers deliver.
type Announcer struct {
	Store AnnouncingStore
	Queue Queue
	Now   func() time.Time
	// LeaseFor is how long a silent process keeps the right to cut.
	LeaseFor time.Duration
}

// Cut cuts one announcement into batches. It returns nil if there is nothing to do: the
// announcement is cut already, stopped, not yet possible, or being cut by another worker.
func (x *Announcer) Cut(ctx context.Context, id int64) error {
	cut, err := x.Store.BeginAnnouncing(ctx, id, x.LeaseFor)
	if errors.Is(err, ErrNotFirable) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = cutting{queue: x.Queue, parts: cut.Parts, covered: cut.Covered, lasting: x.LeaseFor,
		read: func(ctx context.Context, part delivery.Range) (Due, error) {
			return x.Store.ReadAudience(ctx, cut, part)
		},
		store: func(ctx context.Context, bs []NewBatch) ([]int64, error) {
			return x.Store.StoreAnnouncementBatches(ctx, cut, bs)
		},
		renew: func(ctx context.Context) error { return x.Store.KeepAnnouncing(ctx, cut, x.LeaseFor) },
	}.run(ctx)
	if errors.Is(err, delivery.ErrLeaseLost) {
		return nil // the worker that took over finishes
	}
	if err != nil {
		return err
	}
	return x.Store.EndAnnouncing(ctx, cut)
}

// Sweep queues announcements whose event did not queue them, and finishes announcements whose
// batches are all done. It depends on nothing in the queue.
func (x *Announcer) Sweep(ctx context.Context) error {
	due, err := x.Store.DueAnnouncements(ctx, sweepGrace, 100)
	if err != nil {
		return err
	}
	var tasks []task.Task
	for _, id := range due {
		tasks = append(tasks, task.Announce(id).Again(bucket(x.Now(), 5*time.Second)))
	}
	if _, err := x.Store.FinishAnnouncements(ctx); err != nil {
		return err
	}
	return x.Queue.Enqueue(ctx, tasks...)
}
