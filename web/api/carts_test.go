package api_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// worth publishes a drop with these fields and gives the user a coupon of it.
func (r *fixture) worth(by int64, fields map[string]any) (coupon, drop string) {
	r.Helper()
	w := wish(time.Hour)
	maps.Copy(w, fields)
	drop = r.want(r.call(r.admin(), "POST", "/admin/templates", w), 201, "").json["id"].(string)
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+drop+"/publish", nil), 200, "")
	return r.coupon(by, drop), drop
}

func cartOf(amounts ...int) map[string]any {
	var lines []map[string]any
	for i, a := range amounts {
		lines = append(lines, map[string]any{"id": fmt.Sprint(i + 1), "product": []string{"tea", "cup"}[i%2], "quantity": 2, "amount": a})
	}
	return map[string]any{"currency": "CNY", "lines": lines}
}

// together are the fields of drops whose coupons go together.
func together(fields map[string]any) map[string]any {
	fields["stack_group"], fields["stacks_with"] = "any", []string{"any"}
	return fields
}

func testQualify(t *testing.T) {
	r := newFixture(t, nil)
	me, till := as(token(7)), as(r.keys[staff.ScopePayment])
	fixed, drop := r.worth(7, together(map[string]any{}))
	high, _ := r.worth(7, together(map[string]any{"kind": "threshold_off", "amount_off": 3000, "threshold": 9000}))
	tenth, _ := r.worth(7, together(map[string]any{"kind": "percent_off", "amount_off": 0, "percent_off": 10, "max_off": 5000}))
	alone, _ := r.worth(7, map[string]any{"amount_off": 2500})
	theirs, _ := r.worth(8, nil)
	if shown := r.want(r.call(r.admin(), "GET", "/admin/templates/"+drop, nil), 200, ""); shown.at("stack_group") != "any" || shown.at("stacks_with.0") != "any" ||
		shown.at("max_per_order") != 1.0 || shown.at("refund_rule") != "keep" {
		t.Errorf("the drop: %s", shown.Body)
	}
	a := r.want(r.call(me, "POST", "/coupons/qualify", map[string]any{"order": cartOf(5000, 3000)}), 200, "")
	// 20.00 off, then 10 % of 60.00; the coupon that stands alone takes 25.00 off.
	if a.at("best.discount") != 2600.0 || a.at("best.coupons.0") != fixed || a.at("best.coupons.1") != tenth || a.at("best.exact") != true ||
		a.at("best.lines.0.amount") != 1625.0 || a.at("best.lines.1.amount") != 975.0 {
		t.Errorf("best: %s", a.Body)
	}
	if a.at("usable.0.coupon") != alone || a.at("unusable.0.coupon") != high || a.at("unusable.0.reason") != "below_threshold" ||
		a.at("unusable.0.missing") != 1000.0 || a.at("expires_soon.2.coupon") == nil {
		t.Errorf("%s", a.Body)
	}
	// Named coupons, for a payment service: in any state, and of no other user.
	r.exec(`update coupons set state = 'suspended' where id = $1`, tenth)
	named := r.want(r.call(till, "POST", "/coupons/qualify", map[string]any{"user_id": "7", "order": cartOf(5000), "coupons": []string{fixed, tenth, theirs, "999999", fixed}}), 200, "")
	if named.at("best.discount") != 2000.0 || named.at("usable.1.coupon") != nil || named.at("unusable.0.reason") != "suspended" || named.at("unusable.1.reason") != "coupon_not_found" ||
		named.at("unusable.2.coupon") != "999999" {
		t.Errorf("named: %s", named.Body)
	}
	shop := cartOf(5000)
	shop["shop_number"] = "11"
	if other := r.want(r.call(me, "POST", "/coupons/qualify", map[string]any{"order": shop}), 200, ""); other.at("unusable.0.reason") != "other_shop" ||
		other.at("best.discount") != 0.0 || other.at("best.exact") != true {
		t.Errorf("another shop: %s", other.Body)
	}
	if n := r.number(`select count(*) from coupon_operations`); n != 0 {
		t.Errorf("%d steps were stored", n)
	}
	r.want(r.call(till, "POST", "/coupons/qualify", map[string]any{"order": cartOf(5000)}), 422, "invalid_request")
	r.want(r.call(me, "POST", "/coupons/qualify", map[string]any{"user_id": "8", "order": cartOf(5000)}), 422, "invalid_request")
	r.want(r.call(as(r.keys[staff.ScopeAdmin]), "POST", "/coupons/qualify", map[string]any{"order": cartOf(5000)}), 401, "unauthenticated")
	twice := cartOf(5000, 3000)
	twice["lines"].([]map[string]any)[1]["id"] = "1"
	if bad := r.want(r.call(me, "POST", "/coupons/qualify", map[string]any{"order": twice}), 422, "invalid_request"); bad.at("errors.0.location") != "body.order.lines[1].id" {
		t.Errorf("a line twice: %s", bad.Body)
	}
}

