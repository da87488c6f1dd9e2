package coupons

import (
	"context"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
)

// reviewTurn is how long the sweep carries out decisions before other sweeps have their turn.
const reviewTurn = 2 * time.Second

// reviews reviews protected drops that are over, and carries out the decisions of staff.
type reviews struct{ store couponsdb.Reviews }

// sweep carries out what was decided, ends the review of coupons that have expired, and reviews one
// drop. It needs no data in Redis.
func (r reviews) sweep(ctx context.Context) error {
	for began := time.Now(); time.Since(began) < reviewTurn && ctx.Err() == nil; {
		if worked, err := r.store.Work(ctx); err != nil || !worked {
			if err != nil {
				return err
			}
			break
		}
	}
	for n := couponChunk; n == couponChunk && ctx.Err() == nil; {
		var err error
		if n, err = r.store.EndExpired(ctx, couponChunk); err != nil {
			return err
		}
	}
	_, err := r.store.RunDue(ctx)
	return err
}
