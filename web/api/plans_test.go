package api_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest/plans"
)

// The statements of frequent calls must come to have one plan.
func TestFrequentStatementsArePlannedOnce(t *testing.T) {
	const calls = 30
	r := newFixture(t, nil)
	till := as(r.keys["payment"])
	coming, later, open := r.drop(2*time.Hour), r.drop(3*time.Hour), r.open(1000)
	r.exec(`insert into users (id, locale, timezone) select n, 'en', 'UTC' from generate_series(1, 2000) n on conflict do nothing`)
	r.want(r.call(as(token(7)), "POST", "/reservations", reserve(coming, "app", 5, "app", 10, "app", 15)), 201, "")
	for slot := 3; slot > 0; slot-- {
		r.deliver(coming, slot, 7)
	}
	// Then the planner takes an array of ten ids, its guess, for dearer than the user's array.
	r.exec(`insert into slots (template_id, slot, opens_at, due_at, state, fired_at)
		select $1, 1, opens_at + n * interval '1 day', due_at + n * interval '1 day', 'finished', now()
		from slots, generate_series(1, 400) n where template_id = $1 and slot = 1`, later)
	r.exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count, finished_at)
		select 'reminder', s.id, s.template_id, c, n * 1000, n * 1000 + 999, 'done', s.due_at, s.opens_at, '', '', 0, 0, now()
		from slots s, generate_series(0, 4) c, generate_series(1, 20) n`)
	r.exec(`analyze`)
	for i := range calls {
		me := as(token(7))
		r.want(r.call(me, "GET", "/inbox", nil), 200, "")
		r.want(r.call(me, "POST", "/inbox/read", nil), 200, "")
		r.want(r.call(me, "GET", "/reservations", nil), 200, "")
		r.want(r.call(me, "GET", "/coupons", nil), 200, "")
		r.want(r.call(me, "GET", "/preferences", nil), 200, "")
		r.want(r.call(me, "GET", "/reservations/"+coming, nil), 200, "")
		r.want(r.call(me, "GET", "/reservations/"+coming+"/explain", nil), 200, "")
		r.want(r.call(me, "GET", "/templates/"+open, nil), 200, "")
		other := as(token(100 + i))
		r.want(r.call(other, "POST", "/reservations", reserve(later, "app", 5)), 201, "")
		claimed := r.want(r.call(other, "POST", "/claims", claimOf(open)), 201, "")
		r.want(r.call(other, "GET", "/claims/"+claimed.json["claim_id"].(string), nil), 200, "")
		coupon := "/coupons/" + claimed.json["coupon_id"].(string)
		r.want(r.call(other, "GET", coupon, nil), 200, "")
		r.want(r.call(till, "POST", coupon+"/lock", map[string]any{"order_id": fmt.Sprint("A-", i), "order_amount": 6000}), 200, "")
		r.want(r.call(till, "POST", coupon+"/confirm", map[string]any{"order_id": fmt.Sprint("A-", i)}), 200, "")
		r.want(r.call(till, "POST", coupon+"/refund", map[string]any{"order_id": fmt.Sprint("A-", i)}), 200, "")
		r.want(r.call(other, "DELETE", "/reservations/"+later, nil), 200, "")
	}
	for _, s := range plans.Often(t, r.sql, calls/2) {
		t.Error(s)
	}
}
