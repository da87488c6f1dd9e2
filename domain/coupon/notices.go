package coupon

import (
	"context"
	"errors"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// NoticeHour is the hour of the reader's day at which notices go out.
const NoticeHour = 10

// A Notice informs a user that coupons of a template expire.
type Notice struct {
	UserID     user.ID
	TemplateID int64
	Day        time.Time // midnight UTC of the date in the reader's zone on which it is sent
	Days       int       // so many days before the expiry
	DueAt      time.Time
	ExpiresAt  time.Time // of the last of these coupons
}

// A Fresh coupon is one whose notices are not planned yet.
type Fresh struct {
	ID         int64
	TemplateID int64
	UserID     user.ID
	IssuedAt   time.Time
	ExpiresAt  time.Time
	Days       template.NoticeDays
	// HoldOut is the percentage of the users with a reservation who get no message about the drop;
	// 0 if the owner has no reservation. See [delivery.HeldOutOfDrop].
	HoldOut  int
	Timezone string // the user's, or else the shop's
	Quiet    user.QuietHours
}

// Notices returns the notices to the coupon's owner, one per day in Days. A notice
// is sent at 10:00 in the owner's zone, or at the end of quiet hours that cover
// 10:00. Notices before the issue or after the expiry are left out. Days are
// counted back from the last date on which the coupon is valid; a coupon that
// expires at midnight is last valid on the day before. A held-out owner gets none.
func (f Fresh) Notices() []Notice {
	if delivery.HeldOutOfDrop(f.TemplateID, f.HoldOut, f.UserID) {
		return nil
	}
	owner := user.User{Timezone: f.Timezone, Quiet: f.Quiet}
	zone := owner.Zone()
	last := f.ExpiresAt.Add(-time.Nanosecond).In(zone)
	var list []Notice
	for _, days := range f.Days.List() {
		due := time.Date(last.Year(), last.Month(), last.Day()-days, NoticeHour, 0, 0, 0, zone)
		if until, asleep := owner.Sleeps(due); asleep {
			due = until
		}
		if due.Before(f.IssuedAt) || !due.Before(f.ExpiresAt) {
			continue
		}
		list = append(list, Notice{UserID: f.UserID, TemplateID: f.TemplateID, Days: days, DueAt: due.UTC(), ExpiresAt: f.ExpiresAt,
			Day: time.Date(last.Year(), last.Month(), last.Day()-days, 0, 0, 0, 0, time.UTC)})
	}
	return list
}

// Plan returns the notices of all the coupons, one for each user, template
// and day.
func Plan(fresh []Fresh) []Notice {
	type key struct {
		user     user.ID
		template int64
		day      time.Time
	}
	at := map[key]int{}
	var list []Notice
	for _, f := range fresh {
		for _, n := range f.Notices() {
			k := key{n.UserID, n.TemplateID, n.Day}
			i, known := at[k]
			if !known {
				at[k] = len(list)
				list = append(list, n)
			} else if n.ExpiresAt.After(list[i].ExpiresAt) {
				list[i].ExpiresAt = n.ExpiresAt
			}
		}
	}
	return list
}

// A CutBatch is a stored batch that waits for its channel's workers.
type CutBatch struct {
	ID      int64
	Channel delivery.Channel
}

// NoticeStore keeps notices.
type NoticeStore interface {
	// FreshCoupons returns coupons after the cursor whose notices can be planned:
	// each of them, and every coupon with a smaller id, is committed. from is the
	// cursor; to is its value once these coupons are planned. from == to means that
	// there is nothing to plan.
	FreshCoupons(ctx context.Context, limit int) (list []Fresh, from, to int64, err error)
	// StoreNotices stores the plan and moves the cursor from from to to. It returns
	// [ErrRaced] if the cursor is not at from any more. A notice that is planned
	// already stays unchanged.
	StoreNotices(ctx context.Context, from, to int64, plan []Notice) error
	// CutNotices takes up to limit due notices, stores batches for them in one
	// transaction, and returns how many notices it took. It drops notices whose
	// coupons are gone.
	CutNotices(ctx context.Context, limit int) ([]CutBatch, int, error)
	// FinishedRuns returns runs whose batches are all done and whose notices have
	// no outcome yet.
	FinishedRuns(ctx context.Context, limit int) ([]int64, error)
	// SettleNotices stores the outcomes of a run's notices. A run whose batches
	// are not all done is left alone.
	SettleNotices(ctx context.Context, run int64) error
	// SleepingRuns returns unsettled runs whose unfinished batches are deferred,
	// and whose notices lack outcomes of messages that were sent.
	SleepingRuns(ctx context.Context, limit int) ([]int64, error)
	// NoteReached stores which notices of a run were sent so far. A settled run
	// is left alone.
	NoteReached(ctx context.Context, run int64) error
}

// Queue wakes workers.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
}

