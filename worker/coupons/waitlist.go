package coupons

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/coupon"
	"dropbell/domain/waitlist"
)

// waitlists returns coupons that were not used in time, or whose orders were refunded, to the stock, and gives stock
// that is kept for users who wait to these users.
type waitlists struct {
	returner *coupon.Returner
	filler   *waitlist.Filler
	store    couponsdb.Ledgers
	late     prometheus.Gauge
}

func newWaitlists(d Deps) waitlists {
	users := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropbell_waitlist_users_total",
		Help: "Users of waitlists whose turn it was, by outcome: filled, offered, lapsed or skipped."}, []string{"outcome"})
	released := prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_waitlist_released_total",
		Help: "Coupons that were kept for users who wait and went back on sale, since no user waited or the drop was over."})
	late := prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_waitlist_late_seconds",
		Help: "For how long stock that is kept for users who wait, and offered to none of them, has not moved."})
	d.Registry.MustRegister(users, released, late)
	filled, skipped := users.WithLabelValues("filled"), users.WithLabelValues("skipped")
	offered, lapsed := users.WithLabelValues("offered"), users.WithLabelValues("lapsed")
	d.Filler.Done = func(_ int64, f waitlist.Filling) {
		filled.Add(float64(f.Filled))
		skipped.Add(float64(f.Skipped))
		offered.Add(float64(f.Offered))
		lapsed.Add(float64(f.Lapsed))
		released.Add(float64(f.Released))
	}
	return waitlists{d.Returner, d.Filler, d.Stock, late}
}

func (w waitlists) sweep(ctx context.Context) error {
	// A coupon that cannot be returned does not keep users who wait from others.
	if err := errors.Join(w.returner.Sweep(ctx), w.filler.Sweep(ctx)); err != nil {
		return err
	}
	late, err := w.store.WaitsLate(ctx)
	w.late.Set(late.Seconds())
	return err
}
