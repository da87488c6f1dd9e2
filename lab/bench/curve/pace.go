package curve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/lab/bench/stack"
)

// tenMinutes is the app reminder ten minutes before the opening. It is not measured when it
// falls due.
const tenMinutes = 2

// pace is a modest load of rate reservations per second for the given seconds. Each reservation
// begins on time, whether or not earlier reservations are answered.
type pace struct{ rate, seconds int }

// reserve adds reminders to the template's reservations. It alternates between an existing row,
// anywhere in the table, and a new row.
func (p pace) reserve(ctx context.Context, s *stack.Stack, templateID int64, n int) (p50, p99 time.Duration, err error) {
	store := dropsdb.NewReservations(s.DB, postgres.Grouping{})
	defer store.Close()
	count := p.rate * p.seconds
	if count/2 > n {
		return 0, 0, fmt.Errorf("%d reservations are too few to add to at this rate", n)
	}
	if _, err := store.Reserve(ctx, reminder.Change{TemplateID: templateID, UserID: user.ID(n + count + 1), Bits: reminder.StoredBitmap(tenMinutes)}); err != nil {
		return 0, 0, err // otherwise the first measured call would connect
	}
	took, errs := make([]time.Duration, count), make([]error, count)
	begin := time.Now()
	var all sync.WaitGroup
	for i := range count {
		at := begin.Add(time.Duration(i) * time.Second / time.Duration(p.rate))
		<-time.After(time.Until(at))
		all.Go(func() {
			v, err := store.Reserve(ctx, reminder.Change{TemplateID: templateID, UserID: userAt(i, n), Bits: reminder.StoredBitmap(tenMinutes)})
			if took[i] = time.Since(at); err == nil && !v.Applied {
				err = fmt.Errorf("refused: %+v", v)
			}
			errs[i] = err
		})
	}
	all.Wait()
	slices.Sort(took)
	for _, err := range errs {
		if err != nil {
			return 0, 0, err
		}
	}
	return took[count/2], took[count*99/100], nil
}

// userAt returns, for even i, one of users 1…n, far from the previous user, and for odd i a new
// user.
func userAt(i, n int) user.ID {
	if i%2 == 1 {
		return user.ID(n + i)
	}
	const step = 104_729 // prime, so that users repeat only if n is a multiple
	return user.ID(i/2*step%n + 1)
}
