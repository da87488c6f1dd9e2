package program

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/sheet"
	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/task"
)

// couponChunk is how many coupons one statement of a sweep takes: some tens
// of milliseconds of work.
const couponChunk = 1000

// coupons is what a worker does for coupons.
type coupons struct {
	store   couponsdb.CouponSteps
	steps   *coupon.Service
	notices *coupon.Announcer
	expired prometheus.Counter
	ended   prometheus.Counter
	late    prometheus.Gauge
}

func (p *program) newCoupons() *coupons {
	store := couponsdb.NewCouponSteps(p.DB)
	c := &coupons{store: store, steps: &coupon.Service{Store: store, LockFor: p.Config.LockFor},
		notices: &coupon.Announcer{Store: couponsdb.NewNotices(p.DB), Queue: p.queue},
		expired: prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_coupons_expired_total", Help: "Coupons whose expiry this worker wrote down."}),
		ended:   prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_coupon_locks_ended_total", Help: "Locks that this worker's sweep ended because their time had come."}),
		late:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "dropbell_coupon_lock_late_seconds", Help: "How long ago the oldest open lock should have ended."})}
	p.metrics.registry.MustRegister(c.expired, c.ended, c.late)
	return c
}

// shortWait is how long a timer that fired early waits in the handler; queues
// have a resolution of a second.
const shortWait = 3 * time.Second

func (p *program) endLockTask(ctx context.Context, l task.LockPayload) error {
	for {
		left, err := p.couponLife.steps.TimeOut(ctx, l.CouponID, l.OrderID)
		if err != nil || left == 0 || left > shortWait {
			return err // far too early cannot be helped here; the sweep ends the lock
		}
		if !sleep(ctx, left+time.Millisecond) {
			return ctx.Err()
		}
	}
}

// sweepCoupons ends locks whose timer was lost and writes down what has
// expired; it needs nothing in Redis.
func (p *program) sweepCoupons(ctx context.Context) error {
	if err := p.couponLife.chunks(ctx, p.couponLife.store.EndLocks, p.couponLife.ended); err != nil {
		return err
	}
	if err := p.couponLife.chunks(ctx, p.couponLife.store.Expire, p.couponLife.expired); err != nil {
		return err
	}
	late, err := p.couponLife.store.LockLateness(ctx)
	p.couponLife.late.Set(late.Seconds())
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

// lists opens uploads as tables.
type lists struct{ tables sheet.Tables }

// OpenList returns the rows of an upload; see [coupon.Lists].
func (l lists) OpenList(ctx context.Context, uploadID int64) (coupon.Rows, error) {
	rows, err := l.tables.OpenTable(ctx, uploadID, job.Reading{}, nil)
	return listRows{rows}, err
}

type listRows struct{ job.Rows }

// Next returns a row that cannot be read as one without cells.
func (r listRows) Next() (int64, []string, error) {
	line, cells, err := r.Rows.Next()
	if errors.Is(err, sheet.ErrBadRow) {
		return line, nil, nil
	}
	return line, cells, err
}
