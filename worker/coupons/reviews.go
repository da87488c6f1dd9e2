package coupons

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	couponsdb "dropbell/adapters/postgres/coupons"
)

// reviewTurn is how long the sweep carries out decisions before other sweeps have their turn.
const reviewTurn = 2 * time.Second

// reviews reviews protected drops that are over, and carries out the decisions of staff.
type reviews struct {
	store couponsdb.Reviews
	runs  prometheus.Counter
	parts prometheus.Counter
}

func newReviews(d Deps) *reviews {
	r := &reviews{store: d.Reviews,
		runs:  prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_reviews_total", Help: "Protected drops whose claims this worker reviewed."}),
		parts: prometheus.NewCounter(prometheus.CounterOpts{Name: "dropbell_review_parts_total", Help: "Parts of decisions about suspended coupons that this worker carried out."})}
	d.Registry.MustRegister(r.runs, r.parts)
	return r
}

// sweep carries out what was decided, ends the review of coupons that have expired, and reviews one
// drop. It needs no data in Redis.
func (r *reviews) sweep(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < reviewTurn && ctx.Err() == nil; {
		worked, err := r.store.Work(ctx)
		if err != nil {
			return err
		}
		if !worked {
			break
		}
		r.parts.Inc()
	}
	for n := couponChunk; n == couponChunk && ctx.Err() == nil; {
		var err error
		if n, err = r.store.EndExpired(ctx, couponChunk); err != nil {
			return err
		}
	}
	ran, err := r.store.RunDue(ctx)
	if ran && err == nil {
		r.runs.Inc()
	}
	return err
}
