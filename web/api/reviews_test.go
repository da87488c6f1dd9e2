package api_test

import (
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
)

func testReviews(t *testing.T) {
	r := newFixture(t, nil)
	store := couponsdb.NewReviews(r.db)
	work := func() {
		t.Helper()
		for more := true; more; {
			var err error
			more, err = store.Work(t.Context())
			r.must(err)
		}
	}
	drop := r.open(2)
	r.exec(`update templates set protection = 'standard', issued = 2 where id = $1`, drop)
	one, two := r.coupon(7, drop), r.coupon(8, drop)
	r.exec(`insert into review_runs (template_id, shop_number, claims, found, left_out) values ($1, 10, 2, 2, 0)`, drop)
	r.exec(`with g as (insert into reviews (template_id, shop_number, rules, facts, coupons)
			values ($1, 10, '{at_once,nothing_opened}', '{"claims": 2, "networks": 1, "agents": 1, "from_ms": 3, "to_ms": 9, "nothing_opened": 2}', 2) returning id)
		insert into review_coupons (review_id, coupon_id, user_id) select g.id, c.id, c.user_id from g, coupons c where c.template_id = $1`, drop)
	list := r.want(r.call(r.admin(), "GET", "/admin/reviews?asking=true", nil), 200, "")
	id, _ := list.at("groups.0.id").(string)
	if list.at("groups.0.rules.0") != "at_once" || list.at("groups.0.coupons") != 2.0 || list.at("groups.0.networks") != 1.0 || list.at("groups.0.to_ms") != 9.0 ||
		list.at("groups.0.may.0") != "suspend" || list.at("groups.0.may.1") != "let_be" {
		t.Fatalf("the groups are %s", list.Body)
	}
	group := "/admin/reviews/" + id
	mine := "/coupons/" + one
	r.want(r.call(as(token(7)), "GET", mine+"/review", nil), 404, "review_not_found")
	r.want(r.call(as(token(7)), "POST", mine+"/appeal", map[string]any{"text": "It was me."}), 409, "coupon_not_suspended")
	r.want(r.call(r.admin(), "POST", group+"/decision", map[string]any{"decision": "suspend", "reason": ""}), 422, "invalid_request")
	r.want(r.call(r.admin(), "POST", group+"/decision", map[string]any{"decision": "restore", "reason": "x"}), 409, "review_decided")
	if got := r.want(r.call(r.admin(), "POST", group+"/decision", map[string]any{"decision": "suspend", "reason": "a script"}), 200, ""); got.json["state"] != "suspending" {
		t.Errorf("suspended: %s", got.Body)
	}
	work()
	if got := r.want(r.call(as(token(7)), "GET", "/coupons?state=suspended", nil), 200, ""); got.at("coupons.0.coupon_id") != one {
		t.Errorf("the owner sees %s", got.Body)
	}
	r.want(r.call(as(r.keys["payment"]), "POST", mine+"/lock", map[string]any{"order_id": "o", "order_amount": 100000, "currency": "CNY"}), 409, "coupon_suspended")
	why := r.want(r.call(as(token(7)), "GET", mine+"/review", nil), 200, "")
	if why.json["state"] != "suspended" || why.json["sentence"] == "" || why.json["sentence_zh"] == "" {
		t.Errorf("the owner reads %s", why.Body)
	}
	r.want(r.call(as(token(8)), "GET", mine+"/review", nil), 404, "review_not_found")
	r.want(r.call(as(token(7)), "POST", mine+"/appeal", map[string]any{"text": "It was me."}), 204, "")
	r.want(r.call(as(token(7)), "POST", mine+"/appeal", map[string]any{"text": "It was me."}), 409, "already_appealed")
	r.want(r.call(r.admin(), "POST", group+"/decision", map[string]any{"decision": "return", "reason": "x"}), 409, "review_has_appeals")
	if got := r.want(r.call(r.admin(), "GET", group+"/coupons?appealed=true", nil), 200, ""); got.at("coupons.0.coupon_id") != one || got.at("coupons.0.appeal") != "It was me." || got.at("coupons.1") != nil {
		t.Errorf("the appeals are %s", got.Body)
	}
	r.want(r.call(r.admin(), "POST", group+"/appeals", map[string]any{"coupon_id": one, "answer": "restored", "reason": "a customer for years"}), 204, "")
	r.want(r.call(r.admin(), "POST", group+"/appeals", map[string]any{"coupon_id": one, "answer": "upheld", "reason": "x"}), 409, "appeal_answered")
	r.want(r.call(r.admin(), "POST", group+"/decision", map[string]any{"decision": "return", "reason": "a script"}), 200, "")
	work()
	if got := r.want(r.call(r.admin(), "GET", group, nil), 200, ""); got.json["state"] != "returned" || got.json["returned"] != 1.0 || got.json["restored"] != 1.0 {
		t.Errorf("the group is %s", got.Body)
	}
	if got := r.want(r.call(as(token(8)), "GET", "/coupons?state=revoked", nil), 200, ""); got.at("coupons.0.coupon_id") != two {
		t.Errorf("user 8 has %s", got.Body)
	}
	fairness := "/templates/" + drop + "/fairness"
	if got := r.want(r.call(as(""), "GET", fairness, nil), 200, ""); got.json["over"] != false || got.json["entries"] != nil {
		t.Errorf("before the end: %s", got.Body)
	}
	r.exec(`update templates set opens_at = date_trunc('second', now()) - interval '2 hours', closes_at = date_trunc('second', now()) - interval '1 hour' where id = $1`, drop)
	if got := r.want(r.call(as(""), "GET", fairness, nil), 200, ""); got.json["over"] != true || got.json["entries"] != 2.0 || got.json["taken_back"] != 1.0 || got.json["restored"] != 1.0 ||
		got.json["refused"] != 0.0 || got.json["reviewed_at"] == nil {
		t.Errorf("after the end: %s", got.Body)
	}
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+drop+"/review", nil), 204, "")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+r.drop(time.Hour)+"/review", nil), 404, "review_not_found")
}
