package coupons

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/waitlist"
)

// waitlists gives stock that is kept for users who wait to these users.
type waitlists struct {
	filler *waitlist.Filler
	store  couponsdb.Ledgers
	late   prometheus.Gauge
}

func newWaitlists(d Deps) waitlists {
	users := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_waitlist_users_total",
		Help: "Users of waitlists whose turn it was, by outcome: filled or skipped."}, []string{"outcome"})
	released := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_waitlist_released_total",
		Help: "Coupons that were kept for users who wait and went back on sale, since no user waited or the drop was over."})
	late := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_waitlist_late_seconds",
		Help: "For how long stock has been kept for users who wait and was not given."})
	d.Registry.MustRegister(users, released, late)
	filled, skipped := users.WithLabelValues("filled"), users.WithLabelValues("skipped")
	d.Filler.Done = func(_ int64, f waitlist.Filling) {
		filled.Add(float64(f.Filled))
		skipped.Add(float64(f.Skipped))
		released.Add(float64(f.Released))
	}
	return waitlists{d.Filler, d.Stock, late}
}

func (w waitlists) sweep(ctx context.Context) error {
	if err := w.filler.Sweep(ctx); err != nil {
		return err
	}
	late, err := w.store.WaitsLate(ctx)
	w.late.Set(late.Seconds())
	return err
}
