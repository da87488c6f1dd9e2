package api_test

import (
	"strings"
	"testing"
	"time"
)

// TestBodiesWithoutJSON are told what is the matter with them, by the quick
// ways, by the general one and with a key.
func TestBodiesWithoutJSON(t *testing.T) {
	r := newRig(t, nil)
	id, mark := r.draft(2*time.Hour), "\ufeff"
	const empty, marked = "the body is empty; send a JSON object", "remove the byte order mark at the beginning of the body"
	for _, who := range [][]string{nil, {"Idempotency-Key", "k"}, {"Content-Type", "application/json; charset=UTF-8"}} {
		for _, c := range []struct{ method, path, body, detail string }{
			{"POST", "/reservations", "", empty},
			{"POST", "/reservations", " \r\n", empty},
			{"POST", "/reservations", mark + `{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":5}]}`, marked},
			{"POST", "/claims", "", empty},
			{"POST", "/claims", mark + `{"template_id":"1"}`, marked},
			{"POST", "/redemptions", "", empty},
			{"POST", "/redemptions", mark + `{"code":"x"}`, marked},
			{"PUT", "/preferences", "", empty},
			{"PUT", "/preferences", mark + `{}`, marked},
			{"POST", "/admin/templates", mark, marked},
			{"POST", "/admin/templates/" + id + "/publish", mark + `{}`, marked},
		} {
			caller := as(token(7), who...)
			if strings.HasPrefix(c.path, "/admin") {
				caller = r.admin(who...)
			}
			r.about = c.method + " " + c.path + " " + c.body
			if a := r.want(r.call(caller, c.method, c.path, c.body), 400, "malformed_json"); a.at("detail") != c.detail {
				t.Errorf("%s: %s", r.about, a.Body)
			}
		}
	}
	// A body that may be left out is.
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/publish", ""), 200, "")
}
