package app

import (
	"context"
	"time"
)

// recountHorizon is how long before its opening a drop's reservations begin to be recounted
// every time.
const recountHorizon = 24 * time.Hour

// Figures are sums that handlers of events keep.
type Figures []Figure

// A Figure is a sum that can be compared with the database rows and replaced by their sum.
type Figure struct {
	Name string
	// Due returns templates whose figure is to be compared with the rows. Impossible returns
	// templates whose figure cannot be true.
	Due, Impossible func(ctx context.Context, limit int) ([]int64, error)
	// Off returns the difference between the figure of the template and the rows. Recount
	// returns the same difference and replaces the figure.
	Off, Recount func(ctx context.Context, templateID int64) (int64, error)
}

// Figures returns the sums of the stores.
func (s Stores) Figures() Figures {
	counters, tallies := s.Counters, s.CouponTallies
	return Figures{
		{"reservations", func(ctx context.Context, limit int) ([]int64, error) {
			return counters.ToRecount(ctx, recountHorizon, limit)
		},
			counters.Impossible, counters.Off, counters.Recount},
		{"coupons", tallies.ToRecount, tallies.Impossible, tallies.Off, tallies.Recount},
		{"orders", tallies.SalesToRecount, tallies.SalesImpossible, tallies.SalesOff, tallies.RecountSales},
	}
}

// Off returns by how much all figures of the template differ from the rows.
func (f Figures) Off(ctx context.Context, templateID int64) (sum int64, err error) {
	for _, one := range f {
		n, err := one.Off(ctx, templateID)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
