package chaos_test

import (
	"fmt"
	"slices"
)

// stackable are the fields of a drop whose coupons go together in one order.
var stackable = map[string]any{"stack_group": "any", "stacks_with": []string{"any"}, "max_per_order": 1}

// payTogether lets a user claim a coupon of each of two drops, locks both for one order, confirms it, and refunds a line
// and then the rest; a second user's order is released. Whatever fails, an order's coupons change together and once.
func (k *walk) payTogether(drops []int64, users []int64) {
	k.t.Helper()
	for i, u := range users[:2] {
		var coupons []string
		for _, template := range drops {
			a := k.claim("cart", template, u)
			if a.state != "issued" {
				k.t.Errorf("the claim of user %d is %+v", u, a)
				return
			}
			coupons = append(coupons, a.coupon)
		}
		order := fmt.Sprintf("cart-%d-%d", drops[0], i)
		step := func(name string, body any) {
			// A repetition is answered alike.
			for range 2 {
				r, final := k.crowd.send(k.ctx, call{method: "POST", path: "/orders/" + order + "/" + name, body: body})
				if !final || !r.ok() {
					k.t.Errorf("%s of order %s: %d %s", name, order, r.status, r.body)
					return
				}
			}
		}
		step("lock", map[string]any{"user_id": fmt.Sprint(u), "coupons": coupons, "currency": "CNY", "lines": []map[string]any{
			{"id": "1", "product": "tea", "quantity": 2, "amount": 6000}, {"id": "2", "product": "cup", "quantity": 1, "amount": 2000}}})
		if i == 1 {
			step("release", nil)
			k.ordered(order, "released", coupons, "unused", 2)
			continue
		}
		step("confirm", nil)
		k.ordered(order, "confirmed", coupons, "used", 2)
		step("refund", map[string]any{"refund_id": "R-1", "lines": []map[string]any{{"id": "1", "quantity": 1}}})
		step("refund", nil)
		k.ordered(order, "refunded", coupons, "unused", 3)
	}
}

// ordered checks the order, the state of its coupons and the steps that each of them took.
func (k *walk) ordered(order, want string, coupons []string, state string, steps int) {
	k.t.Helper()
	var is string
	var states []string
	var taken int
	err := k.stack.SQL.QueryRow(k.ctx, `select state, array(select c.state from coupons c where c.id = any($2::text[]::bigint[])),
		(select count(*) from coupon_operations o where o.coupon_id = any($2::text[]::bigint[]) and o.outcome = 'done' and o.from_state <> o.to_state)
		from coupon_orders where order_id = $1`, order, coupons).Scan(&is, &states, &taken)
	if err != nil || is != want || len(states) != len(coupons) || slices.ContainsFunc(states, func(s string) bool { return s != state }) || taken != steps*len(coupons) {
		k.t.Errorf("order %s is %s with coupons %v after %d steps, want %s with %s after %d each: %v", order, is, states, taken, want, state, steps, err)
	}
}
