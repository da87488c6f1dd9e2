package coupon

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// SleepStore knows when the readers of notices want to be left alone.
type SleepStore interface {
	// Sleepers returns those of the batch's recipients who have quiet hours
	// now, with their zone, or the shop's if theirs is not known.
	Sleepers(ctx context.Context, b *delivery.Batch) (map[user.ID]user.User, error)
}

// Guard lets whoever has quiet hours sleep, also those who have changed them
// since their notice was planned; it is the [delivery.Guard] of
// [delivery.KindNotice].
type Guard struct{ Store SleepStore }

// Screen reads the recipients' quiet hours.
func (g Guard) Screen(ctx context.Context, b *delivery.Batch) (delivery.Screen, error) {
	list, err := g.Store.Sleepers(ctx, b)
	return sleepers(list), err
}

// sleepers is read by several calls at a time and never changed.
type sleepers map[user.ID]user.User

// Check puts off who sleeps until they wake.
func (s sleepers) Check(ids []user.ID, now time.Time) []delivery.Verdict {
	var list []delivery.Verdict
	for _, id := range ids {
		if until, asleep := s[id].Sleeps(now); asleep {
			list = append(list, delivery.Verdict{UserID: id, Reason: delivery.ReasonQuietHours, Until: until})
		}
	}
	return list
}

// Before looks at the clock once more.
func (s sleepers) Before(_ context.Context, ids []user.ID, now time.Time) ([]delivery.Verdict, error) {
	return s.Check(ids, now), nil
}
