package series

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A Claim is a series that one worker looks after until the claim ends.
type Claim struct {
	Series
	// Now is the database's clock, and Until when another worker may claim the series.
	Now, Until time.Time
}

// A Copy names a published drop for which the standing reservations of its series are to be copied.
type Copy struct{ SeriesID, TemplateID int64 }

// KeeperStore is where the keeper works. Every call but Copy is one transaction, and each may be repeated.
type KeeperStore interface {
	// Claim claims an active series that is due for as long; found is false if none is due.
	Claim(ctx context.Context, lease time.Duration) (c Claim, found bool, err error)
	// Settle says when the series is due again; the zero time = when staff change it. It changes nothing if
	// staff changed the series since, or another worker claimed it.
	Settle(ctx context.Context, c Claim, next time.Time) error
	// ToCome returns the occurrences of the series from the day on, in order.
	ToCome(ctx context.Context, id int64, from Day) ([]Occurrence, error)
	// Plan stores the day as planned, unless it is planned or has a drop; it returns the occurrence.
	Plan(ctx context.Context, id int64, d Day) (Occurrence, error)
	// Note stores what the keeper did about the occurrence.
	Note(ctx context.Context, o Occurrence) error
	// Uncopied returns published drops that have not opened and whose standing reservations are not copied.
	Uncopied(ctx context.Context, limit int) ([]Copy, error)
	// Copy copies the standing reservations of the series to the drop, in transactions of many users each, and returns
	// how many users have new reminders; 0 if another worker copies to the drop. Repeated after a failure, it copies
	// for the users who are left. A reservation that a user has made for the drop, or has cancelled, stays.
	Copy(ctx context.Context, c Copy) (int64, error)
}

// A Keeper creates, changes and publishes the drops of series. Any number of processes may run one. It may
// stop and begin anew at any point: a day is planned before its drop is created, a creation is repeatable by
// the key of the day, and every later step finds what is done.
type Keeper struct {
	Store     KeeperStore
	Templates *template.Service
	// Done, if set, is called with what became of an occurrence, and Copied with how many users got reminders
	// by their standing reservations.
	Done   func(o Occurrence)
	Copied func(users int64)
}

const (
	claimFor     = 30 * time.Second
	claimsAtMost = 1000
	copiesAtMost = 100
)

// Sweep keeps every series that is due, and copies standing reservations. After a failure it goes on with the
// next series.
func (k *Keeper) Sweep(ctx context.Context) error {
	var errs []error
	for range claimsAtMost {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		c, found, err := k.Store.Claim(ctx, claimFor)
		if err != nil || !found {
			errs = append(errs, err)
			break
		}
		if err := k.keep(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("series %d: %w", c.ID, err))
		}
	}
	return errors.Join(append(errs, k.copies(ctx))...)
}

func (k *Keeper) copies(ctx context.Context) error {
	list, err := k.Store.Uncopied(ctx, copiesAtMost)
	errs := []error{err}
	for _, c := range list {
		if ctx.Err() != nil {
			break
		}
		users, err := k.Store.Copy(ctx, c)
		errs = append(errs, err)
		if err == nil && k.Copied != nil {
			k.Copied(users)
		}
	}
	return errors.Join(errs...)
}

// keep brings the drops of the series to what the series says.
func (k *Keeper) keep(ctx context.Context, c Claim) error {
	days, today := c.Upcoming(c.Now, Ahead), DayOf(c.Now.In(c.Zone()))
	list, err := k.Store.ToCome(ctx, c.ID, today)
	if err != nil {
		return err
	}
	for _, d := range days {
		i := slices.IndexFunc(list, func(o Occurrence) bool { return o.Day == d })
		if i >= 0 && list[i].State != Removed {
			continue
		}
		o, err := k.Store.Plan(ctx, c.ID, d)
		if err != nil {
			return err
		}
		if i < 0 {
			list = append(list, o)
		} else {
			list[i] = o
		}
	}
	last := today
	for _, o := range list {
		last = max(last, o.Day)
	}
	has := c.Days(today, c.without(), int(last.start().Sub(today.start())/(24*time.Hour))+1)
	for _, o := range list {
		if err := k.tend(ctx, c, o, slices.Contains(has, o.Day)); err != nil {
			return err
		}
	}
	next := time.Time{}
	if len(days) > 0 {
		next = c.OpensOn(days[0])
	}
	return k.Store.Settle(ctx, c, next)
}

