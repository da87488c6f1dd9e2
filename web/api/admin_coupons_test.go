package api_test

import (
	"testing"
	"time"

	"dropbell/domain/staff"
)

func testAdminCoupons(t *testing.T) {
	r := newFixture(t, nil)
	template := r.drop(time.Hour)
	first, second := r.coupon(7, template), r.coupon(7, template)
	a := r.want(r.call(r.admin(), "GET", "/admin/users/7/coupons?limit=1", nil), 200, "")
	if a.at("coupons.0.coupon_id") != second || a.at("next") != second {
		t.Fatalf("%s", a.Body)
	}
	a = r.want(r.call(r.admin(), "GET", "/admin/users/7/coupons?limit=1&before="+second, nil), 200, "")
	if a.at("coupons.0.coupon_id") != first || a.at("next") != nil {
		t.Fatalf("%s", a.Body)
	}
	r.want(r.call(as(token(7)), "GET", "/admin/users/7/coupons", nil), 403, "forbidden")
	r.want(r.call(r.admin(), "POST", "/admin/coupons/"+first+"/revoke", map[string]any{"reason": ""}), 422, "invalid_request")
	r.want(r.call(as(r.keys[staff.ScopeRead]), "POST", "/admin/coupons/"+first+"/revoke", map[string]any{"reason": "x"}), 403, "forbidden")
	for range 2 {
		if a = r.want(r.call(r.admin(), "POST", "/admin/coupons/"+first+"/revoke", map[string]any{"reason": "mistake"}), 200, ""); a.at("state") != "revoked" {
			t.Fatalf("%s", a.Body)
		}
	}
	// The second one is returned to the stock.
	r.exec(`update templates set issued = 2 where id = $1`, template)
	if a = r.want(r.call(r.admin(), "POST", "/admin/coupons/"+second+"/revoke", map[string]any{"reason": "mistake", "return_to_stock": true}), 200, ""); a.at("returned_to_stock") != true {
		t.Fatalf("%s", a.Body)
	}
	a = r.want(r.call(r.admin(), "GET", "/admin/templates/"+template, nil), 200, "")
	if a.at("stock_ledger.issued") != 1.0 || a.at("stock_ledger.shelf") != a.at("stock_ledger.left") || a.at("stock_ledger.writing") != 0.0 ||
		a.at("coupons.issued") != 2.0 || a.at("coupons.returned") != 1.0 {
		t.Fatalf("%s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", "/admin/coupons/404404/revoke", map[string]any{"reason": "x"}), 404, "coupon_not_found")
}

func testGrants(t *testing.T) {
	r := newFixture(t, nil)
	path := "/admin/templates/" + r.drop(time.Hour) + "/grants"
	body := map[string]any{"user_ids": []string{"7", "8"}, "dry_run": true}
	a := r.want(r.call(r.admin("Idempotency-Key", "g1"), "POST", path, body), 202, "")
	if a.at("state") != "waiting" || a.at("dry_run") != true {
		t.Fatalf("%s", a.Body)
	}
	if b := r.want(r.call(r.admin("Idempotency-Key", "g1"), "POST", path, body), 202, ""); b.at("job_id") != a.at("job_id") {
		t.Fatalf("repeated: %s", b.Body)
	}
	a = r.want(r.call(r.admin(), "GET", "/admin/grants/"+a.at("job_id").(string), nil), 200, "")
	if a.at("dry_run") != true {
		t.Fatalf("%s", a.Body)
	}
	r.want(r.call(r.admin(), "GET", "/admin/grants/404404", nil), 404, "job_not_found")
	r.want(r.call(r.admin(), "POST", path, map[string]any{"user_ids": []string{"x"}}), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", path, map[string]any{"user_ids": []string{}}), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", "/admin/templates/404404/grants", body), 404, "template_not_found")
	r.want(r.call(as(r.keys[staff.ScopeRead]), "POST", path, body), 403, "forbidden")
	if n := r.number(`select count(*) from uploads`); n != 1 {
		t.Fatalf("%d lists are kept", n)
	}
}
