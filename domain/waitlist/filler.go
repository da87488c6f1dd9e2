package waitlist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A Candidate is a waiting user whose turn it is, with the facts that decide about a coupon.
type Candidate struct {
	UserID   user.ID
	Channels delivery.ChannelSet
	Coupons  int // that the user has of the drop
	// TakenBack is set if a coupon of the drop was taken from the user and returned to the stock.
	TakenBack bool
	Erased    bool
	Door      int // see [Waiter]
}

// ReasonTakenBack is why a user is skipped from whom a coupon of the drop was taken: the returned
// coupon goes to other users.
const ReasonTakenBack = "taken_back"

// ReasonOver is why users are skipped who still wait when the drop gives no more coupons.
const ReasonOver = "ended"

// Unfit returns the reason why the user can get no coupon of t, or "".
func (c Candidate) Unfit(t template.Template) string {
	switch {
	case c.Erased:
		return user.ErrErased.Code
	case c.TakenBack:
		return ReasonTakenBack
	case c.Coupons >= t.LimitFor(c.Door):
		return claim.ErrLimit.Code
	}
	return ""
}

// Turn decides whether the user gets a coupon. It returns the reason why the user is skipped; "" =
// the user gets one. decider knows the drop, and issues the coupon.
func Turn(decider *claim.Decider, r claim.Request, c Candidate) (claim.Verdict, string) {
	if why := c.Unfit(decider.Templates[r.TemplateID]); why != "" {
		return claim.Verdict{}, why
	}
	r.Door = c.Door
	decider.Counts[claim.Holder{TemplateID: r.TemplateID, UserID: r.UserID}] = c.Coupons
	v := decider.Decide(r)
	if v.Err != nil {
		return v, fault.CodeOf(v.Err)
	}
	return v, ""
}

// Key returns the key of the coupon that the waitlist of the drop gives to the user: at most one.
func Key(templateID int64, to user.ID) string { return fmt.Sprintf("%d:%d", templateID, to) }

// Gives reports whether waiting users of t can get coupons at now, and whether that is over for good.
func Gives(t template.Template, now time.Time) (gives, over bool) {
	over = !now.Before(GivesUntil(t)) || t.Stored == template.Closed || t.Stored == template.Cancelled
	return !over && t.Stored == template.Published && !now.Before(t.OpensAt), over
}

// A Filling is the result of one transaction of the filler.
type Filling struct {
	Filled, Skipped int
	// Offered and Lapsed are the offers that were made and those that were not accepted in time.
	Offered, Lapsed int
	// Released is the stock that went back on sale, since no user waits or the drop gives no more.
	Released int64
	// Batches are the stored messages to the users who got a coupon.
	Batches []Batch
	// More is set if another transaction would find something to do.
	More bool
}

// A Batch is a stored batch of messages that waits for its channel's workers.
type Batch struct {
	ID      int64
	Channel delivery.Channel
}

// FillStore is where the filler works.
type FillStore interface {
	// Unfilled returns templates after the given one, in order, that hold stock for users who wait,
	// and drops that are over and whose waitlists are not settled.
	Unfilled(ctx context.Context, after int64, limit int) ([]int64, error)
	// Fill gives up to limit users their coupons, in one transaction, with the messages about them.
	// Concurrent calls for one template wait for each other.
	Fill(ctx context.Context, templateID int64, limit int) (Filling, error)
}

// Queue wakes workers.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
}

// A Filler gives stock that is kept for users who wait to these users. Any number of processes may
// run one. It may stop and begin anew at any point.
type Filler struct {
	Store FillStore
	Queue Queue
	// Done, if set, is called after each transaction.
	Done func(templateID int64, f Filling)
}

const (
	// fillAtOnce is how many users one transaction gives a coupon. The template's claims wait for
	// the transaction.
	fillAtOnce = 1000
	// fillTurn is how many transactions a template has before the next template's turn.
	fillTurn  = 10
	fillsPage = 100
)

// Sweep gives all stock that is kept to the users who are next. After a failure it goes on with the
// next template.
func (f *Filler) Sweep(ctx context.Context) error {
	var errs []error
	for after := int64(0); ctx.Err() == nil; {
		ids, err := f.Store.Unfilled(ctx, after, fillsPage)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		more := false
		for _, id := range ids {
			again, err := f.fill(ctx, id)
			errs, more = append(errs, err), more || again
		}
		switch {
		case len(ids) == fillsPage:
			after = ids[len(ids)-1]
		case more:
			after = 0
		default:
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// fill reports whether the template needs another turn.
func (f *Filler) fill(ctx context.Context, id int64) (more bool, err error) {
	for range fillTurn {
		writing, cancel := detach.Context(ctx)
		filling, err := f.Store.Fill(writing, id, fillAtOnce)
		cancel()
		if err != nil {
			return false, err
		}
		if f.Done != nil {
			f.Done(id, filling)
		}
		tasks := make([]task.Task, len(filling.Batches))
		for i, b := range filling.Batches {
			tasks[i] = task.Run(b.ID, b.Channel.String(), 0, time.Time{})
		}
		// A queue that is away costs time only: the sweep wakes workers.
		_ = f.Queue.Enqueue(ctx, tasks...)
		if !filling.More || ctx.Err() != nil {
			return false, nil
		}
	}
	return true, nil
}
