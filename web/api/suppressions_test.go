package api_test

import (
	"net/http"
	"testing"

	"dropbell/domain/staff"
)

// Suppressed addresses are listed, added and released by staff who may see contacts.
func TestSuppressions(t *testing.T) {
	t.Parallel()
	r := newFixture(t, nil)
	const path = "/admin/suppressions"
	r.exec(`insert into suppressions (address, reason, provider, cause) values ('bob@shop.example', 'bounced', 'ses', '550'), ('cy@shop.example', 'complained', 'ses', '')`)
	for range 2 {
		if a := r.want(r.call(r.admin(), "POST", path, `{"address":"Ada@shop.example","cause":"asked by phone"}`), 200, ""); a.at("address") != "ada@shop.example" || a.at("reason") != "staff" {
			t.Errorf("%s", a.Body)
		}
	}
	a := r.want(r.call(r.admin(), "GET", path+"?limit=2", nil), 200, "")
	if a.at("suppressions.0.address") != "ada@shop.example" || a.at("suppressions.1.cause") != "550" || a.at("next") != "bob@shop.example" {
		t.Errorf("%s", a.Body)
	}
	a = r.want(r.call(r.admin(), "GET", path+"?after=bob@shop.example", nil), 200, "")
	if a.at("suppressions.0.address") != "cy@shop.example" || a.at("next") != nil {
		t.Errorf("%s", a.Body)
	}
	if a := r.want(r.call(r.admin(), "GET", path+"?prefix=B", nil), 200, ""); a.at("suppressions.0.address") != "bob@shop.example" || a.at("suppressions.1.address") != nil {
		t.Errorf("%s", a.Body)
	}
	r.want(r.call(r.admin(), "DELETE", path+"?address=Bob%40shop.example", nil), 204, "")
	r.want(r.call(r.admin(), "DELETE", path+"?address=bob%40shop.example", nil), 404, "suppression_not_found")
	r.want(r.call(r.admin(), "DELETE", path, nil), 422, "invalid_request")
	r.want(r.call(r.admin(), "DELETE", path+"?address=%00", nil), 422, "invalid_request")
	for _, odd := range []string{`{"address":"ada"}`, `{"address":"a\u0000@b.example"}`, `{"address":""}`, `{}`} {
		r.want(r.call(r.admin(), "POST", path, odd), 422, "invalid_request")
	}
	r.want(r.call(http.Header{"Authorization": {"Bearer " + r.keys[staff.ScopePayment]}}, "GET", path, nil), 403, "forbidden")
}
