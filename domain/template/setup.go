package template

import (
	"context"

	"dropbell/domain/staff"
)

// Setup is the progress of setting up an installation, or the shops of a member. Each step is
// derived from stored data.
type Setup struct {
	// Shop: there is a shop.
	Shop bool
	// Channel: a provider has taken a test message, or a reminder.
	Channel bool
	// Users: a user is known by more than the number.
	Users bool
	// Drop: a drop was published.
	Drop bool
	// Reminder: a reminder was delivered.
	Reminder bool
}

// Steps returns the steps in the order in which they are taken.
func (s Setup) Steps() []bool { return []bool{s.Shop, s.Channel, s.Users, s.Drop, s.Reminder} }

// Done returns how many steps are taken, and whether all are.
func (s Setup) Done() (n int, all bool) {
	steps := s.Steps()
	for _, done := range steps {
		if done {
			n++
		}
	}
	return n, n == len(steps)
}

// SetupStore reads how far things have come.
type SetupStore interface {
	// Setup reads it for the shops, none = all.
	Setup(ctx context.Context, shops []int64) (Setup, error)
}

// Setups tells members how far their shops have come.
type Setups struct{ Store SetupStore }

// Of returns how far the member's shops have come, or [staff.ErrForbidden].
func (s Setups) Of(ctx context.Context, by staff.Actor) (Setup, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Setup{}, err
	}
	return s.Store.Setup(ctx, by.Shops)
}
