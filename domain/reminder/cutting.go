package reminder

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/task"
)

// readers is the number of goroutines that read parts ahead while earlier parts are stored.
const readers = 2

// cutting divides the users of a slot, or of another audience, into batches, stores them and
// wakes workers during the cutting.
type cutting struct {
	queue   Queue
	parts   []delivery.Range
	covered [delivery.Channels][]delivery.Range
	read    func(ctx context.Context, part delivery.Range) (Due, error)
	store   func(ctx context.Context, bs []NewBatch) ([]int64, error)
	// renew renews the right to cut, which lasts for lasting.
	renew   func(ctx context.Context) error
	lasting time.Duration
	// enter, if set, waits for a turn to read; release ends it.
	enter func(ctx context.Context) (release func(), err error)
}

// run returns how many users were found per channel, including users in existing batches. It
// renews the right to cut until it returns: storing batches extends the right too, but reading
// may take long, and if all users are in existing batches nothing is stored.
func (c cutting) run(ctx context.Context) (found [delivery.Channels]int64, err error) {
	err = delivery.Keep(ctx, c.lasting, c.renew, func(ctx context.Context) (err error) {
		found, err = c.cut(ctx)
		return err
	})
	return found, err
}

func (c cutting) cut(ctx context.Context) (found [delivery.Channels]int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.enter != nil {
		release, err := c.enter(ctx)
		if err != nil {
			return found, err
		}
		defer release()
	}
	var before woken
	for part := range c.readAhead(ctx) {
		if part.err != nil {
			return found, part.err
		}
		for i, ids := range part.due {
			found[i] += int64(len(ids))
		}
		if err := c.storeAll(ctx, part.due, &before); err != nil {
			return found, err
		}
	}
	return found, ctx.Err()
}

type readPart struct {
	due Due
	err error
}

// readAhead reads the parts with a bounded number of readers.
func (c cutting) readAhead(ctx context.Context) <-chan readPart {
	out := make(chan readPart)
	next := make(chan delivery.Range, len(c.parts))
	for _, p := range c.parts {
		next <- p
	}
	close(next)
	alive := make(chan struct{}, readers)
	for range readers {
		go func() {
			for p := range next {
				due, err := c.read(ctx, p)
				select {
				case out <- readPart{due, err}:
				case <-ctx.Done():
				}
				if ctx.Err() != nil {
					break // the results are no longer read
				}
			}
			alive <- struct{}{}
		}()
	}
	go func() {
		for range readers {
			<-alive
		}
		close(out)
	}()
	return out
}

// storeGroup is how many batches are stored by one statement.
const storeGroup = 50

// A woken worker drains its channel. So each of the first wokenEach batches has a task, enough
// for every worker, and after that only one batch in wokenEvery: busy workers find the other
// batches.
const (
	wokenEach  = 64
	wokenEvery = 8
)

// woken is how many parts of batches were stored per channel, see [delivery.Parts]. Parts are
// counted because a worker takes several small batches at a time.
type woken [delivery.Channels]int

// by reports whether a worker is woken for a new batch of so many parts.
func (w *woken) by(c delivery.Channel, parts int) bool {
	before := w[c]
	w[c] += parts
	step := delivery.BatchParts
	if before >= wokenEach*delivery.BatchParts {
		step *= wokenEvery
	}
	return (before+step-1)/step != (w[c]+step-1)/step
}

// storeAll stores the batches and wakes workers. before counts the parts that were stored
// earlier.
func (c cutting) storeAll(ctx context.Context, due Due, before *woken) error {
	var group []NewBatch
	flush := func() error {
		if len(group) == 0 {
			return nil
		}
		ids, err := c.store(ctx, group)
		if err != nil {
			return err
		}
		wake(ctx, c.queue, ids, func(i int) (delivery.Channel, int) { return group[i].Channel, delivery.BatchParts }, before)
		group = group[:0]
		return nil
	}
	for i, ids := range due {
		for _, users := range delivery.CutIntoBatches(ids, c.covered[i], delivery.BatchSize) {
			group = append(group, NewBatch{delivery.Channel(i), users})
			if len(group) == storeGroup {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// wake enqueues tasks for new batches. batch returns the channel and the parts of the batch with
// ids[i]; before counts the parts that were stored earlier. The id 0 means that the batch was not
// stored. An outage of the queue delays reminders but loses none: the sweep wakes workers.
func wake(ctx context.Context, queue Queue, ids []int64, batch func(i int) (c delivery.Channel, parts int), before *woken) {
	var tasks []task.Task
	for i, id := range ids {
		if id == 0 {
			continue
		}
		if c, parts := batch(i); before.by(c, parts) {
			tasks = append(tasks, task.Run(id, c.String(), 0, time.Time{}))
		}
	}
	_ = queue.Enqueue(ctx, tasks...)
}
