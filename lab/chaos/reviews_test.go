package chaos_test

import (
	"fmt"
	"net/http"
	"time"
)

// suspendAndDecide lets users claim all coupons of a drop and staff suspend these coupons, which no
// order can lock then. Then staff give the coupons back, or in every second evening return them to
// the stock, from which other users claim them.
func (k *walk) suspendAndDecide(template int64, users []int64) {
	k.t.Helper()
	for _, u := range users[:forSale] {
		if a := k.claim("brakes", template, u); a.state != "issued" {
			k.t.Errorf("the claim of user %d is %+v", u, a)
		}
	}
	k.c.calm(template)
	var group int64
	if err := k.stack.SQL.QueryRow(k.ctx, `with v as (insert into review_runs (template_id, shop_number, claims, found, left_out) values ($1, $2, $3, $3, 0)),
		g as (insert into reviews (template_id, shop_number, rules, facts, coupons) values ($1, $2, '{at_once}', '{"claims": 3}', $3) returning id),
		c as (insert into review_coupons (review_id, coupon_id, user_id) select g.id, c.id, c.user_id from g, coupons c where c.template_id = $1)
		select id from g`, template, shopNumber, forSale).Scan(&group); err != nil {
		k.t.Error(err)
		return
	}
	k.decide(group, "suspend", "suspended")
	rows := k.c.rows(template)
	for _, r := range rows {
		if a := k.lock(r.coupon); a.status != http.StatusConflict || a.code != "coupon_suspended" {
			k.t.Errorf("the lock of the suspended coupon %s: %d %s", r.coupon, a.status, a.body)
		}
	}
	if k.evening%2 == 0 {
		k.decide(group, "restore", "restored")
		for _, r := range rows {
			if a := k.lock(r.coupon); !a.ok() {
				k.t.Errorf("the lock of the restored coupon %s: %d %s", r.coupon, a.status, a.body)
			}
		}
	} else {
		k.decide(group, "return", "returned")
		for _, u := range users[forSale : 2*forSale] {
			if a := k.claim("brakes", template, u); a.state != "issued" {
				k.t.Errorf("the claim of user %d from returned stock is %+v", u, a)
			}
		}
	}
	k.c.calm(template)
	k.reviewed(template, group)
}

// decide decides about a group, and waits until the decision is carried out.
func (k *walk) decide(group int64, decision, state string) {
	k.t.Helper()
	r, final := k.crowd.send(k.ctx, call{method: http.MethodPost, path: fmt.Sprintf("/admin/reviews/%d/decision", group), body: map[string]any{"decision": decision, "reason": "chaos"}})
	if !final || !r.ok() && r.status != http.StatusConflict { // an attempt before may have decided it
		k.t.Errorf("to %s the group %d: %d %s", decision, group, r.status, r.body)
	}
	var now string
	for end := time.Now().Add(time.Minute); now != state; wait(50*time.Millisecond, k.ctx.Done()) {
		if err := k.stack.SQL.QueryRow(k.ctx, `select state from reviews where id = $1`, group).Scan(&now); err != nil || time.Now().After(end) {
			k.t.Errorf("the group %d is %s and not %s: %v", group, now, state, err)
			return
		}
	}
}

// lock locks a coupon for an order of its own.
func (k *walk) lock(coupon string) reply {
	r, _ := k.crowd.send(k.ctx, call{method: http.MethodPost, path: "/coupons/" + coupon + "/lock", body: map[string]any{"order_id": "order-" + coupon, "order_amount": 5000}})
	return r
}

// reviewed compares the group's figures with the coupons and their steps: each coupon was suspended
// once, and then restored or returned once.
func (k *walk) reviewed(template, group int64) {
	k.t.Helper()
	var suspended, restored, returned, valid, steps, taken int64
	err := k.stack.SQL.QueryRow(k.ctx, `select r.suspended, r.restored, r.returned,
		(select count(*) from coupons where template_id = $1 and state in ('unused', 'locked')),
		(select count(*) from coupon_operations o join coupons c on c.id = o.coupon_id where c.template_id = $1 and o.to_state = 'suspended' and o.from_state <> o.to_state and o.outcome = 'done'),
		(select count(*) from coupons where template_id = $1 and state = 'revoked')
		from reviews r where id = $2`, template, group).Scan(&suspended, &restored, &returned, &valid, &steps, &taken)
	if err != nil || suspended != 0 || restored+returned != forSale || valid != forSale || steps != forSale || taken != returned {
		k.t.Errorf("drop %d: %d suspended, %d restored and %d returned of %d; %d valid coupons, %d steps to suspended, %d revoked, %v",
			template, suspended, restored, returned, forSale, valid, steps, taken, err)
	}
}
