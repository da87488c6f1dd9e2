package cart

import (
	"context"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// MaxOwned is the most coupons of a user that a cart is compared with: the newest that are unused.
const MaxOwned = 100

// An Owned is a coupon of a user as it is stored.
type Owned struct {
	ID, TemplateID int64
	// State is the state that users see.
	State coupon.State
	// ExpiresAt is that of [Terms].
	ExpiresAt int64
}

// Store reads the coupons of users.
type Store interface {
	// Owned returns the user's coupons among only, in any state, or without only the newest of the
	// user's coupons that can be used now, at most limit. now is the database's clock.
	Owned(ctx context.Context, u user.ID, only []int64, limit int) (list []Owned, now time.Time, err error)
}

// Templates reads the templates of coupons, which callers must not change. A template may be as it was a
// second ago; the lock of an order decides by the present terms.
type Templates interface {
	Shared(ctx context.Context, id int64) (*template.Template, error)
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
type Service struct {
	Store     Store
	Templates Templates
}

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
	list := make([]Terms, 0, len(owned))
	var refused []Refusal
	found := make(map[int64]bool, len(owned))
	for _, o := range owned {
		if found[o.ID] {
			continue // only names it twice
		}
		if found[o.ID] = true; o.State != coupon.Unused {
			refused = append(refused, Refusal{Coupon: o.ID, Reason: Reason(o.State)})
			continue
		}
		t, err := s.Templates.Shared(ctx, o.TemplateID)
		if err != nil {
			return Answer{}, err
		}
		list = append(list, Terms{ID: o.ID, TemplateID: o.TemplateID, Shop: t.ShopNumber, Rule: coupon.RuleOf(t.Spec),
			Stacking: Stacking{t.StackGroup, t.StacksWith.List(), t.MaxPerOrder}, ExpiresAt: o.ExpiresAt})
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
