package coupons_test

import (
	"fmt"
	"slices"
	"testing"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/cell"
	"dropbell/domain/coupon"
)

// TestCouponsByState: the coupons shown as expired are exactly the coupons stored
// as expired and the coupons that the next sweep will expire.
func TestCouponsByState(t *testing.T) {
	w := newFixture(t)
	w.Drop(pgtest.Drop{ID: 1, Shop: 11})
	w.Drop(pgtest.Drop{ID: 2, Shop: 10})
	w.Fill("coupons", "generate_series(1, 60) n", pgtest.Row{"template_id": pgtest.SQL("1 + n % 2"), "user_id": pgtest.SQL("1 + n % 3"),
		"state":      pgtest.SQL("(array['unused', 'unused', 'locked', 'used', 'expired', 'revoked'])[1 + n % 6]"),
		"expires_at": pgtest.SQL("now() + case when n % 6 = 1 then -1 else 1 end * interval '1 hour'")})
	all := func(q coupon.Query) (ids []int64) {
		t.Helper()
		q.Limit = 7 // a page at a time
		for {
			list, err := couponsdb.NewCouponSteps(w.DB).Listed(t.Context(), q)
			w.Must(err)
			if len(list) == 0 {
				return ids
			}
			for _, l := range list {
				if q.State != "" && l.At(l.Now) != q.State {
					t.Errorf("%+v shows a coupon that is %s", q, l.At(l.Now))
				}
				ids = append(ids, l.ID)
			}
			q.BeforeID = list[len(list)-1].ID
		}
	}
	for _, q := range []coupon.Query{{}, {TemplateID: 2}, {UserID: 3}, {TemplateID: 1, UserID: 2}, {Shops: []int64{11}}} {
		var byState []int64
		for _, s := range coupon.States() {
			q.State = s
			byState = append(byState, all(q)...)
		}
		q.State = ""
		whole := all(q)
		if !slices.IsSortedFunc(whole, func(a, b int64) int { return int(b - a) }) || len(whole) == 0 {
			t.Errorf("%+v: %v", q, whole)
		}
		slices.Sort(byState)
		slices.Sort(whole)
		if !slices.Equal(byState, whole) {
			t.Errorf("%+v: by state %v, together %v", q, byState, whole)
		}
	}
}

// TestManyOverdueCoupons: the sweep is far behind, and lists by state are still
// complete.
func TestManyOverdueCoupons(t *testing.T) {
	p := newPaymentFixture(t)
	const overdue = 10_050
	p.Fill("coupons", fmt.Sprintf("generate_series(1, %d) n", overdue), pgtest.Row{"template_id": p.drop.ID, "user_id": pgtest.SQL("n"), "expires_at": pgtest.SQL("now() - n * interval '1 millisecond'")})
	newest := p.Number(`select max(id) from coupons`)
	for state, want := range map[coupon.State]int{coupon.Expired: 20, coupon.Unused: 0, "": 20} {
		for _, q := range []coupon.Query{{}, {TemplateID: p.drop.ID}, {Shops: []int64{p.drop.ShopNumber}}, {BeforeID: newest - 5000*cell.Count}} {
			q.State, q.Limit = state, 20
			list, err := p.store.Listed(t.Context(), q)
			p.Must(err)
			first := newest
			if q.BeforeID > 0 {
				first = q.BeforeID - cell.Count
			}
			if len(list) != want || want > 0 && list[0].ID != first {
				t.Errorf("%+v: %d coupons, want %d from %d on", q, len(list), want, first)
			}
		}
	}
}
