package coupons_test

import (
	"slices"
	"testing"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/coupon"
)

// TestCouponsByState: the coupons shown as expired are those stored so and those that
// the next sweep will expire, and no others.
func TestCouponsByState(t *testing.T) {
	w := newFixture(t)
	w.Exec(`insert into shops values (10, 's', 'UTC'), (11, 's', 'UTC')`)
	w.Exec(`insert into templates (shop_number, name, kind, amount_off, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state)
		select 10 + n % 2, case when n % 50 = 0 then '春节 ' else '' end || 'Drop number ' || n, 'amount_off', 1, 'CNY', 'shop', 10, 1, date_trunc('second', now()) + (n - 50) * interval '1 minute',
			date_trunc('second', now()) + n * interval '2 hours' + interval '1 year', 1, 'claim', 'durable', case when n % 1999 = 0 then 'paused' else 'published' end
		from generate_series(1, $1) n`, 2)
	w.Exec(`insert into coupons (template_id, user_id, claim_id, origin, state, issued_at, expires_at)
		select 1 + n % 2, 1 + n % 3, n, 'claim', (array['unused', 'unused', 'locked', 'used', 'expired', 'revoked'])[1 + n % 6], now() - interval '2 days',
			now() + case when n % 6 = 1 then -1 else 1 end * interval '1 hour' from generate_series(1, 60) n`)
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

// TestManyOverdueCoupons: the sweep is far behind, and lists by state are complete
// all the same.
func TestManyOverdueCoupons(t *testing.T) {
	p := newPaymentFixture(t)
	const overdue = 10_050
	p.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		select $1, n, n, 'claim', now() - interval '2 days', now() - n * interval '1 millisecond' from generate_series(1, $2::bigint) n`, p.drop.ID, overdue)
	newest := p.Number(`select max(id) from coupons`)
	for state, want := range map[coupon.State]int{coupon.Expired: 20, coupon.Unused: 0, "": 20} {
		for _, q := range []coupon.Query{{}, {TemplateID: p.drop.ID}, {Shops: []int64{p.drop.ShopNumber}}, {BeforeID: newest - 5000}} {
			q.State, q.Limit = state, 20
			list, err := p.store.Listed(t.Context(), q)
			p.Must(err)
			first := newest
			if q.BeforeID > 0 {
				first = q.BeforeID - 1
			}
			if len(list) != want || want > 0 && list[0].ID != first {
				t.Errorf("%+v: %d coupons, want %d from %d on", q, len(list), want, first)
			}
		}
	}
}
