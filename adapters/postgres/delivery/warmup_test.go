package delivery_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
)

// TestWarmUpDays: workers that take mails at the same time together take no more
// than the day has; each takes as many as are left. Returned mails can be taken
// again, and the next day starts at zero.
func TestWarmUpDays(t *testing.T) {
	w := newFixture(t)
	days := deliverydb.NewWarmUps(w.DB)
	day := time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC)
	plan := delivery.WarmUp{Start: day.Truncate(24 * time.Hour), First: 100, Factor: 2}
	var sum atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			n, err := days.Take(t.Context(), day, 7, 100)
			if err != nil {
				t.Error(err)
			}
			sum.Add(n)
		})
	}
	all.Wait()
	if b, err := days.Budget(t.Context(), plan, day); err != nil || sum.Load() != 100 || b != (delivery.ChannelBudget{PerDay: 100, Spent: 100, UsedUp: true}) {
		t.Errorf("%d taken, %+v, %v", sum.Load(), b, err)
	}
	w.Must(days.GiveBack(t.Context(), day, 3))
	if n, err := days.Take(t.Context(), day, 7, 100); err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	next := day.Add(2 * time.Hour)
	if b, err := days.Budget(t.Context(), plan, next); err != nil || b != (delivery.ChannelBudget{PerDay: 200}) {
		t.Errorf("the next day %+v, %v", b, err)
	}
	if n, err := days.Take(t.Context(), next, 7, 200); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
	if b, err := days.Budget(t.Context(), delivery.WarmUp{}, next); err != nil || b.PerDay != 0 {
		t.Errorf("without a plan %+v, %v", b, err)
	}
}
