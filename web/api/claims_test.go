package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/web/api"
	"dropbell/web/api/coupons"
)

// open creates an open drop with stock coupons and returns its id.
func (r *fixture) open(stock int) string {
	r.Helper()
	w := wish(time.Hour)
	w["stock"] = stock
	id := r.want(r.call(r.admin(), "POST", "/admin/templates", w), 201, "").json["id"].(string)
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", nil), 200, "")
	r.exec(`update templates set opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, id)
	return id
}

func claimOf(id string) map[string]any { return map[string]any{"template_id": id} }

func testClaim(t *testing.T) {
	r := newFixture(t, nil)
	id := r.open(2)
	got := r.want(r.call(as(token(7)), "POST", "/claims", claimOf(id)), 201, "")
	if got.json["state"] != "issued" || got.json["coupon_id"] == "" || got.json["template_id"] != id || got.json["claim_id"] == "" {
		t.Fatalf("answer: %s", got.Body)
	}
	mine := "/claims/" + got.json["claim_id"].(string)
	if again := r.want(r.call(as(token(7)), "GET", mine, nil), 200, ""); again.Body.String() != got.Body.String() {
		t.Errorf("the claim is shown as %s, and was answered %s", again.Body, got.Body)
	}
	r.want(r.call(as(token(8)), "GET", mine, nil), 404, "claim_not_found")
	for _, bad := range []string{"1", "0", "x", "-1", "9223372036854775807"} {
		r.want(r.call(as(token(7)), "GET", "/claims/"+bad, nil), 404, "claim_not_found")
	}
	r.want(r.call(as(token(7)), "GET", "/claims/99999999999999999999", nil), 422, "invalid_request")
	r.want(r.call(as(token(7)), "POST", "/claims", claimOf(id)), 409, "limit_reached")
	r.want(r.call(as(token(8)), "POST", "/claims", claimOf(id)), 201, "")
	r.want(r.call(as(token(9)), "POST", "/claims", claimOf(id)), 409, "sold_out")
	r.want(r.call(as(""), "POST", "/claims", claimOf(id)), 401, "unauthenticated")
	r.want(r.call(as(token(9)), "POST", "/claims", claimOf("999")), 404, "template_not_found")
	r.want(r.call(as(token(9)), "POST", "/claims", claimOf(r.draft(time.Hour))), 404, "template_not_found")
	r.want(r.call(as(token(9)), "POST", "/claims", claimOf(r.drop(time.Hour))), 409, "not_started")
	sheet := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id+"/balance", nil), 200, "")
	if sheet.json["balanced"] != true || sheet.at("stock.issued") != 2.0 || sheet.at("stock.shelf") != 0.0 || sheet.at("stock.difference") != 0.0 {
		t.Errorf("the balance sheet says %s", sheet.Body)
	}
	r.exec(`delete from claim_counts where user_id = 8`)
	sheet = r.want(r.call(r.admin(), "GET", "/admin/templates/"+id+"/balance", nil), 200, "")
	if sheet.json["balanced"] != false || sheet.at("stock.difference") != 1.0 {
		t.Errorf("after a row was lost the balance sheet says %s", sheet.Body)
	}
	shown := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id, nil), 200, "")
	if shown.at("stock_ledger.issued") != 2.0 || shown.at("stock_ledger.left") != 0.0 || shown.json["state"] != "sold_out" {
		t.Errorf("staff see %s", shown.Body)
	}
}

// testClaimBodies: the quick way and the general way give the same answer.
func testClaimBodies(t *testing.T) {
	r := newFixture(t, nil)
	id := r.open(1000)
	for i, c := range []struct {
		body   string
		status int
		code   string
	}{
		{`{"template_id":"` + id + `"}`, 201, ""},
		{` { "template_id" : "` + id + `" } `, 201, ""},
		{`{"template_id":"\u003` + id + `"}`, 201, ""}, // the general way reads escapes
		{`{"template_id":` + id + `}`, 422, "invalid_request"},
		{`{"template_id":"0"}`, 422, "invalid_request"},
		{`{"template_id":"9999999999999999999"}`, 422, "invalid_request"},
		{`{"template_id":"` + id + `","more":1}`, 422, "invalid_request"},
		{`{}`, 422, "invalid_request"},
		{`[]`, 422, "invalid_request"},
		{``, 400, "malformed_json"},
		{`{"template_id":"1"`, 400, "malformed_json"},
	} {
		r.about = c.body
		r.want(r.call(as(token(100+i)), "POST", "/claims", c.body), c.status, c.code)
		r.want(r.call(as(token(200+i), "Idempotency-Key", "k"), "POST", "/claims", c.body), c.status, c.code)
	}
	for _, key := range []string{"", "ä", strings.Repeat("k", 256), "a\x7f"} {
		r.about = "key " + key
		got := r.want(r.call(as(token(7), "Idempotency-Key", key), "POST", "/claims", claimOf(id)), 422, "invalid_request")
		if got.at("errors.0.location") != "header.Idempotency-Key" {
			t.Errorf("key %q: %s", key, got.Body)
		}
	}
}

func TestClaimAgain(t *testing.T) {
	r := newFixture(t, nil)
	id, other := r.open(2), r.open(2)
	me := as(token(7), "Idempotency-Key", "mine")
	first := r.want(r.call(me, "POST", "/claims", claimOf(id)), 201, "")
	if first.Header().Get("Idempotency-Replayed") != "" {
		t.Error("the first answer says that it is a repetition")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			again := r.call(me, "POST", "/claims", claimOf(id))
			if again.Code != 201 || again.Body.String() != first.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
				t.Errorf("again: %d %s %v, first %s", again.Code, again.Body, again.Header(), first.Body)
			}
		})
	}
	all.Wait()
	r.want(r.call(me, "POST", "/claims", claimOf(other)), 422, "idempotency_conflict")
	r.want(r.call(as(token(8), "Idempotency-Key", "mine"), "POST", "/claims", claimOf(id)), 201, "")
	if n := r.number(`select count(*) from idempotency_keys where actor like 'user:%'`); n != 0 {
		t.Errorf("%d rows were spent on what the gate does itself", n)
	}
	if n := r.number(`select count(*) from coupons`); n != 2 {
		t.Errorf("%d coupons, want 2", n)
	}
}

func testCoupons(t *testing.T) {
	r := newFixture(t, nil)
	me := as(token(7))
	if got := r.want(r.call(me, "GET", "/coupons", nil), 200, ""); got.Body.String() != "{\"coupons\":[]}\n" {
		t.Errorf("nothing is shown as %s", got.Body)
	}
	var ids []string
	for range 5 {
		ids = append(ids, r.want(r.call(me, "POST", "/claims", claimOf(r.open(5))), 201, "").json["coupon_id"].(string))
	}
	r.want(r.call(as(token(8)), "POST", "/claims", claimOf(r.open(5))), 201, "")
	r.exec(`update coupons set expires_at = now() where id = $1`, ids[1])
	r.exec(`update coupons set state = 'locked', order_id = 'o1', discount = 2000, locked_until = now() + interval '1 minute' where id = $1`, ids[2])
	list := func(query string) (page coupons.CouponList) {
		t.Helper()
		r.must(json.Unmarshal(r.want(r.call(me, "GET", "/coupons"+query, nil), 200, "").Body.Bytes(), &page))
		return page
	}
	states := func(page coupons.CouponList) string {
		var s []string
		for _, c := range page.Coupons {
			s = append(s, c.CouponID+" "+c.State)
		}
		return strings.Join(s, ", ")
	}
	want := fmt.Sprintf("%s unused, %s unused, %s locked, %s expired, %s unused", ids[4], ids[3], ids[2], ids[1], ids[0])
	all := list("")
	if states(all) != want || all.Next != "" {
		t.Errorf("all: %s, next %q, want %s", states(all), all.Next, want)
	}
	c := all.Coupons[0]
	if c.Rule.Kind != "amount_off" || c.Rule.AmountOff != 2000 || c.TemplateName != "20 off" || c.ShopNumber != "10" || c.Rule.Target != "shop" ||
		!c.ExpiresAt.Equal(c.IssuedAt.Add(48*time.Hour)) || c.ClaimID == "" {
		t.Errorf("a coupon is shown as %+v", c)
	}
	if l := all.Coupons[2]; l.OrderID != "o1" || l.Coupon.Discount != 2000 || l.LockedUntil == nil {
		t.Errorf("a locked coupon is shown as %+v", l)
	}
	first := list("?limit=3")
	rest := list("?limit=3&before=" + first.Next)
	if states(first)+", "+states(rest) != want || rest.Next != "" {
		t.Errorf("page by page: %s; %s", states(first), states(rest))
	}
	for state, n := range map[string]int{"unused": 3, "locked": 1, "expired": 1, "used": 0, "revoked": 0} {
		if got := list("?state=" + state); len(got.Coupons) != n {
			t.Errorf("%s: %s, want %d", state, states(got), n)
		}
	}
	r.exec(`update coupons set state = 'revoked', returned = id = $1 where id = $1 or id = $2`, ids[0], ids[3])
	for _, id := range []string{ids[0], ids[3]} {
		alone := r.want(r.call(me, "GET", "/coupons/"+id, nil), 200, "").at("returned_to_stock")
		for _, c := range list("?state=revoked").Coupons {
			if c.CouponID == id && (c.Returned != (id == ids[0]) || c.Returned != (alone == true)) {
				t.Errorf("%s: returned %v in the list, %v alone", id, c.Returned, alone)
			}
		}
	}
	r.want(r.call(me, "GET", "/coupons?state=gone", nil), 422, "invalid_request")
	r.want(r.call(me, "GET", "/coupons?before=0", nil), 422, "invalid_request")
	r.want(r.call(as(""), "GET", "/coupons", nil), 401, "unauthenticated")
}

// refusedLater is a gate that accepted a claim which was refused when written.
type refusedLater struct{ reason string }

func (g refusedLater) Claim(_ context.Context, r claim.Request) (claim.Claim, error) {
	return claim.Claim{ID: 5, TemplateID: r.TemplateID, UserID: r.UserID, State: claim.Failed, Reason: g.reason, At: now()}, nil
}

// TestARefusalThatCameLater: the repetition is answered like the first request would have been, by
// the quick way and by the general way.
func TestARefusalThatCameLater(t *testing.T) {
	for reason, status := range map[string]int{"sold_out": 409, "limit_reached": 409, "idempotency_conflict": 422, "template_not_found": 404} {
		r := newFixture(t, func(d *api.Deps) { d.Coupons.Claims = &claim.Service{Gate: refusedLater{reason}, Random: rand.Uint64} })
		for _, body := range []string{`{"template_id":"1"}`, `{"template_id":"\u0031"}`} {
			r.about = reason + " " + body
			r.want(r.call(as(token(7), "Idempotency-Key", "k"), "POST", "/claims", body), status, reason)
		}
	}
}

// TestADropThatWasClosedEarly ended when staff closed it, not as planned.
func TestADropThatWasClosedEarly(t *testing.T) {
	r := newFixture(t, nil)
	id := r.open(5)
	planned := r.want(r.call(nil, "GET", "/templates/"+id, nil), 200, "").at("closes_at")
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/close", map[string]any{"reason": "rain"}), 200, "")
	staffs := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id, nil), 200, "")
	shown := r.want(r.call(nil, "GET", "/templates/"+id, nil), 200, "")
	if shown.at("state") != "closed" || shown.at("closes_at") != staffs.at("ended_at") || staffs.at("closes_at") != planned {
		t.Errorf("planned %v; users see %s, staff %s", planned, shown.Body, staffs.Body)
	}
}

// TestADropWhoseCouponsHaveExpired is not open, and not shown as open anywhere.
func TestADropWhoseCouponsHaveExpired(t *testing.T) {
	r := newFixture(t, nil)
	id := r.open(5)
	r.exec(`update templates set valid_hours = 0, valid_until = date_trunc('second', now()) - interval '1 second' where id = $1`, id)
	r.want(r.call(as(token(7)), "POST", "/claims", claimOf(id)), 409, "ended")
	shown := r.want(r.call(nil, "GET", "/templates/"+id, nil), 200, "")
	staffs := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id, nil), 200, "")
	if shown.at("state") != "closed" || staffs.at("state") != "closed" || shown.at("closes_at") != staffs.at("valid_until") {
		t.Errorf("users see %s, staff %s", shown.Body, staffs.Body)
	}
	for state, n := range map[string]int{"open": 0, "closed": 1} {
		if a := r.want(r.call(r.admin(), "GET", "/admin/templates?state="+state, nil), 200, ""); len(a.at("templates").([]any)) != n {
			t.Errorf("%s: %s", state, a.Body)
		}
	}
}
