package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
)

// coupon gives the user a coupon of a template that is published as wished.
func (r *fixture) coupon(userID int64, template string) string {
	r.Helper()
	return fmt.Sprint(r.number(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		values ($1, $2, (random() * 1e15)::bigint + 1, 'claim', now(), now() + interval '1 hour') returning id`, template, userID))
}

func testPayment(t *testing.T) {
	r := newFixture(t, nil)
	till := as(r.keys[staff.ScopePayment])
	id := r.coupon(7, r.drop(time.Hour))
	lock := map[string]any{"order_id": "A-1", "order_amount": 6000, "currency": "CNY", "user_id": "7"}
	a := r.want(r.call(till, "POST", "/coupons/"+id+"/lock", lock), 200, "")
	if a.at("coupon_id") != id || a.at("state") != "locked" || a.at("order_id") != "A-1" || a.at("discount") != 2000.0 || a.at("currency") != "CNY" {
		t.Fatalf("locked: %s", a.Body)
	}
	until, err := time.Parse(time.RFC3339Nano, a.at("locked_until").(string))
	if left := time.Until(until); err != nil || left < 14*time.Minute || left > 16*time.Minute || !strings.HasSuffix(a.at("locked_until").(string), "Z") {
		t.Fatalf("locked until %v", a.at("locked_until"))
	}
	if b := r.want(r.call(till, "POST", "/coupons/"+id+"/lock", lock), 200, ""); b.Body.String() != a.Body.String() {
		t.Fatalf("repeated %s\nwas %s", b.Body, a.Body)
	}
	r.want(r.call(till, "POST", "/coupons/"+id+"/lock", map[string]any{"order_id": "A-2", "order_amount": 6000}), 409, "coupon_not_usable")
	r.want(r.call(till, "POST", "/coupons/"+id+"/lock", map[string]any{"order_id": "A-1", "order_amount": 6001}), 422, "idempotency_conflict")
	other := r.want(r.call(till, "POST", "/coupons/"+id+"/lock", map[string]any{"order_id": "A-1", "order_amount": 6000, "currency": "USD"}), 422, "idempotency_conflict")
	if detail := other.at("detail").(string); strings.Contains(detail, "amounts") || !strings.Contains(detail, "USD") {
		t.Errorf("another currency: %s", detail)
	}
	r.want(r.call(till, "POST", "/coupons/"+id+"/confirm", map[string]any{"order_id": "A-2"}), 409, "coupon_not_usable")
	for range 2 {
		a = r.want(r.call(till, "POST", "/coupons/"+id+"/confirm", map[string]any{"order_id": "A-1"}), 200, "")
		if a.at("state") != "used" || a.at("used_at") == nil || a.at("locked_until") != nil {
			t.Fatalf("confirmed: %s", a.Body)
		}
	}
	r.want(r.call(till, "POST", "/coupons/"+id+"/release", map[string]any{"order_id": "A-1"}), 409, "coupon_not_usable")
	for range 2 {
		a = r.want(r.call(till, "POST", "/coupons/"+id+"/refund", map[string]any{"order_id": "A-1"}), 200, "")
		if a.at("state") != "unused" || a.at("order_id") != nil || a.at("discount") != nil {
			t.Fatalf("refunded: %s", a.Body)
		}
	}
	r.want(r.call(till, "POST", "/coupons/"+id+"/release", map[string]any{"order_id": "A-3"}), 200, "")
	r.want(r.call(till, "POST", "/coupons/"+id+"/lock", map[string]any{"order_id": "A-3", "order_amount": 1}), 409, "coupon_not_usable")
	if n := r.number(`select count(*) from coupon_operations where coupon_id = $1 and actor like 'key:%'`, id); n < 7 {
		t.Fatalf("%d operations are signed", n)
	}
}

// The user that X-User-ID names must own the coupon, in every step.
func TestPaymentForANamedUser(t *testing.T) {
	r := newFixture(t, nil)
	id := "/coupons/" + r.coupon(7, r.drop(time.Hour))
	key := r.key(staff.Key{Scopes: []staff.Scope{staff.ScopePayment, staff.ScopeActAsUser}})
	owner, other := as(key, "X-User-ID", "7"), as(key, "X-User-ID", "8")
	lock := func(user string) map[string]any {
		body := map[string]any{"order_id": "A-1", "order_amount": 6000}
		if user != "" {
			body["user_id"] = user
		}
		return body
	}
	order := map[string]any{"order_id": "A-1"}
	r.want(r.call(other, "POST", id+"/lock", lock("")), 409, "coupon_not_usable")
	r.want(r.call(other, "POST", id+"/lock", lock("8")), 409, "coupon_not_usable")
	r.want(r.call(other, "POST", id+"/lock", lock("7")), 422, "invalid_request")
	r.want(r.call(owner, "POST", id+"/lock", lock("8")), 422, "invalid_request")
	r.want(r.call(as(key, "X-User-ID", "x"), "POST", id+"/lock", lock("")), 422, "invalid_request")
	r.want(r.call(as(r.keys[staff.ScopePayment], "X-User-ID", "7"), "POST", id+"/lock", lock("")), 403, "forbidden")
	r.want(r.call(other, "POST", id+"/release", order), 409, "coupon_not_usable")
	r.want(r.call(owner, "POST", id+"/lock", lock("")), 200, "")
	r.want(r.call(as(key), "POST", id+"/lock", lock("7")), 200, "")
	r.want(r.call(other, "POST", id+"/confirm", order), 409, "coupon_not_usable")
	r.want(r.call(other, "POST", id+"/release", order), 409, "coupon_not_usable")
	r.want(r.call(owner, "POST", id+"/confirm", order), 200, "")
	r.want(r.call(other, "POST", id+"/refund", order), 409, "coupon_not_usable")
	r.want(r.call(owner, "POST", id+"/refund", order), 200, "")
}

func testCouponIsShown(t *testing.T) {
	r := newFixture(t, nil)
	id := r.coupon(7, r.drop(time.Hour))
	a := r.want(r.call(as(token(7)), "GET", "/coupons/"+id, nil), 200, "")
	if a.at("state") != "unused" || a.at("rule.kind") != "amount_off" || a.at("rule.amount_off") != 2000.0 || a.at("user_id") != "7" {
		t.Fatalf("%s", a.Body)
	}
	r.want(r.call(as(token(8)), "GET", "/coupons/"+id, nil), 404, "coupon_not_found")
	r.want(r.call(as(r.keys[staff.ScopePayment]), "GET", "/coupons/"+id, nil), 200, "")
	r.want(r.call(as(r.keys[staff.ScopeActAsUser], "X-User-ID", "7"), "GET", "/coupons/"+id, nil), 200, "")
	r.want(r.call(as(r.keys[staff.ScopeActAsUser], "X-User-ID", "8"), "GET", "/coupons/"+id, nil), 404, "coupon_not_found")
	r.want(r.call(as(r.keys[staff.ScopeActAsUser]), "GET", "/coupons/"+id, nil), 401, "unauthenticated")
	r.want(r.call(as(r.keys[staff.ScopeAdmin]), "GET", "/coupons/"+id, nil), 401, "unauthenticated")
	r.want(r.call(as(""), "GET", "/coupons/"+id, nil), 401, "unauthenticated")
	r.exec(`update coupons set expires_at = now() where id = $1`, id)
	if a = r.want(r.call(as(token(7)), "GET", "/coupons/"+id, nil), 200, ""); a.at("state") != "expired" {
		t.Fatalf("expired by the clock: %s", a.Body)
	}
}

func TestPaymentRefusals(t *testing.T) {
	r := newFixture(t, nil)
	till := as(r.keys[staff.ScopePayment])
	spec := wish(time.Hour)
	spec["kind"], spec["threshold"], spec["target"], spec["product"] = "threshold_off", 5000, "product", "tea"
	template := r.want(r.call(r.admin(), "POST", "/admin/templates", spec), 201, "").json["id"].(string)
	id := r.coupon(7, template)
	lock := "/coupons/" + id + "/lock"
	for name, c := range map[string]struct {
		path   string
		body   any
		status int
		code   string
		where  string
	}{
		"no such coupon":         {"/coupons/999999/lock", map[string]any{"order_id": "A", "order_amount": 6000}, 404, "coupon_not_found", ""},
		"id of another kind":     {"/coupons/abc/lock", map[string]any{"order_id": "A", "order_amount": 6000}, 422, "invalid_request", "path.id"},
		"no order id":            {lock, map[string]any{"order_amount": 6000}, 422, "invalid_request", "body"},
		"empty order id":         {lock, map[string]any{"order_id": "", "order_amount": 6000}, 422, "invalid_request", "body.order_id"},
		"order id with a NUL":    {lock, map[string]any{"order_id": "a\x00", "order_amount": 6000}, 422, "invalid_request", "body.order_id"},
		"no amount":              {lock, map[string]any{"order_id": "A"}, 422, "invalid_request", "body"},
		"amount 0":               {lock, map[string]any{"order_id": "A", "order_amount": 0}, 422, "invalid_request", "body.order_amount"},
		"amount below 0":         {lock, map[string]any{"order_id": "A", "order_amount": -5}, 422, "invalid_request", "body.order_amount"},
		"amount overflows":       {lock, `{"order_id":"A","order_amount":99999999999999999999}`, 422, "invalid_request", "body"},
		"products beyond amount": {lock, map[string]any{"order_id": "A", "order_amount": 10, "products": []any{map[string]any{"product": "tea", "amount": 11}}}, 422, "invalid_request", "body.products"},
		"product without a name": {lock, map[string]any{"order_id": "A", "order_amount": 10, "products": []any{map[string]any{"product": "", "amount": 1}}}, 422, "invalid_request", "body.products"},
		"unknown field":          {lock, map[string]any{"order_id": "A", "order_amount": 10, "x": 1}, 422, "invalid_request", "body.x"},
		"product not named":      {lock, map[string]any{"order_id": "A", "order_amount": 6000}, 409, "coupon_not_usable", ""},
		"product below threshold": {lock, map[string]any{"order_id": "A", "order_amount": 6000, "products": []any{map[string]any{"product": "tea", "amount": 4999}}},
			409, "coupon_not_usable", ""},
		"other currency":       {lock, map[string]any{"order_id": "A", "order_amount": 6000, "currency": "USD"}, 409, "coupon_not_usable", ""},
		"somebody else's":      {lock, map[string]any{"order_id": "A", "order_amount": 6000, "user_id": "8"}, 409, "coupon_not_usable", ""},
		"order id of 65":       {lock, map[string]any{"order_id": strings.Repeat("a", 65), "order_amount": 10}, 422, "invalid_request", `body.order_id"`},
		"64 but 128 bytes":     {lock, map[string]any{"order_id": strings.Repeat("é", 64), "order_amount": 10}, 422, "invalid_request", `body.order_id"`},
		"amount 10^15 + 1":     {lock, `{"order_id":"A","order_amount":1000000000000001}`, 422, "invalid_request", `body.order_amount","message":"expected number \u003c= 1000000000000000"`},
		"amount 2^63":          {lock, `{"order_id":"A","order_amount":9223372036854775808}`, 422, "invalid_request", `body.order_amount"`},
		"amount 1e3":           {lock, `{"order_id":"A","order_amount":1e3}`, 422, "invalid_request", `body.order_amount"`},
		"amount 100.0":         {lock, `{"order_id":"A","order_amount":100.0}`, 422, "invalid_request", `body.order_amount"`},
		"amount of a product":  {lock, `{"order_id":"A","order_amount":5,"products":[{"product":"a","amount":1},{"product":"b","amount":1e0}]}`, 422, "invalid_request", `body.products[1].amount"`},
		"amount twice":         {lock, `{"order_id":"A","order_amount":9000,"order_amount":1}`, 422, "invalid_request", `body.order_amount","message":"is given more than once"`},
		"user as number":       {lock, map[string]any{"order_id": "A", "order_amount": 6000, "user_id": 7}, 422, "invalid_request", "body.user_id"},
		"confirm without lock": {"/coupons/" + id + "/confirm", map[string]any{"order_id": "A"}, 409, "coupon_not_usable", ""},
		"refund without use":   {"/coupons/" + id + "/refund", map[string]any{"order_id": "A"}, 409, "coupon_not_usable", ""},
		"confirm without body": {"/coupons/" + id + "/confirm", `null`, 422, "invalid_request", ""},
	} {
		r.about = name
		a := r.want(r.call(till, "POST", c.path, c.body), c.status, c.code)
		if c.where != "" && !strings.Contains(a.Body.String(), `"location":"`+c.where) {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
	r.about = ""
	for _, step := range []string{"lock", "confirm", "release", "refund"} {
		body := map[string]any{"order_id": "A"}
		r.want(r.call(as(token(7)), "POST", "/coupons/"+id+"/"+step, body), 403, "forbidden")
		r.want(r.call(r.admin(), "POST", "/coupons/"+id+"/"+step, body), 403, "forbidden")
		r.want(r.call(as(""), "POST", "/coupons/"+id+"/"+step, body), 401, "unauthenticated")
	}
	a := r.want(r.call(till, "POST", lock, map[string]any{"order_id": "B", "order_amount": 9000,
		"products": []any{map[string]any{"product": "tea", "amount": 5000}, map[string]any{"product": "cup", "amount": 4000}}}), 200, "")
	if a.at("discount") != 2000.0 {
		t.Fatalf("%s", a.Body)
	}
}

func testTemplateNotices(t *testing.T) {
	r := newFixture(t, nil)
	spec := wish(time.Hour)
	spec["notify_days"] = []int{1, 3}
	a := r.want(r.call(r.admin(), "POST", "/admin/templates", spec), 201, "")
	if fmt.Sprint(a.at("notify_days")) != "[3 1]" || fmt.Sprint(a.at("notify_channels")) != "[app]" {
		t.Fatalf("%s", a.Body)
	}
	path := "/admin/templates/" + a.json["id"].(string)
	a = r.want(r.call(r.admin("If-Match", "1"), "PATCH", path, `{"notify_channels":["email","app"]}`), 200, "")
	if fmt.Sprint(a.at("notify_days"), a.at("notify_channels")) != "[3 1] [app email]" {
		t.Fatalf("%s", a.Body)
	}
	r.want(r.call(r.admin("If-Match", "2"), "PATCH", path, `{"notify_days":[31]}`), 422, "invalid_request")
	r.want(r.call(r.admin("If-Match", "2"), "PATCH", path, `{"notify_days":[-1]}`), 422, "invalid_request")
	r.want(r.call(r.admin("If-Match", "2"), "PATCH", path, `{"notify_channels":["pigeon"]}`), 422, "invalid_request")
	a = r.want(r.call(r.admin("If-Match", "2"), "PATCH", path, `{"notify_days":null}`), 200, "")
	if a.at("notify_days") != nil || a.at("notify_channels") != nil {
		t.Fatalf("%s", a.Body)
	}
}
