package campaign

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/pause"
	"dropbell/domain/segment"
	"dropbell/domain/task"
	"dropbell/domain/user"
)

// A Cut is the exclusive right to cut one campaign's audience.
type Cut struct {
	Campaign
	Token string
	// After is the last user that is stored already, Seq the number of the next message, and
	// People the number of stored users.
	After  user.ID
	Seq    int
	People int64
}

// An AudienceReader reads an audience in the order of user ids. Users who joined after the
// campaign started are left out.
type AudienceReader interface {
	// Next returns the next users, ascending, and in strangers the users among them of whom only
	// the id is known. It returns limit users, except at the end. It returns [ErrNoAudience] if
	// the audience does not exist any more.
	Next(ctx context.Context, limit int) (users, strangers []user.ID, err error)
}

// LaunchStore starts campaigns and stores their ranges; every write is fenced by
// the token of [Cut].
type LaunchStore interface {
	segment.TemplateStore
	SizeStore
	// Start makes a scheduled campaign running, with its event, if its start has come by the
	// database's clock. Before its start it returns the time left. In any other state it returns
	// [ErrNotStartable].
	Start(ctx context.Context, id int64) (wait time.Duration, err error)
	// BeginCut takes the lease to cut a started campaign. It returns
	// [ErrNotStartable] if another worker holds the lease.
	BeginCut(ctx context.Context, id int64, lasting time.Duration) (Cut, error)
	// Subject is [Store.Subject].
	Subject(ctx context.Context, c Campaign) (delivery.Subject, error)
	// KeepCut renews the right to cut. It returns [delivery.ErrLeaseLost] like Append.
	KeepCut(ctx context.Context, c Cut, lasting time.Duration) error
	// Audience returns a reader of the users who are not cut yet.
	Audience(c Cut) AudienceReader
	// Encode returns users, ascending, as a compressed set.
	Encode(users []user.ID) ([]byte, error)
	// Append stores messages, the batches of their ranges and the position of the cut in one
	// transaction. It returns [delivery.ErrLeaseLost] if another process has taken over or the
	// campaign was cancelled.
	Append(ctx context.Context, c Cut, ms []Message) error
	// Hold pauses a campaign that is being cut and stores the request for approval in ch. Cutting
	// continues once the request is approved. Hold returns [delivery.ErrLeaseLost] like Append.
	Hold(ctx context.Context, c Cut, ch Change) error
	// EndCut records that the whole audience is stored.
	EndCut(ctx context.Context, c Cut) error
	// Fail ends a campaign that cannot go on.
	Fail(ctx context.Context, id int64, reason string) error
	// Due returns in start the waiting campaigns that should have started longer ago than grace,
	// and in cut the campaigns whose cutting was abandoned.
	Due(ctx context.Context, grace time.Duration, limit int) (start, cut []int64, err error)
	// StoreLeft makes batches of messages that version 0.1.0 cut and left without batches for
	// longer than grace. It returns the channels of their campaigns.
	StoreLeft(ctx context.Context, grace time.Duration, limit int) ([]delivery.Channel, error)
	// Settle finishes campaigns in which each recipient has an outcome, samples the progress of
	// the other campaigns, and releases the batches of paused campaigns whose end has passed.
	Settle(ctx context.Context) (int, error)
}

// Queue holds timers and tasks.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
}

// Launcher starts campaigns and cuts their audiences.
type Launcher struct {
	Store LaunchStore
	Queue Queue
	Now   func() time.Time
	// LeaseFor is how long a silent process keeps the right to cut.
	LeaseFor time.Duration
	DropPage DropPage
}

// Schedule queues the timer of a published campaign.
func (l *Launcher) Schedule(ctx context.Context, e event.Campaign) error {
	return l.Queue.Enqueue(ctx, task.Start(e.CampaignID, e.StartsAt))
}

// longestWait is how much too early a timer may wake and still stay awake.
const longestWait = 3 * time.Second

// Start starts a campaign. It returns nil if there was nothing to do.
func (l *Launcher) Start(ctx context.Context, id int64) error {
	for {
		wait, err := l.Store.Start(ctx, id)
		switch {
		case errors.Is(err, ErrNotStartable):
			return nil
		case err != nil || wait <= 0:
			return err
		case wait > longestWait: // a clock is wrong or the timer is stale
			return l.Queue.Enqueue(ctx, task.Start(id, l.Now().Add(wait)).Again(strconv.FormatInt(l.Now().Unix(), 10)))
		}
		if !pause.For(ctx, wait) {
			return ctx.Err()
		}
	}
}

// pageSize is how many users are read at a time. It is a multiple of [delivery.BatchSize], so
// that only the last range of an audience is short.
const pageSize = 100 * delivery.BatchSize

