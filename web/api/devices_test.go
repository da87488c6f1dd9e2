package api_test

import (
	"strings"
	"testing"
)

func TestDevices(t *testing.T) {
	r := newFixture(t, nil)
	me, other := as(token(7)), as(token(8))
	apple := strings.Repeat("00fc13ad", 8)
	wish := map[string]any{"platform": "ios", "token": apple, "app_version": "5.2.1", "locale": "zh-CN"}
	a := r.want(r.call(me, "PUT", "/devices", wish), 200, "")
	id, _ := a.at("id").(string)
	if len(id) != 32 || a.at("platform") != "ios" || a.at("app_version") != "5.2.1" || a.at("seen_at") == "" || strings.Contains(a.Body.String(), apple) {
		t.Fatalf("registered: %s", a.Body)
	}
	if b := r.want(r.call(me, "PUT", "/devices", wish), 200, ""); b.Body.String() != a.Body.String() {
		t.Errorf("registered again: %s, want %s", b.Body, a.Body)
	}
	if b := r.want(r.call(me, "GET", "/preferences", nil), 200, ""); b.at("locale") != "zh-CN" {
		t.Errorf("the language of a new user: %s", b.Body)
	}
	r.want(r.call(me, "PUT", "/devices", map[string]any{"platform": "android", "token": strings.Repeat("fcm-", 30)}), 200, "")
	if b := r.want(r.call(me, "GET", "/devices", nil), 200, ""); b.at("devices.0.id") != id || b.at("devices.1.platform") != "android" || b.at("devices.2") != nil {
		t.Errorf("listed: %s", b.Body)
	}
	wish["app"] = "com.example.shop"
	if b := r.want(r.call(me, "PUT", "/devices", wish), 200, ""); b.at("app") != "com.example.shop" || b.at("id") != id || a.at("app") != nil {
		t.Errorf("with its app: %s", b.Body)
	}
	r.want(r.call(me, "PUT", "/devices", map[string]any{"platform": "android", "app": "shop-example", "token": strings.Repeat("fcm-", 30)}), 200, "")
	r.want(r.call(other, "DELETE", "/devices/"+id, nil), 204, "") // not another user's
	r.want(r.call(other, "PUT", "/devices", wish), 200, "")       // the phone has changed hands
	if b := r.want(r.call(me, "GET", "/devices", nil), 200, ""); b.at("devices.0.platform") != "android" || b.at("devices.1") != nil {
		t.Errorf("left: %s", b.Body)
	}
	r.want(r.call(other, "DELETE", "/devices/"+id, nil), 204, "")
	r.want(r.call(other, "DELETE", "/devices/"+id, nil), 204, "")
	if n := r.number(`select count(*) from users where devices @> '[{"platform":"ios"}]'`); n != 0 {
		t.Errorf("%d users have the phone after it was removed", n)
	}
	for body, where := range map[string]string{
		`{}`:                                    "body",
		`{"platform":"symbian","token":"x"}`:    "body.platform",
		`{"platform":"ios"}`:                    "body",
		`{"platform":"ios","token":"nonsense"}`: "body.token",
		`{"platform":"android","token":"../../etc/passwd/../.."}`:    "body.token",
		`{"platform":"ios","token":"` + apple + `","locale":"zh_"}`:  "body.locale",
		`{"platform":"ios","token":"` + apple + `","user_id":"8"}`:   "body.user_id",
		`{"platform":"ios","token":"` + apple + `","app_version":5}`: "body.app_version",
		`{"platform":"ios","token":"` + apple + `","app":"shop"}`:    "body.app",
	} {
		r.about = body
		a := r.want(r.call(me, "PUT", "/devices", body), 422, "invalid_request")
		if !strings.Contains(a.Body.String(), `"location":"`+where+`"`) || strings.Contains(a.Body.String(), apple) {
			t.Errorf("%s: nothing points at %s, or the token is echoed: %s", body, where, a.Body)
		}
	}
}
