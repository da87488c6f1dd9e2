package api_test

import (
	"strings"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/staff"
)

func TestMoney(t *testing.T) { testMoney(t) }

// testMoney: orders with coupons and orders that the shop reports, in the figures of the drop and
// of its shop.
func testMoney(t *testing.T) {
	r := newFixture(t, nil)
	till := as(r.keys[staff.ScopePayment])
	drop := r.drop(time.Hour)
	for _, order := range []string{"A-1", "A-2"} {
		id := r.coupon(7, drop)
		r.want(r.call(till, "POST", "/coupons/"+id+"/lock", map[string]any{"order_id": order, "order_amount": 6000}), 200, "")
		r.want(r.call(till, "POST", "/coupons/"+id+"/confirm", map[string]any{"order_id": order}), 200, "")
		if order == "A-2" {
			r.want(r.call(till, "POST", "/coupons/"+id+"/refund", map[string]any{"order_id": order}), 200, "")
		}
	}
	r.exec(`delete from outbox`) // as if all events were handled and lost
	if _, err := couponsdb.NewCouponTallies(r.db).RecountSales(t.Context(), r.number(`select $1::bigint`, drop)); err != nil {
		t.Fatal(err)
	}
	r.exec(`update templates set opens_at = date_trunc('minute', now()) where id = $1`, drop)
	r.exec(`insert into sms_drop_costs (template_id, hour, currency, parts, micros) select $1, date_trunc('hour', now()) - ago, currency, 2, 90000
		from unnest(array['0', '1 hour', '40 days', '1 hour']::interval[], array['CNY', 'CNY', 'CNY', 'USD']) as c (ago, currency)`, drop)
	shop := r.number(`select shop_number from templates where id = $1`, drop)
	order := map[string]any{"shop_number": "10", "order_id": "B-1", "currency": "CNY", "amount": 4000, "user_id": "8"}
	if shop != 10 {
		t.Fatalf("the drop's shop is %d", shop)
	}
	money := func() answer {
		return r.want(r.call(r.admin(), "GET", "/admin/templates/"+drop+"/money", nil), 200, "")
	}
	if a := money(); a.at("without_coupon.reported") != false {
		t.Errorf("nothing was reported: %s", a.Body)
	}
	a := r.want(r.call(till, "POST", "/orders", order), 200, "")
	if b := r.want(r.call(till, "POST", "/orders", order), 200, ""); a.Body.String() != b.Body.String() {
		t.Errorf("repeated %s, was %s", b.Body, a.Body)
	}
	order["refunded"] = 500
	if a = r.want(r.call(till, "POST", "/orders", order), 200, ""); a.at("refunded") != 500.0 {
		t.Errorf("refunded: %s", a.Body)
	}
	order["refunded"] = 100
	if a = r.want(r.call(till, "POST", "/orders", order), 200, ""); a.at("refunded") != 500.0 {
		t.Errorf("an earlier report: %s", a.Body)
	}
	r.want(r.call(till, "POST", "/orders", map[string]any{"shop_number": "10", "order_id": "A-1", "currency": "CNY", "amount": 6000}), 200, "")
	a = money()
	for at, want := range map[string]any{"currency": "CNY", "orders": 1.0, "ordered": 6000.0, "discount": 2000.0, "revenue": 4000.0, "basket": 6000.0, "paid": 2.0, "paid_amount": 12000.0,
		"refunds": 1.0, "refunded": 4000.0, "discount_share": 0.333, "return": 2.0, "without_coupon.reported": true, "without_coupon.orders": 1.0, "without_coupon.amount": 3500.0,
		"without_coupon.basket": 3500.0, "hours.0.orders": 1.0, "sms.0.currency": "CNY", "sms.0.parts": 6.0, "sms.0.cost_micros": 270000.0, "sms.1.currency": "USD", "sms.1.cost_micros": 90000.0, "sms.2": nil} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
	a = r.want(r.call(r.admin(), "GET", "/admin/money?days=30&shop=10", nil), 200, "")
	for at, want := range map[string]any{"now.0.revenue": 4000.0, "now.1": nil, "before.0": nil, "hours.0.paid": 2.0,
		"sms.0.parts": 4.0, "sms.1.currency": "USD", "sms_before.0.cost_micros": 90000.0, "sms_before.1": nil} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
	for name, c := range map[string]struct {
		change map[string]any
		status int
		code   string
	}{
		"another amount":   {map[string]any{"amount": 4001, "refunded": 0}, 409, "order_differs"},
		"another customer": {map[string]any{"user_id": "9"}, 409, "order_differs"},
		"no such shop":     {map[string]any{"shop_number": "999"}, 404, "shop_not_found"},
		"no currency":      {map[string]any{"currency": "XXX"}, 422, "invalid_request"},
		"refunded more":    {map[string]any{"refunded": 4001}, 422, "invalid_request"},
		"in the future":    {map[string]any{"ordered_at": time.Now().Add(time.Hour).Format(time.RFC3339)}, 422, "invalid_request"},
		"two years ago":    {map[string]any{"ordered_at": "2024-01-01T00:00:00Z"}, 422, "invalid_request"},
		"order with space": {map[string]any{"order_id": "a b"}, 422, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			body := map[string]any{"shop_number": "10", "order_id": "B-1", "currency": "CNY", "amount": 4000, "user_id": "8"}
			for k, v := range c.change {
				body[k] = v
			}
			r.want(r.call(till, "POST", "/orders", body), c.status, c.code)
		})
	}
	r.want(r.call(r.admin(), "POST", "/orders", order), 403, "forbidden")
	r.want(r.call(r.admin(), "GET", "/admin/templates/"+r.draft(time.Hour)+"/money", nil), 409, "report_of_draft")
	r.exec(`insert into erased_users (user_id, erased_by) values (77, 'staff:1')`)
	a = r.want(r.call(till, "POST", "/orders", map[string]any{"shop_number": "10", "order_id": "B-9", "currency": "CNY", "amount": 1, "user_id": "77"}), 200, "")
	if a.at("user_id") != nil {
		t.Errorf("an erased customer was stored: %s", a.Body)
	}
}

