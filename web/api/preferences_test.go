package api_test

import (
	"encoding/base64"
	"strings"
	"testing"
)

func testPreferences(t *testing.T) {
	r := newFixture(t, nil)
	me := as(token(7))
	a := r.want(r.call(me, "GET", "/preferences", nil), 200, "")
	if a.at("email") != "" || len(a.at("opt_outs").([]any)) != 0 || a.at("quiet_hours") != nil || r.number(`select count(*) from users`) != 0 {
		t.Fatalf("of an unknown user: %s", a.Body)
	}
	sub := map[string]any{"endpoint": "https://push.example.com/x", "p256dh": base64.RawURLEncoding.EncodeToString(make([]byte, 65)),
		"auth": base64.StdEncoding.EncodeToString(make([]byte, 16))}
	a = r.want(r.call(me, "PUT", "/preferences", map[string]any{"email": "ann@example.com", "phone": "+8613800138000", "opt_outs": []string{"sms", "webhook"},
		"quiet_hours": map[string]any{"from": "22:00", "to": "08:00"}, "locale": "zh-CN", "timezone": "Asia/Shanghai", "push": []any{sub}}), 200, "")
	if a.at("opt_outs.1") != "webhook" || a.at("quiet_hours.from") != "22:00" || a.at("push.0.endpoint") != sub["endpoint"] || a.at("locale") != "zh-CN" {
		t.Fatalf("set: %s", a.Body)
	}
	if b := r.want(r.call(me, "GET", "/preferences", nil), 200, ""); b.Body.String() != a.Body.String() {
		t.Fatalf("read back %s, want %s", b.Body, a.Body)
	}
	if b := r.want(r.call(me, "PUT", "/preferences", `{}`), 200, ""); b.Body.String() != a.Body.String() {
		t.Fatalf("an empty change made %s", b.Body)
	}
	a = r.want(r.call(me, "PUT", "/preferences", `{"opt_outs":null,"quiet_hours":null,"email":"","phone":null,"push":[]}`), 200, "")
	if len(a.at("opt_outs").([]any)) != 0 || a.at("quiet_hours") != nil || a.at("email") != "" || a.at("phone") != "" || len(a.at("push").([]any)) != 0 ||
		a.at("timezone") != "Asia/Shanghai" {
		t.Fatalf("cleared: %s", a.Body)
	}
	if b := r.call(as(token(8)), "GET", "/preferences", nil); b.at("timezone") != "" {
		t.Fatalf("another user's: %s", b.Body)
	}
}

func TestPreferenceRefusals(t *testing.T) {
	r := newFixture(t, nil)
	me := as(token(7))
	key := base64.RawURLEncoding.EncodeToString(make([]byte, 65))
	push := func(endpoint, p256dh, auth string) string {
		return `{"push":[{"endpoint":"` + endpoint + `","p256dh":"` + p256dh + `","auth":"` + auth + `"}]}`
	}
	for body, where := range map[string]string{
		`{"email":"ann"}`:                                                         "body.email",
		`{"email":"Ann <ann@example.com>"}`:                                       "body.email",
		`{"email":"ann@example.com\r\nBcc: x@y.z"}`:                               "body.email",
		`{"email":"a\u0000@example.com"}`:                                         "body.email",
		`{"email":5}`:                                                             "body.email",
		`{"phone":"13800138000"}`:                                                 "body.phone",
		`{"phone":"+86 138"}`:                                                     "body.phone",
		`{"locale":"a b"}`:                                                        "body.locale",
		`{"timezone":"Mars/Base"}`:                                                "body.timezone",
		`{"timezone":"../../../etc/passwd"}`:                                      "body.timezone",
		`{"timezone":"Local"}`:                                                    "body.timezone",
		`{"timezone":"posixrules"}`:                                               "body.timezone",
		`{"opt_outs":["pigeon"]}`:                                                 "body.opt_outs[0]",
		`{"opt_outs":"sms"}`:                                                      "body.opt_outs",
		`{"opt_outs":[1]}`:                                                        "body.opt_outs[0]",
		`{"quiet_hours":{"from":"24:00","to":"1:00"}}`:                            "body.quiet_hours",
		`{"quiet_hours":{"from":"22:00"}}`:                                        "body.quiet_hours",
		`{"quiet_hours":{"from":"22:00","to":"22:00"}}`:                           "body.quiet_hours",
		`{"quiet_hours":{"from":"00:00","to":"00:00"}}`:                           "body.quiet_hours",
		`{"quiet_hours":[]}`:                                                      "body.quiet_hours",
		`{"id":"8"}`:                                                              "body.id",
		push("http://push.example.com/x", key, "AAAAAAAAAAAAAAAAAAAAAA"):          "body.push[0].endpoint",
		push("https://127.0.0.1/x", key, "AAAAAAAAAAAAAAAAAAAAAA"):                "body.push[0].endpoint",
		push("https://localhost/x", key, "AAAAAAAAAAAAAAAAAAAAAA"):                "body.push[0].endpoint",
		push("https://[::1]/x", key, "AAAAAAAAAAAAAAAAAAAAAA"):                    "body.push[0].endpoint",
		push("https://user:pw@push.example.com/x", key, "AAAAAAAAAAAAAAAAAAAAAA"): "body.push[0].endpoint",
		push("https://push.example.com/x", "AAAA", "AAAAAAAAAAAAAAAAAAAAAA"):      "body.push[0].p256dh",
		push("https://push.example.com/x", key, "AAAA"):                           "body.push[0].auth",
	} {
		r.about = body
		a := r.want(r.call(me, "PUT", "/preferences", body), 422, "invalid_request")
		if !strings.Contains(a.Body.String(), `"location":"`+where+`"`) {
			t.Fatalf("%s: nothing points at %s: %s", body, where, a.Body)
		}
		if strings.Contains(a.Body.String(), "AAAAAAAA") {
			t.Fatalf("a key is echoed: %s", a.Body)
		}
	}
	if n := r.number(`select count(*) from users`); n != 0 {
		t.Fatalf("refusals left %d users", n)
	}
}
