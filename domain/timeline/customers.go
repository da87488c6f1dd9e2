package timeline

import (
	"context"
	"slices"
	"strings"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// Spent is what one user paid in one currency: With are the orders with coupons, as in the figures of
// the shops, and Without the reported orders without coupons.
type Spent struct {
	With    report.Sums
	Without report.Plain
}

// Orders returns the number of orders, refunds netted.
func (s Spent) Orders() int64 { return s.With.Orders() + s.Without.Orders }

// Revenue returns what the user paid, refunds netted.
func (s Spent) Revenue() money.Amount { return s.With.Revenue() + s.Without.Amount }

// Basket returns the average amount of an order before discounts; 0 without orders.
func (s Spent) Basket() money.Amount {
	return report.Sums{Paid: s.Orders(), PaidAmount: s.With.Ordered() + s.Without.Amount}.Basket()
}

// Average returns the revenue of an average order; 0 without orders.
func (s Spent) Average() money.Amount {
	return report.Sums{Paid: s.Orders(), PaidAmount: s.Revenue()}.Average()
}

// A Worth is what one user brought the shops.
type Worth struct {
	Spent []Spent // by the codes of the currencies
	// Coupons is the number of coupons that the user got, Used of those that are used now.
	Coupons, Used int64
	LastOrder     time.Time // zero = none
}

// Plus returns the worth in the databases of both.
func (w Worth) Plus(o Worth) Worth {
	w.Spent = slices.Clone(w.Spent)
	for _, s := range o.Spent {
		i, found := slices.BinarySearchFunc(w.Spent, s, func(a, b Spent) int { return strings.Compare(a.With.Currency, b.With.Currency) })
		if !found {
			w.Spent = slices.Insert(w.Spent, i, s)
			continue
		}
		own := &w.Spent[i]
		own.With, own.Without = own.With.Plus(s.With), own.Without.Plus(s.Without)
	}
	w.Coupons, w.Used = w.Coupons+o.Coupons, w.Used+o.Used
	if o.LastOrder.After(w.LastOrder) {
		w.LastOrder = o.LastOrder
	}
	return w
}

// A Customer is a user of the list of recent customers.
type Customer struct {
	User user.User
	// Suppressed is whether nothing is sent to the user's mail address.
	Suppressed bool
	// Last is the user's last act: a claim, an order, or a choice; zero = none is recent.
	Last Line
	Worth
}

// Customers reads users by their acts.
type Customers interface {
	// Recent returns up to limit users with the newest acts, the newest first. It reads the newest acts
	// of all users alone, so it may return fewer. If there are fewer, users without a recent act follow,
	// by ascending id. Acts about drops and orders of shops other than these do not count (none = all count).
	Recent(ctx context.Context, shops []int64, limit int) ([]Customer, error)
}

// Purse reads what users spent at the shops (none = all).
type Purse interface {
	// Worth returns the worth of each of the users that has a coupon or an order.
	Worth(ctx context.Context, users []user.ID, shops []int64) (map[user.ID]Worth, error)
	// Used returns the number of coupons of the shops that are used now.
	Used(ctx context.Context, shops []int64) (int64, error)
}

// Worth returns what the user brought the shops that the actor may see.
func (s *Service) Worth(ctx context.Context, by staff.Actor, id user.ID) (Worth, error) {
	all, err := s.Worths(ctx, by, []user.ID{id})
	return all[id], err
}

// Worths returns what each of the users that has a coupon or an order brought the shops that the actor
// may see.
func (s *Service) Worths(ctx context.Context, by staff.Actor, users []user.ID) (map[user.ID]Worth, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	return s.Purse.Worth(ctx, users, by.Shops)
}

// Used returns the number of used coupons of the shops that the actor may see.
func (s *Service) Used(ctx context.Context, by staff.Actor) (int64, error) {
	if err := by.May(staff.View, 0); err != nil {
		return 0, err
	}
	return s.Purse.Used(ctx, by.Shops)
}

// Recent returns the users with the newest acts, as far as the actor may see the acts. Contacts are
// masked for an actor who may not see them.
func (s *Service) Recent(ctx context.Context, by staff.Actor, limit int) ([]Customer, error) {
	if err := by.May(staff.View, 0); err != nil {
		return nil, err
	}
	list, err := s.Customers.Recent(ctx, by.Shops, limit)
	if err != nil {
		return nil, err
	}
	ids := make([]user.ID, len(list))
	for i, c := range list {
		ids[i] = c.User.ID
	}
	worth, err := s.Purse.Worth(ctx, ids, by.Shops)
	for i, c := range list {
		list[i].Worth = worth[c.User.ID]
		if !by.SeesContacts() {
			list[i].User = c.User.Masked()
		}
	}
	return list, err
}