func TestBudgets(t *testing.T) { testBudgets(t) }

// testBudgets: a drop is published and its stock raised as far as the budgets of the drop and of
// the shop pay for it.
func testBudgets(t *testing.T) {
	r := newFixture(t, nil)
	put := func(path string, body map[string]any, status int, code string) {
		t.Helper()
		r.want(r.call(r.admin(), "PUT", path, body), status, code)
	}
	drop := r.drop(time.Hour)
	stock := r.number(`select stock from templates where id = $1`, drop)
	own, shops := "/admin/templates/"+drop+"/budget", "/admin/shops/10/budget"
	put(own, map[string]any{"amount": 0, "reason": "none"}, 404, "budget_not_found")
	put(shops, map[string]any{"amount": 0, "currency": "CNY", "reason": "none"}, 404, "budget_not_found")
	put(own, map[string]any{"amount": 2000*stock - 1, "reason": "too little"}, 409, "budget_committed")
	put(shops, map[string]any{"amount": 2000*stock - 1, "currency": "CNY", "reason": "too little"}, 409, "budget_committed")
	put(own, map[string]any{"amount": 1, "reason": ""}, 422, "invalid_request")
	put("/admin/templates/999/budget", map[string]any{"amount": 1, "reason": "x"}, 404, "template_not_found")
	put(own, map[string]any{"amount": 2000 * stock, "reason": "as planned"}, 204, "")
	put(shops, map[string]any{"amount": 2000 * stock, "currency": "CNY", "reason": "as planned"}, 204, "")
	a := r.want(r.call(r.admin(), "GET", "/admin/budgets", nil), 200, "")
	for at, want := range map[string]any{"budgets.0.scope": "shop", "budgets.0.subject": "10", "budgets.0.committed": float64(2000 * stock), "budgets.0.used": 0.0, "budgets.0.level": "fine",
		"budgets.1.scope": "drop", "budgets.1.subject": drop, "budgets.1.currency": "CNY"} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+r.draft(time.Hour)+"/publish", nil), 409, "budget_short")
	put(shops, map[string]any{"amount": 4000 * stock, "currency": "CNY", "reason": "more"}, 204, "")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+r.draft(time.Hour)+"/publish", nil), 200, "")
	campaign := func(fields ...any) string {
		return r.want(r.call(r.admin(), "POST", "/admin/campaigns", campaignWish(fields...)), 201, "").at("id").(string)
	}
	put("/admin/campaigns/"+campaign()+"/budget", map[string]any{"amount": 5000, "reason": "x"}, 409, "budget_no_coupons")
	put("/admin/campaigns/999/budget", map[string]any{"amount": 5000, "reason": "x"}, 404, "campaign_not_found")
	gives := campaign("grant_template_id", drop)
	put("/admin/campaigns/"+gives+"/budget", map[string]any{"amount": 0, "reason": "x"}, 404, "budget_not_found")
	put("/admin/campaigns/"+gives+"/budget", map[string]any{"amount": 5000, "reason": "as planned"}, 204, "")
	a = r.want(r.call(r.admin(), "GET", "/admin/budgets", nil), 200, "")
	if got := a.Body.String(); !strings.Contains(got, `"scope":"campaign","subject":"`+gives+`"`) {
		t.Errorf("the campaign's budget is not listed: %s", got)
	}
	r.exec(`update templates set claim_mode = 'gate' where id = $1`, drop)
	put("/admin/campaigns/"+gives+"/budget", map[string]any{"amount": 6000, "reason": "behind the gate"}, 204, "")
}

func TestHoldOut(t *testing.T) { testHoldOut(t) }

// testHoldOut: a draft's hold-out is set, checked and changed; after the publication it is fixed, and
// the drop's money has the comparison.
func testHoldOut(t *testing.T) {
	r := newFixture(t, nil)
	path := "/admin/templates/" + r.draft(time.Hour)
	change := func(version string, percent any, status int, code string) answer {
		t.Helper()
		return r.want(r.call(r.admin("If-Match", version), "PATCH", path, map[string]any{"hold_out_percent": percent}), status, code)
	}
	if a := r.want(r.call(r.admin(), "GET", path, nil), 200, ""); a.at("hold_out_percent") != nil {
		t.Errorf("the default: %s", a.Body)
	}
	change("1", 91, 422, "invalid_request")
	if a := change("1", 25, 200, ""); a.at("hold_out_percent") != 25.0 {
		t.Errorf("changed: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/publish", nil), 200, "")
	change("3", 30, 422, "invalid_request")
	a := r.want(r.call(r.admin(), "GET", path+"/money", nil), 200, "")
	for at, want := range map[string]any{"increment.currency": "CNY", "increment.reached.users": 0.0, "increment.held_out.orders": 0.0, "increment.revenue.enough": false, "increment.orders.low": nil} {
		if got := a.at(at); got != want {
			t.Errorf("%s is %v, want %v: %s", at, got, want, a.Body)
		}
	}
}
