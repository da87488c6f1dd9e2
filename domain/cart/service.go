package cart

import (
	"context"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/user"
)

// MaxOwned is the most coupons of a user that a cart is compared with: the newest that are unused.
const MaxOwned = 100

// An Owned is a coupon of a user as it is stored.
type Owned struct {
	Terms
	// State is the state that users see.
	State coupon.State
}

// Store reads the coupons of users.
type Store interface {
	// Owned returns the user's coupons among only, in any state, or without only the newest of the
	// user's coupons that can be used now, at most limit. now is the database's clock.
	Owned(ctx context.Context, u user.ID, only []int64, limit int) (list []Owned, now time.Time, err error)
}

// A Drop is a drop as a page about stacking shows it. The ids of its Terms are the drop's, and they
// expire when the drop closes.
type Drop struct {
	Terms
	Name string
}

// Lists are what pages of staff show about carts.
type Lists interface {
	// Drops returns the newest drops of a shop that were published and not cancelled.
	Drops(ctx context.Context, shop int64, limit int) ([]Drop, error)
	// OrdersOf returns the newest orders that [Orders] locked for a user, of these shops (none = all).
	OrdersOf(ctx context.Context, u user.ID, shops []int64, limit int) ([]Placed, error)
}

// Service answers which coupons a cart can use.
type Service struct{ Store Store }

// NotFound is the [Reason] of a coupon that does not exist or belongs to another user. A coupon in
// another state than unused has its state as the reason.
const NotFound Reason = "coupon_not_found"

// Qualify returns what the user's coupons do for the cart. It stores nothing. only are the coupons
// to look at; none = all of the user's, as far as [MaxOwned]. It returns a [fault.Fields] for a
// cart that breaks a rule.
func (s *Service) Qualify(ctx context.Context, u user.ID, c Cart, only []int64) (Answer, error) {
	if err := c.Check(); err != nil {
		return Answer{}, err
	}
	owned, now, err := s.Store.Owned(ctx, u, only, MaxOwned+1)
	if err != nil {
		return Answer{}, err
	}
	more := len(owned) > MaxOwned && len(only) == 0
	if more {
		owned = owned[:MaxOwned]
	}
	var list []Terms
	var refused []Refusal
	found := map[int64]bool{}
	for _, o := range owned {
		found[o.ID] = true
		if o.State == coupon.Unused {
			list = append(list, o.Terms)
		} else {
			refused = append(refused, Refusal{Coupon: o.ID, Reason: Reason(o.State)})
		}
	}
	for _, id := range only {
		if !found[id] {
			refused = append(refused, Refusal{Coupon: id, Reason: NotFound})
			found[id] = true
		}
	}
	a := Qualify(c, list, now)
	a.Unusable = append(a.Unusable, refused...)
	a.Best.Exact = a.Best.Exact && !more
	return a, nil
}
