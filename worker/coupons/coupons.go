package coupons

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
)

const (
	// couponChunk is how many coupons one statement of a sweep changes. The statement takes some
	// tens of milliseconds and holds the rows of its coupons so long.
	couponChunk = 1000
	// expiryTurn is how long in each second a worker records expired coupons. The rest of the
	// second is left for claims and payments when millions of coupons expire at midnight, and
	// for ending locks. The last statement may run beyond expiryTurn.
	expiryTurn = 250 * time.Millisecond
	// expiryFromStart is how often the sweep of expired coupons starts again at the first
	// coupon. A coupon whose row was locked when the sweep passed is recorded then; until then
	// its use is refused because its expiry has passed.
	expiryFromStart = 10 * time.Minute
	// overdueUpTo is how many coupons are counted that have still to be written down.
	overdueUpTo = 100_000
)

// coupons ends locks and records expired coupons.
type coupons struct {
	store   couponsdb.CouponSteps
	expired prometheus.Counter
	ended   prometheus.Counter
	late    prometheus.Gauge
	overdue prometheus.Gauge
	behind  prometheus.Gauge

	// The fields below belong to the loop that sweeps expired coupons.
	cursor  couponsdb.ExpiryCursor
	started time.Time // when it began at the first coupon
}

func newCoupons(d Deps) *coupons {
	c := &coupons{store: d.Steps,
		expired: prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_coupons_expired_total", Help: "Coupons whose expiry this worker wrote down."}),
		ended:   prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_coupon_locks_ended_total", Help: "Locks that this worker's sweep ended because their time had come."}),
		late:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_coupon_lock_late_seconds", Help: "How long ago the oldest open lock should have ended."}),
		overdue: prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_coupons_overdue", Help: "Coupons whose expiry is still to be written down; 100,000 means at least that many."}),
		behind:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_coupons_overdue_seconds", Help: "For how long the first of them has been expired."})}
	d.Registry.MustRegister(c.expired, c.ended, c.late, c.overdue, c.behind)
	return c
}

// sweep ends locks whose time has come and records expired coupons. It needs no data in Redis.
func (c *coupons) sweep(ctx context.Context) error {
	if err := c.chunks(ctx, c.store.EndLocks, c.ended); err != nil {
		return err
	}
	if err := c.expire(ctx, expiryTurn); err != nil {
		return err
	}
	late, err := c.store.LockLateness(ctx)
	c.late.Set(late.Seconds())
	return err
}

// chunks repeats a sweep while it finds full chunks.
func (c *coupons) chunks(ctx context.Context, sweep func(context.Context, int) (int, error), count prometheus.Counter) error {
	for ctx.Err() == nil {
		n, err := sweep(ctx, couponChunk)
		count.Add(float64(n))
		if err != nil || n < couponChunk {
			return err
		}
	}
	return ctx.Err()
}

// expire records expired coupons until turn is used up, and sets the metrics of the coupons that
// are left. Concurrent workers skip each other's coupons.
func (c *coupons) expire(ctx context.Context, turn time.Duration) error {
	began := time.Now()
	if began.Sub(c.started) >= expiryFromStart {
		c.started, c.cursor = began, couponsdb.ExpiryCursor{}
	}
	for {
		n, last, err := c.store.Expire(ctx, c.cursor, couponChunk)
		c.expired.Add(float64(n))
		if err != nil {
			return err
		}
		c.cursor = last
		if n < couponChunk {
			c.overdue.Set(0)
			c.behind.Set(0)
			return nil
		}
		if time.Since(began) < turn {
			continue
		}
		left, late, err := c.store.Overdue(ctx, c.cursor, overdueUpTo)
		c.overdue.Set(float64(left))
		c.behind.Set(late.Seconds())
		return err
	}
}
