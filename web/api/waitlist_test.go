package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/template"
)

// currentTemplates are templates without a cache.
type currentTemplates struct{ dropsdb.Templates }

func (c currentTemplates) Current(ctx context.Context, id int64) (*template.Template, error) {
	t, err := c.Template(ctx, id)
	return &t, err
}

// TestWaitlist: a user joins the waitlist of a drop that is sold out, and leaves it.
func TestWaitlist(t *testing.T) { testWaitlist(t) }

func testWaitlist(t *testing.T) {
	r := newFixture(t, nil)
	id, without := r.open(1), r.open(1)
	r.exec(`update templates set waitlist = 'issue' where id = $1`, id)
	r.exec(`insert into waitlists (template_id) values ($1)`, id)
	path, first, second, third := "/waitlist/"+id, as(token(7)), as(token(8)), as(token(9))
	r.want(r.call(second, "PUT", path, nil), 409, "stock_left")
	r.want(r.call(first, "POST", "/claims", claimOf(id)), 201, "")
	refused := r.want(r.call(second, "POST", "/claims", claimOf(id)), 409, "sold_out")
	if refused.at("waitlist") != "open" {
		t.Errorf("the refusal does not tell of the waitlist: %s", refused.Body)
	}
	if a := r.want(r.call(nil, "GET", "/templates/"+id, nil), 200, ""); a.at("waitlist") != "open" || a.at("state") != "sold_out" {
		t.Errorf("the drop: %s", a.Body)
	}
	r.want(r.call(second, "GET", path, nil), 404, "not_waiting")
	r.want(r.call(second, "DELETE", path, nil), 404, "not_waiting")
	joined := r.want(r.call(second, "PUT", path+"?channels=email,app", nil), 201, "")
	if joined.at("state") != "waiting" || len(joined.at("channels").([]any)) != 2 || joined.at("coupon_id") != nil {
		t.Errorf("joined: %s", joined.Body)
	}
	r.want(r.call(third, "PUT", path, nil), 201, "")
	if a := r.want(r.call(second, "PUT", path, nil), 200, ""); a.at("joined_at") != joined.at("joined_at") {
		t.Errorf("joined twice: %s", a.Body)
	}
	if a := r.want(r.call(second, "GET", path, nil), 200, ""); a.at("ahead") != "under_10" || a.at("chance") != nil {
		t.Errorf("the place: %s", a.Body)
	}
	for range 2 {
		if a := r.want(r.call(second, "DELETE", path, nil), 200, ""); a.at("state") != "left" {
			t.Errorf("left: %s", a.Body)
		}
	}
	r.want(r.call(first, "PUT", path, nil), 409, "limit_reached")
	r.want(r.call(second, "PUT", path+"?channels=pigeon", nil), 422, "channel_unavailable")
	r.want(r.call(second, "PUT", path+"?channels=sms", nil), 422, "channel_unavailable")
	r.want(r.call(second, "PUT", "/waitlist/"+without, nil), 409, "no_waitlist")
	r.want(r.call(second, "PUT", "/waitlist/999999", nil), 404, "template_not_found")
	r.want(r.call(second, "PUT", "/waitlist/x", nil), 422, "invalid_request")
	r.want(r.call(as(""), "PUT", path, nil), 401, "unauthenticated")
	sheet := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id+"/balance", nil), 200, "")
	if w := sheet.at("waitlist").(map[string]any); sheet.at("balanced") != true || w["joined"] != 2.0 || w["waiting"] != 1.0 || w["left"] != 1.0 || w["difference"] != 0.0 {
		t.Errorf("the balance: %s", sheet.Body)
	}
	if a := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id, nil), 200, ""); a.at("waitlist") != "issue" || a.at("stock_ledger").(map[string]any)["held"] != 0.0 {
		t.Errorf("staff see %s", a.Body)
	}
}

// TestOffersOfAWaitlist: a user accepts the coupon that is offered, once; other users cannot.
func testOffersOfAWaitlist(t *testing.T) {
	r := newFixture(t, nil)
	id := r.open(1)
	r.exec(`update templates set waitlist = 'offer', accept_minutes = 30, closes_at = date_trunc('second', now()) + interval '1 day' where id = $1`, id)
	r.exec(`insert into waitlists (template_id) values ($1)`, id)
	path, first, second, third := "/waitlist/"+id, as(token(7)), as(token(8)), as(token(9))
	r.want(r.call(first, "POST", "/claims", claimOf(id)), 201, "")
	for _, by := range []http.Header{second, third} {
		r.want(r.call(by, "PUT", path, nil), 201, "")
	}
	r.want(r.call(second, "POST", path+"/accept", nil), 409, "no_offer")
	r.want(r.call(first, "POST", path+"/accept", nil), 404, "not_waiting")
	r.exec(`update templates set stock = 2, held = 1 where id = $1`, id)
	r.exec(`update waitlists set put = 1, offered = 1 where template_id = $1`, id)
	r.exec(`update waiters set state = 'offered', offered_at = now(), offer_until = now() + interval '10 minutes' where template_id = $1 and user_id = 8`, id)
	if a := r.want(r.call(second, "GET", path, nil), 200, ""); a.at("state") != "offered" || a.at("accept_until") == nil || a.at("shared") != nil {
		t.Errorf("the offer: %s", a.Body)
	}
	accepted := r.want(r.call(second, "POST", path+"/accept", nil), 200, "")
	if accepted.at("state") != "filled" || accepted.at("coupon_id") == nil || accepted.at("accept_until") != nil {
		t.Errorf("accepted: %s", accepted.Body)
	}
	if a := r.want(r.call(second, "POST", path+"/accept", nil), 200, ""); a.at("coupon_id") != accepted.at("coupon_id") {
		t.Errorf("accepted twice: %s", a.Body)
	}
	r.want(r.call(third, "POST", path+"/accept", nil), 409, "no_offer")
	if a := r.want(r.call(r.admin(), "GET", "/admin/templates/"+id+"/balance", nil), 200, ""); a.at("balanced") != true {
		t.Errorf("the balance: %s", a.Body)
	}
}

// TestUseBy: a coupon says until when it must be used.
func TestUseBy(t *testing.T) {
	r := newFixture(t, nil)
	id := r.open(1)
	r.exec(`update templates set use_within_hours = 2 where id = $1`, id)
	r.want(r.call(as(token(7)), "POST", "/claims", claimOf(id)), 201, "")
	list := r.want(r.call(as(token(7)), "GET", "/coupons", nil), 200, "").at("coupons").([]any)
	c := list[0].(map[string]any)
	issued, err := time.Parse(time.RFC3339, c["issued_at"].(string))
	if err != nil || c["use_by"] == nil {
		t.Fatalf("%v %v", c, err)
	}
	if by, err := time.Parse(time.RFC3339, c["use_by"].(string)); err != nil || !by.Equal(issued.Add(2*time.Hour)) {
		t.Errorf("%v %v", c, err)
	}
}