func testCartOrders(t *testing.T) {
	r := newFixture(t, nil)
	till := as(r.keys[staff.ScopePayment])
	a, _ := r.worth(7, together(map[string]any{}))
	b, _ := r.worth(7, together(map[string]any{"kind": "threshold_off", "amount_off": 1000, "threshold": 5500, "refund_rule": "recompute"}))
	alone, _ := r.worth(7, nil)
	lock := func(revision int, coupons ...string) map[string]any {
		w := cartOf(6000, 2000)
		w["user_id"], w["coupons"], w["revision"] = "7", coupons, revision
		return w
	}
	first := r.want(r.call(till, "POST", "/orders/A-1/lock", lock(0, a, b)), 200, "")
	if first.at("state") != "locked" || first.at("discount") != 3000.0 || first.at("lines.0.discount") != 2250.0 || first.at("coupons.1.state") != "locked" || first.at("locked_until") == nil {
		t.Fatalf("locked: %s", first.Body)
	}
	if again := r.want(r.call(till, "POST", "/orders/A-1/lock", lock(0, b, a)), 200, ""); again.Body.String() != first.Body.String() {
		t.Errorf("repeated: %s, first %s", again.Body, first.Body)
	}
	r.want(r.call(till, "POST", "/orders/A-1/lock", lock(0, a)), 409, "cart_changed")
	r.want(r.call(till, "POST", "/orders/A-2/lock", lock(0, alone, a)), 409, "combination_refused")
	r.want(r.call(till, "POST", "/orders/A-2/lock", lock(0, "999999")), 404, "coupon_not_found")
	r.want(r.call(till, "POST", "/orders/A-2/lock", lock(0)), 422, "invalid_request")
	expecting := lock(0, alone)
	expecting["expect_discount"] = 1
	r.want(r.call(till, "POST", "/orders/A-2/lock", expecting), 409, "cart_changed")
	r.want(r.call(till, "POST", "/orders/A-9/confirm", nil), 404, "order_not_found")
	for _, path := range []string{"/orders/A%201/confirm", "/orders/A%2F1/release", "/orders/A%251/refund"} {
		if bad := r.want(r.call(till, "POST", path, nil), 422, "invalid_request"); bad.at("errors.0.location") != "path.order" {
			t.Errorf("%s: %s", path, bad.Body)
		}
	}
	r.want(r.call(till, "POST", "/orders/A-1/confirm", map[string]any{"revision": 7}), 409, "cart_changed")
	for range 2 {
		if used := r.want(r.call(till, "POST", "/orders/A-1/confirm", nil), 200, ""); used.at("state") != "confirmed" || used.at("coupons.0.state") != "used" {
			t.Errorf("confirmed: %s", used.Body)
		}
	}
	r.want(r.call(till, "POST", "/orders/A-1/release", nil), 409, "coupon_not_usable")
	r.want(r.call(till, "POST", "/orders/A-1/refund", map[string]any{"lines": []map[string]any{{"id": "1", "quantity": 1}}}), 422, "invalid_request")
	// One of two of the first line: 30.00 less 11.25 of the discount. 50.00 stay, below the threshold of 55.00: 6.25 more is taken back.
	part := map[string]any{"refund_id": "R-1", "lines": []map[string]any{{"id": "1", "quantity": 1}}}
	for range 2 {
		if back := r.want(r.call(till, "POST", "/orders/A-1/refund", part), 200, ""); back.at("pay_back") != 1875.0-625 || back.at("clawback") != 625.0 || back.at("order.lines.0.returned") != 1.0 {
			t.Errorf("a line comes back: %s", back.Body)
		}
	}
	part["lines"] = []map[string]any{{"id": "2", "quantity": 1}}
	r.want(r.call(till, "POST", "/orders/A-1/refund", part), 422, "idempotency_conflict")
	for range 2 {
		rest := r.want(r.call(till, "POST", "/orders/A-1/refund", map[string]any{"refund_id": "R-2"}), 200, "")
		if rest.at("order.state") != "refunded" || rest.at("order.paid_back") != 5000.0 || rest.at("coupons.1") != b {
			t.Errorf("all that was left: %s", rest.Body)
		}
	}
	r.want(r.call(till, "POST", "/orders/A-1/refund", map[string]any{"refund_id": "R-1"}), 422, "idempotency_conflict")
	if freed := r.want(r.call(till, "POST", "/orders/A-3/release", nil), 200, ""); freed.at("state") != "released" {
		t.Errorf("released: %s", freed.Body)
	}
	r.want(r.call(till, "POST", "/orders/A-3/lock", lock(0, a)), 409, "coupon_not_usable")
	r.exec(`update coupons set state = 'suspended' where id = $1`, a)
	r.want(r.call(till, "POST", "/orders/A-4/lock", lock(0, a)), 409, "coupon_suspended")
	// An erased user's orders stay, without the user.
	r.want(r.call(r.admin(), "DELETE", "/admin/users/7", nil), 204, "")
	if n := r.number(`select count(*) from coupon_orders where user_id = 7`); n != 0 {
		t.Errorf("%d orders name the erased user", n)
	}
}
