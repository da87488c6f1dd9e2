package coupons_test

import (
	"context"
	"fmt"
	"testing"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
)

// TestCouponsOfARushBesideAnOpenSnapshot: the figures and the list of a drop's
// coupons find the drop's row without visiting every row version that PostgreSQL
// keeps for the open snapshot.
func TestCouponsOfARushBesideAnOpenSnapshot(t *testing.T) {
	const groups, coupons = 4000, 20
	w := newFixture(t)
	r := w.Rush(groups)
	w.Fill("coupons", fmt.Sprintf("generate_series(1, %d) n", coupons), pgtest.Row{"template_id": r.ID, "user_id": pgtest.SQL("n")})
	r.Visits("what became of its coupons", 5, func(ctx context.Context) error {
		tally, err := couponsdb.NewCouponTallies(r.DB).Tally(ctx, r.ID)
		if err == nil && tally.Issued != groups {
			err = fmt.Errorf("%d coupons are issued", tally.Issued)
		}
		return err
	})
	r.Visits("its coupons", 5*coupons, func(ctx context.Context) error {
		list, err := couponsdb.NewCouponSteps(r.DB).Listed(ctx, coupon.Query{TemplateID: r.ID, Limit: 50})
		if err == nil && len(list) != coupons {
			err = fmt.Errorf("%d coupons are listed", len(list))
		}
		return err
	})
}
