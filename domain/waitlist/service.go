package waitlist

import (
	"context"
	"errors"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Store keeps waitlists.
type Store interface {
	// Join puts the user at the end of the waitlist, durably, and returns the place. A user who is
	// there already keeps the place; joined is false then. It returns [ErrNotOpen] if no user can
	// join now, and [ErrTooMany].
	Join(ctx context.Context, w Wish) (place Waiter, joined bool, err error)
	// Leave takes the user off the waitlist. A user who has left before, or got a coupon meanwhile,
	// stays so. It returns [ErrNotWaiting] for a user who never joined.
	Leave(ctx context.Context, templateID int64, by user.ID) (Waiter, error)
	// Waiter returns the user's place, or [ErrNotWaiting].
	Waiter(ctx context.Context, templateID int64, by user.ID) (Waiter, error)
	// Accept gives the user the coupon that is offered, or in the last hour of the drop one of those
	// that are kept. A repetition returns the same coupon. It returns [ErrNoOffer], [ErrLapsed],
	// [ErrTaken], [ErrNotWaiting], the refusals of [claim.Admit], and the refusal of a rule, after
	// which the user is skipped.
	Accept(ctx context.Context, templateID int64, by user.ID) (Waiter, error)
	// Outlook returns how many users are before one who waits, up to [MaxAhead], and of the shop's last
	// waitlists that are over, up to [MaxHistory], how many gave coupons to more users than these.
	Outlook(ctx context.Context, w Waiter) (ahead, reached, lists int64, err error)
}

// Lookup finds templates.
type Lookup interface {
	// Template returns a template that may be a second old, or [template.ErrNotFound].
	Template(ctx context.Context, id int64) (template.Template, error)
	// Current returns the template as it is now.
	Current(ctx context.Context, id int64) (*template.Template, error)
}

// Service holds the use cases of users about waitlists.
type Service struct {
	Store     Store
	Templates Lookup
	Members   claim.Members // of the doors of drops
	Channels  delivery.Available
	Erased    func(user.ID) bool
	Now       func() time.Time
}

// Join puts the user on the waitlist of a drop that is sold out, at the end. joined is false if the
// user was there already. channels say over which the user is told; 0 = the app's inbox. It
// returns the errors of [Joinable] and [Store], [delivery.ErrChannelUnavailable] for a channel without a
// sender, [claim.ErrNotEligible] for a user who comes through no door of the drop, and [user.ErrErased].
func (s *Service) Join(ctx context.Context, w Wish) (place Waiter, joined bool, err error) {
	if s.Erased(w.UserID) {
		return place, false, user.ErrErased
	}
	if w.Channels == 0 {
		w.Channels = delivery.ChannelSetOf(delivery.App)
	}
	if w.Channels&^s.Channels.Set() != 0 {
		return place, false, delivery.ErrChannelUnavailable
	}
	// An answer that cannot change any more needs no database.
	t, err := s.Templates.Template(ctx, w.TemplateID)
	if err != nil {
		return place, false, err
	}
	if !t.Waits() {
		return place, false, Joinable(t, s.Now())
	}
	if len(t.Doors) > 0 {
		if w.Door, err = s.Members.Door(ctx, &t, w.UserID); err != nil {
			return place, false, err
		}
	}
	w.Rank, w.Limit = RankOf(t, w.Door), t.LimitFor(w.Door)
	place, joined, err = s.Store.Join(ctx, w)
	if !errors.Is(err, ErrNotOpen) {
		return place, joined, err
	}
	now, found := s.Templates.Current(ctx, w.TemplateID)
	if found != nil {
		return place, false, found
	}
	if why := Joinable(*now, s.Now()); why != nil {
		return place, false, why
	}
	return place, false, &fault.RetryAfter{Err: ErrNotOpen, After: time.Second}
}

// Leave takes the user off the waitlist; see [Store].
func (s *Service) Leave(ctx context.Context, templateID int64, by user.ID) (Waiter, error) {
	return s.Store.Leave(ctx, templateID, by)
}

// Accept gives the user the coupon that is offered; see [Store]. It returns [user.ErrErased] for a user
// who was erased.
func (s *Service) Accept(ctx context.Context, templateID int64, by user.ID) (Waiter, error) {
	if s.Erased(by) {
		return Waiter{}, user.ErrErased
	}
	return s.Store.Accept(ctx, templateID, by)
}

// Waiter returns the user's place, and what a user who waits may expect; see [Store].
func (s *Service) Waiter(ctx context.Context, templateID int64, by user.ID) (w Waiter, o Outlook, err error) {
	w, err = s.Store.Waiter(ctx, templateID, by)
	if err != nil || w.State != Waiting {
		return w, o, err
	}
	ahead, reached, lists, err := s.Store.Outlook(ctx, w)
	return w, Outlook{AheadOf(ahead), ChanceOf(reached, lists)}, err
}