// tend takes the steps that the occurrence needs; has says whether the series has its day. A refusal is stored with the occurrence; any other error is
// returned, and the series is kept again.
func (k *Keeper) tend(ctx context.Context, c Claim, o Occurrence, has bool) error {
	before := o
	if o.State == Planned && (o.Why == nil || o.Version != c.Version) {
		if err := k.create(ctx, c, &o, has); err != nil {
			return err
		}
	}
	if o.State == Created || o.State == Kept {
		if err := k.adapt(ctx, c, &o, has); err != nil {
			return err
		}
	}
	if same(before, o) {
		return nil
	}
	if k.Done != nil {
		k.Done(o)
	}
	return k.Store.Note(ctx, o)
}

func same(a, b Occurrence) bool {
	return a.State == b.State && a.TemplateID == b.TemplateID && a.Version == b.Version && (a.Why == nil) == (b.Why == nil) &&
		(a.Why == nil || *a.Why == *b.Why) && len(template.Fields.Changed(a.Given, b.Given)) == 0
}

// create creates the drop as a draft, and stores which one it is before anything else is done with it.
func (k *Keeper) create(ctx context.Context, c Claim, o *Occurrence, has bool) error {
	if !has || !c.OpensOn(o.Day).After(c.Now) {
		o.State = Removed
		return nil
	}
	spec, key := c.DropOn(o.Day), fmt.Sprintf("series:%d:%s:%d", c.ID, o.Day, o.Try)
	t, err := k.Templates.Create(ctx, staff.System(), spec, key)
	o.Version = c.Version
	if o.Why, err = fault.Refusal(err); err != nil || o.Why != nil {
		return err
	}
	o.State, o.TemplateID, o.Given, o.Version = Created, t.ID, t.Own(), c.Version-1
	return k.Store.Note(ctx, *o)
}

// adapt changes the drop to what the series says by now, and publishes it, unless staff changed it. A drop
// that has opened, ended or was deleted stays as it is.
func (k *Keeper) adapt(ctx context.Context, c Claim, o *Occurrence, has bool) error {
	t, err := k.Templates.Template(ctx, staff.System(), o.TemplateID)
	if errors.Is(err, template.ErrNotFound) { // staff deleted the draft, or leave did and the program died
		if !has {
			o.State = Removed
		}
		return nil
	}
	if err != nil {
		return err
	}
	state := t.State(c.Now)
	if state != template.Draft && state != template.Scheduled && (state != template.Paused || !c.Now.Before(t.OpensAt)) {
		return nil
	}
	wanted := c.DropOn(o.Day).Own()
	byStaff := len(template.Fields.Changed(t.Own(), o.Given)) > 0 && len(template.Fields.Changed(t.Own(), wanted)) > 0
	switch {
	case !has:
		return k.leave(ctx, t, o, byStaff)
	case o.Version == c.Version:
		if o.Why != nil && errors.Is(o.Why, ErrLeft) { // the day is back: a holiday was taken back
			o.Why = nil
		}
		return nil
	case byStaff:
		o.Version, o.State, o.Why = c.Version, Kept, nil
		return nil
	}
	if t, err = k.Templates.Edit(ctx, staff.System(), t.ID, template.Edition{Version: t.Version, Spec: wanted, Reason: staff.ReasonSeries}); err == nil {
		o.Given = t.Own()
		if c.Publishes && t.Stored == template.Draft {
			// Without a reason: with one, a red flight check would not hold the drop.
			_, err = k.Templates.Redo(ctx, staff.System(), t.ID, 0, template.Publishing, "")
		}
	}
	if o.Why, err = fault.Refusal(err); err != nil {
		return err
	}
	o.Version, o.State = c.Version, Kept
	return nil
}

// leave takes a day out of the series that it no longer has: a draft is deleted, unless staff changed it; a
// published drop stays, with a note, since users may have reserved it.
func (k *Keeper) leave(ctx context.Context, t template.Template, o *Occurrence, byStaff bool) error {
	if t.Stored != template.Draft || byStaff {
		o.Why = ErrLeft
		return nil
	}
	_, err := k.Templates.Delete(ctx, staff.System(), t.ID, t.Version, staff.ReasonSeries)
	if o.Why, err = fault.Refusal(err); err != nil || o.Why != nil {
		return err
	}
	o.State = Removed
	return nil
}