// Announcer plans and sends the notices before coupons expire. Any number of
// processes may.
type Announcer struct {
	Store NoticeStore
	Queue Queue
}

const (
	planChunk = 5000 // coupons whose notices are stored at once
	cutChunk  = 5000 // notices cut at once, into batches of a thousand
)

// Sweep plans notices for new coupons, cuts due notices into batches and settles
// finished runs. It may stop and begin anew at any point.
func (a *Announcer) Sweep(ctx context.Context) error {
	return errors.Join(a.plan(ctx), a.cut(ctx), a.settle(ctx))
}

func (a *Announcer) plan(ctx context.Context) error {
	for ctx.Err() == nil {
		fresh, from, to, err := a.Store.FreshCoupons(ctx, planChunk)
		if err != nil || from == to {
			return err
		}
		writing, cancel := detach.Context(ctx)
		err = a.Store.StoreNotices(writing, from, to, Plan(fresh))
		cancel()
		if errors.Is(err, ErrRaced) {
			return nil // another worker has it
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (a *Announcer) cut(ctx context.Context) error {
	for ctx.Err() == nil {
		writing, cancel := detach.Context(ctx)
		batches, n, err := a.Store.CutNotices(writing, cutChunk)
		cancel()
		if err != nil || n == 0 {
			return err
		}
		tasks := make([]task.Task, len(batches))
		for i, b := range batches {
			tasks[i] = task.Run(b.ID, b.Channel.String(), 0, time.Time{})
		}
		// A queue that is away costs time only: the sweep wakes workers.
		_ = a.Queue.Enqueue(ctx, tasks...)
	}
	return ctx.Err()
}

func (a *Announcer) settle(ctx context.Context) error {
	return errors.Join(each(ctx, a.Store.FinishedRuns, a.Store.SettleNotices), each(ctx, a.Store.SleepingRuns, a.Store.NoteReached))
}

// each calls do for everything that find returns until find returns nothing.
func each(ctx context.Context, find func(context.Context, int) ([]int64, error), do func(context.Context, int64) error) error {
	for ctx.Err() == nil {
		runs, err := find(ctx, 100)
		if err != nil || len(runs) == 0 {
			return err
		}
		for _, run := range runs {
			writing, cancel := detach.Context(ctx)
			err := do(writing, run)
			cancel()
			if err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// Readers are the facts about the recipients of a notice that are needed before it
// is sent. Several calls read a Readers at a time; it is never changed.
type Readers struct {
	// Quiet are the users who have quiet hours now, with their time zone, or the
	// shop's time zone if theirs is not known.
	Quiet map[user.ID]user.User
	// Done are the users who no longer have such a coupon.
	Done map[user.ID]bool
}

// ReaderStore reads the preferences and coupons of the recipients of notices.
type ReaderStore interface {
	// Readers loads the facts about users who are recipients of the run.
	Readers(ctx context.Context, run int64, users []user.ID) (Readers, error)
}

// Guard is the [delivery.Guard] of [delivery.KindNotice]. It defers notices to
// users in their quiet hours, also if the quiet hours changed after the notice was
// planned, and skips users who have used the coupon since.
type Guard struct{ Store ReaderStore }

// Screen checks the recipients that remain.
func (g Guard) Screen(ctx context.Context, b *delivery.Batch) (delivery.Screen, error) {
	readers, err := g.Store.Readers(ctx, b.Owner, b.Left)
	return screen{readers, g.Store, b.Owner, b.Now}, err
}

// screen is the screen of one lease.
type screen struct {
	Readers
	store ReaderStore
	run   int64
	at    time.Time // Readers are no older
}

// readersFor is the greatest age of Readers when notices are sent.
const readersFor = 500 * time.Millisecond

// Before is Check with Readers no older than readersFor.
func (s screen) Before(ctx context.Context, ids []user.ID, now time.Time) ([]delivery.Screening, error) {
	readers := s.Readers
	if now.Sub(s.at) > readersFor {
		var err error
		if readers, err = s.store.Readers(ctx, s.run, ids); err != nil {
			return nil, err
		}
	}
	return readers.Check(ids, now), nil
}

// Check skips recipients whose notice became unnecessary, and defers those in
// quiet hours.
func (r Readers) Check(ids []user.ID, now time.Time) []delivery.Screening {
	var list []delivery.Screening
	for _, id := range ids {
		if r.Done[id] {
			list = append(list, delivery.Screening{UserID: id, Reason: delivery.ReasonCouponGone})
		} else if until, asleep := r.Quiet[id].Sleeps(now); asleep {
			list = append(list, delivery.Screening{UserID: id, Reason: delivery.ReasonQuietHours, Until: until})
		}
	}
	return list
}
