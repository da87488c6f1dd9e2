package coupons

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/domain/waitlist"
)

// waitlists gives stock that is kept for users who wait to these users.
type waitlists struct{ filler *waitlist.Filler }

func newWaitlists(d Deps) waitlists {
	users := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_waitlist_users_total",
		Help: "Users of waitlists whose turn it was, by outcome: filled or skipped."}, []string{"outcome"})
	released := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_waitlist_released_total",
		Help: "Coupons that were kept for users who wait and went back on sale, since nobody waited or the drop was over."})
	d.Registry.MustRegister(users, released)
	filled, skipped := users.WithLabelValues("filled"), users.WithLabelValues("skipped")
	d.Filler.Done = func(_ int64, f waitlist.Filling) {
		filled.Add(float64(f.Filled))
		skipped.Add(float64(f.Skipped))
		released.Add(float64(f.Released))
	}
	return waitlists{d.Filler}
}

func (w waitlists) sweep(ctx context.Context) error { return w.filler.Sweep(ctx) }