// Cut divides a started campaign's audience into ranges, stores their batches and wakes the
// channel's workers. It returns nil if there is nothing to do: the campaign is cut already, cancelled, or being cut by
// another worker. After a crash the next worker continues after the last stored message.
func (l *Launcher) Cut(ctx context.Context, id int64) error {
	cut, err := l.Store.BeginCut(ctx, id, l.LeaseFor)
	if errors.Is(err, ErrNotStartable) {
		return nil
	}
	if err != nil {
		return err
	}
	// Reading a page of an audience can take longer than the right to cut lasts: the few members
	// of a segment may have to be found among millions of users.
	renew := func(ctx context.Context) error { return l.Store.KeepCut(ctx, cut, l.LeaseFor) }
	err = delivery.Keep(ctx, l.LeaseFor, renew, func(ctx context.Context) error { return l.cut(ctx, cut) })
	switch {
	case errors.Is(err, errHeld):
		return nil // continues once it is approved
	case errors.Is(err, delivery.ErrLeaseLost):
		return nil // the process that took over finishes
	case errors.Is(err, ErrNoAudience), errors.Is(err, ErrRangeTooLarge), errors.Is(err, ErrOtherShop), errors.Is(err, ErrEmptyLink):
		return l.Store.Fail(ctx, id, fault.CodeOf(err))
	}
	return err
}

func (l *Launcher) cut(ctx context.Context, cut Cut) error {
	if err := l.checkOwn(ctx, cut); err != nil {
		return err
	}
	if err := l.checkLink(ctx, cut); err != nil {
		return err
	}
	allowed, err := l.checkSize(ctx, cut)
	if err != nil {
		return err
	}
	pages, stop := l.pages(ctx, cut)
	defer stop()
	for p := range pages {
		if p.err != nil {
			return p.err
		}
		if err := l.checkPage(ctx, cut, allowed, p.users); err != nil {
			return err
		}
		ms, err := messages(cut.Seq, Ranges(p.users, delivery.BatchSize), l.Store.Encode)
		if err != nil {
			return err
		}
		for i := range ms {
			ms[i].Strangers = between(p.strangers, ms[i].From, ms[i].To)
		}
		if err := l.Store.Append(ctx, cut, ms); err != nil {
			return err
		}
		cut.Seq, cut.People = cut.Seq+len(ms), cut.People+int64(len(p.users))
		// A queue that is away costs time, not messages: the sweep wakes workers.
		_ = l.Wake(ctx, cut.Channel, strconv.FormatInt(cut.ID, 10)+"-"+strconv.Itoa(cut.Seq))
	}
	if err := ctx.Err(); err != nil {
		return err // reading was broken off, which is not the end of the audience
	}
	return l.Store.EndCut(ctx, cut)
}

// A page is users of the audience, ascending, or why they cannot be read.
type page struct {
	users, strangers []user.ID
	err              error
}

// pages reads the users who are not stored yet, one page ahead of the caller. stop must be
// called; it waits for the reader.
func (l *Launcher) pages(ctx context.Context, cut Cut) (pages <-chan page, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan page)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(out)
		audience := l.Store.Audience(cut)
		for more := true; more; {
			var p page
			p.users, p.strangers, p.err = audience.Next(ctx, pageSize)
			if p.err == nil && len(p.users) == 0 {
				return
			}
			select {
			case out <- p:
			case <-ctx.Done():
				return
			}
			more = p.err == nil && len(p.users) == pageSize
		}
	})
	return out, func() {
		cancel()
		reading.Wait()
	}
}

// between returns the ids from first to last; ids are ascending.
func between(ids []user.ID, first, last user.ID) []user.ID {
	var in []user.ID
	for _, id := range ids {
		if id >= first && id <= last {
			in = append(in, id)
		}
	}
	return in
}

// wakers is how many workers are woken; each works until no batch is ready.
const wakers = 8

// Wake enqueues tasks that make workers of the channel look for batches. why is part of the
// tasks' keys, so that tasks of different occasions have different keys.
func (l *Launcher) Wake(ctx context.Context, c delivery.Channel, why string) error {
	tasks := make([]task.Task, wakers)
	for i := range tasks {
		tasks[i] = task.Wake(c.String(), i, why)
	}
	return l.Queue.Enqueue(ctx, tasks...)
}

// Graces of the sweep.
const (
	startGrace = 1500 * time.Millisecond
	leftGrace  = 5 * time.Second // a worker of version 0.1.0 may still be storing the message
	sweepLimit = 100
	leftLimit  = 20
)

// Sweep finds in PostgreSQL the work that the queue has missed. It depends on nothing in Redis.
func (l *Launcher) Sweep(ctx context.Context) error {
	start, cut, err := l.Store.Due(ctx, startGrace, sweepLimit)
	if err != nil {
		return err
	}
	if _, err := l.Store.Settle(ctx); err != nil {
		return err
	}
	left, err := l.Store.StoreLeft(ctx, leftGrace, leftLimit)
	if err != nil {
		return err
	}
	bucket := strconv.FormatInt(l.Now().Unix()/5, 10)
	for _, c := range left {
		if err := l.Wake(ctx, c, "left-"+bucket); err != nil {
			return err
		}
	}
	var tasks []task.Task
	for _, id := range start {
		// A key of its own: the lost timer's id may be taken by a dead worker.
		tasks = append(tasks, task.Start(id, time.Time{}).Again(bucket))
	}
	for _, id := range cut {
		tasks = append(tasks, task.Cut(id).Again(bucket))
	}
	return l.Queue.Enqueue(ctx, tasks...)
}
