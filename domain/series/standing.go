package series

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// A Standing is a standing reservation: the reminders that a user gets of every drop of a series. They are
// copied to each drop when it is published. What the user reserves or cancels for one drop holds for that drop.
type Standing struct {
	SeriesID   int64
	SeriesName string
	ShopNumber int64
	UserID     user.ID
	Slots      reminder.Bitmap
	CreatedAt  time.Time
}

// StandingStore keeps standing reservations. Every call is one transaction and may be repeated.
type StandingStore interface {
	// Public returns a series without the settings of its drops, or [ErrNotFound].
	Public(ctx context.Context, id int64) (Series, error)
	// Stand stores the reminders in place of those before, with them the reminders of the drops that are published
	// and have not opened, and reports whether the standing reservation is new. A reservation that the user has
	// made for a drop, or has cancelled, stays.
	Stand(ctx context.Context, seriesID int64, by user.ID, slots reminder.Bitmap) (created bool, err error)
	// End removes the standing reservation and what was copied of it, as far as it is not due yet. It reports
	// whether there was one.
	End(ctx context.Context, seriesID int64, by user.ID) (bool, error)
	// StandingOf lists the standing reservations of a user, of one series or (0) of all.
	StandingOf(ctx context.Context, by user.ID, seriesID int64) ([]Standing, error)
}

// Reservations holds the use cases of end users around standing reservations. Erased may be nil: then no user
// was erased.
type Reservations struct {
	Store    StandingStore
	Channels delivery.Available
	Erased   func(user.ID) bool
}

// A Request is a request for the reminders of all drops of a series.
type Request struct {
	SeriesID   int64
	UserID     user.ID
	ShopNumber int64
	Reminders  []reminder.Reminder
}

// Reserve stores the standing reservation, in place of the user's earlier one, and reports whether it is new.
// It returns [ErrNotFound], [ErrOver], a [fault.Fields], [delivery.ErrChannelUnavailable] in a
// [reminder.Refusal], or [user.ErrErased].
func (s *Reservations) Reserve(ctx context.Context, r Request) (Standing, bool, error) {
	if s.Erased != nil && s.Erased(r.UserID) {
		return Standing{}, false, user.ErrErased
	}
	found, err := s.Store.Public(ctx, r.SeriesID)
	if err != nil {
		return Standing{}, false, err
	}
	if err := s.check(found, r); err != nil {
		return Standing{}, false, err
	}
	slots := reminder.BitmapOf(r.Reminders...)
	storing, cancel := detach.Context(ctx)
	defer cancel()
	created, err := s.Store.Stand(storing, r.SeriesID, r.UserID, slots)
	if err != nil {
		return Standing{}, false, err
	}
	stored, err := s.Reservation(storing, r.UserID, r.SeriesID)
	return stored, created, err
}

func (s *Reservations) check(found Series, r Request) error {
	if found.State == Ended {
		return ErrOver
	}
	e := &fault.Fields{}
	if found.ShopNumber != r.ShopNumber {
		e.Add("shop_number", "rule.other_shop_series", "is not the shop of this series")
	}
	reminder.CheckNamed(e, r.Reminders)
	if err := e.Err(); err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(r.Reminders), func(rem reminder.Reminder) bool { return s.Channels.Has(rem.Channel) })
	if len(missing) > 0 {
		return &reminder.Refusal{Fault: delivery.ErrChannelUnavailable.Because("this channel has no configured sender"), Offending: missing}
	}
	return nil
}

// Reservation returns the user's standing reservation, [ErrNotFound] or [reminder.ErrNotReserved].
func (s *Reservations) Reservation(ctx context.Context, by user.ID, seriesID int64) (Standing, error) {
	list, err := s.Store.StandingOf(ctx, by, seriesID)
	if err != nil {
		return Standing{}, err
	}
	if len(list) > 0 {
		return list[0], nil
	}
	if _, err := s.Store.Public(ctx, seriesID); err != nil {
		return Standing{}, err
	}
	return Standing{}, errNotStanding
}

var errNotStanding = reminder.ErrNotReserved.Because("no standing reservation for this series; reserve one first")

// Of lists the user's standing reservations.
func (s *Reservations) Of(ctx context.Context, by user.ID) ([]Standing, error) {
	return s.Store.StandingOf(ctx, by, 0)
}

// End ends the user's standing reservation, and cancels what was copied of it to drops that have not opened.
// It returns [ErrNotFound] or [reminder.ErrNotReserved].
func (s *Reservations) End(ctx context.Context, by user.ID, seriesID int64) error {
	if _, err := s.Store.Public(ctx, seriesID); err != nil {
		return err
	}
	storing, cancel := detach.Context(ctx)
	defer cancel()
	ended, err := s.Store.End(storing, seriesID, by)
	if err == nil && !ended {
		err = errNotStanding
	}
	return err
}
