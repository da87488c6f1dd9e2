package api_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"dropbell/web/api"
)

// browserOf returns the subscription of a browser whose push service calls it name.
func browserOf(name string) map[string]any {
	return map[string]any{"endpoint": "https://push.example.com/" + name, "p256dh": base64.RawURLEncoding.EncodeToString(make([]byte, 65)), "auth": base64.RawURLEncoding.EncodeToString(make([]byte, 16))}
}

func testBrowsers(t *testing.T) {
	r := newFixture(t, nil)
	me, other := as(token(7)), as(token(8))
	if a := r.want(r.call(me, "GET", "/browsers", nil), 200, ""); a.at("public_key") != pushKey || a.at("browsers.0") != nil {
		t.Errorf("before: %s", a.Body)
	}
	a := r.want(r.call(me, "PUT", "/browsers", browserOf("s3cret")), 200, "")
	id, _ := a.at("id").(string)
	if len(id) != 32 || strings.Contains(a.Body.String(), "s3cret") {
		t.Fatalf("registered: %s", a.Body)
	}
	if b := r.want(r.call(me, "PUT", "/browsers", browserOf("s3cret")), 200, ""); b.Body.String() != a.Body.String() {
		t.Errorf("registered again: %s, want %s", b.Body, a.Body)
	}
	if b := r.want(r.call(me, "GET", "/browsers", nil), 200, ""); b.at("browsers.0.id") != id || b.at("browsers.1") != nil || strings.Contains(b.Body.String(), "s3cret") {
		t.Errorf("listed: %s", b.Body)
	}
	r.want(r.call(other, "DELETE", "/browsers/"+id, nil), 204, "") // not another user's
	r.want(r.call(other, "PUT", "/browsers", browserOf("s3cret")), 200, "")
	if b := r.want(r.call(me, "GET", "/browsers", nil), 200, ""); b.at("browsers.0") != nil {
		t.Errorf("another user's browser is still listed: %s", b.Body)
	}
	for range 2 {
		r.want(r.call(other, "DELETE", "/browsers/"+id, nil), 204, "")
	}
	if n := r.number(`select count(*) from users where push <> '[]'`); n != 0 {
		t.Errorf("%d users have the browser after it was removed", n)
	}
	for where, value := range map[string]any{"endpoint": "http://push.example.com/s3cret", "p256dh": "AAAA", "auth": "AAAA", "user_id": "8"} {
		wish := browserOf("s3cret")
		wish[where] = value
		r.about = where
		if a := r.want(r.call(me, "PUT", "/browsers", wish), 422, "invalid_request"); !strings.Contains(a.Body.String(), `"location":"body.`+where+`"`) || strings.Contains(a.Body.String(), "s3cret") {
			t.Errorf("nothing points at %s, or the endpoint is echoed: %s", where, a.Body)
		}
	}
	none := newFixture(t, func(d *api.Deps) { d.Audience.PushKey = "" })
	none.want(none.call(me, "GET", "/browsers", nil), 422, "channel_unavailable")
	none.want(none.call(me, "PUT", "/browsers", browserOf("x")), 422, "channel_unavailable")
	none.want(none.call(me, "DELETE", "/browsers/"+id, nil), 204, "")
}
