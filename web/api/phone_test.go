package api_test

import (
	"context"
	"strings"
	"testing"
	"time"

	audiencedb "dropbell/adapters/postgres/audience"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user/verification"
	"dropbell/web/api"
)

// A texts takes text messages and keeps their codes.
type texts struct{ codes []string }

func (*texts) Channel() delivery.Channel { return delivery.SMS }
func (*texts) ChunkSize() int            { return 1 }
func (s *texts) Send(_ context.Context, messages []delivery.Message) []delivery.Result {
	s.codes = append(s.codes, messages[0].Values()["code"])
	return []delivery.Result{{Status: delivery.Delivered}}
}

// verifyPhone has the user prove a number.
func (r *fixture) verifyPhone(token string) {
	r.Helper()
	sms := &texts{}
	sender := &verification.Sender{Store: audiencedb.NewVerifications(r.db), Keys: verification.NewKeys(secret), SMS: sms}
	r.want(r.call(as(token), "POST", "/phone/verification", `{"phone":"+8613800138000"}`), 202, "")
	r.must(sender.Run(context.Background(), r.number(`select max(id) from phone_verifications`)))
	r.want(r.call(as(token), "POST", "/phone/verification/confirm", map[string]any{"code": sms.codes[0]}), 200, "")
}

func TestPhoneVerification(t *testing.T) {
	r := newFixture(t, func(d *api.Deps) { d.Audience.Phones.Countries = []string{"CN"} })
	sms := &texts{}
	sender := &verification.Sender{Store: audiencedb.NewVerifications(r.db), Keys: verification.NewKeys(secret), SMS: sms}
	me := as(token(7))
	r.want(r.call(me, "POST", "/phone/verification", `{}`), 409, "phone_missing")
	r.want(r.call(me, "POST", "/phone/verification/confirm", `{"code":"123456"}`), 409, "phone_code_expired")
	for body, where := range map[string]string{
		`{"phone":"13800138000"}`:                     "body.phone",
		`{"phone":"+4915112345678"}`:                  "body.phone",
		`{"phone":"+8613800138000","locale":"zh_CN"}`: "body.locale",
		`{"phone":7}`:                                 "body.phone",
		`{"number":"+8613800138000"}`:                 "body.number",
	} {
		if a := r.want(r.call(me, "POST", "/phone/verification", body), 422, "invalid_request"); !strings.Contains(a.Body.String(), `"location":"`+where+`"`) {
			t.Errorf("%s: nothing points at %s: %s", body, where, a.Body)
		}
	}
	a := r.want(r.call(me, "POST", "/phone/verification", `{"phone":"+8613800138000","locale":"zh-CN"}`), 202, "")
	if a.at("phone") != "+8613800138000" || a.at("expires_at") == nil || a.at("again_at") == nil {
		t.Errorf("requested: %s", a.Body)
	}
	again := r.want(r.call(me, "POST", "/phone/verification", `{"phone":"+8613800138001"}`), 429, "too_many_codes")
	if s := again.Header().Get("Retry-After"); s == "" || s == "0" {
		t.Errorf("Retry-After: %q", s)
	}
	r.must(sender.Run(t.Context(), r.number(`select max(id) from phone_verifications`)))
	r.want(r.call(me, "POST", "/phone/verification/confirm", `{"code":"no code"}`), 422, "phone_code_wrong")
	r.want(r.call(as(token(8)), "POST", "/phone/verification/confirm", map[string]any{"code": sms.codes[0]}), 409, "phone_code_expired")
	if b := r.want(r.call(me, "GET", "/preferences", nil), 200, ""); b.at("phone") != "" {
		t.Errorf("before the code: %s", b.Body)
	}
	if b := r.want(r.call(me, "POST", "/phone/verification/confirm", map[string]any{"code": " " + sms.codes[0][:3] + "-" + sms.codes[0][3:]}), 200, ""); b.at("phone") != "+8613800138000" {
		t.Errorf("confirmed: %s", b.Body)
	}
	b := r.want(r.call(me, "GET", "/preferences", nil), 200, "")
	if at, err := time.Parse(time.RFC3339, b.at("phone_verified_at").(string)); err != nil || b.at("phone") != "+8613800138000" || time.Since(at) > time.Minute {
		t.Errorf("after the code: %s", b.Body)
	}
	if strings.Contains(r.logs.String(), sms.codes[0]) || strings.Contains(r.logs.String(), "138001380") {
		t.Error("code or number is in the log")
	}
	// The shown number may be sent back, changed or not, and does not verify anything.
	before := b.at("phone_verified_at")
	if b := r.want(r.call(me, "PUT", "/preferences", b.Body.String()), 200, ""); b.at("phone_verified_at") != before {
		t.Errorf("sent back: %s", b.Body)
	}
	if b := r.want(r.call(me, "PUT", "/preferences", `{"phone_verified_at":null,"locale":"en"}`), 200, ""); b.at("phone_verified_at") != before {
		t.Errorf("null: %s", b.Body)
	}
	// A user cannot say that a number is verified, and another one is not.
	r.want(r.call(me, "PUT", "/preferences", `{"phone_verified":true}`), 422, "invalid_request")
	if b := r.want(r.call(me, "PUT", "/preferences", `{"phone":"+8613800138001","phone_verified_at":"2026-11-26T12:00:00Z"}`), 200, ""); b.at("phone_verified_at") != nil {
		t.Errorf("another number: %s", b.Body)
	}
	r.want(r.call(me, "PUT", "/preferences", `{"opt_outs":["sms"]}`), 200, "")
	r.want(r.call(me, "POST", "/phone/verification", `{}`), 409, "sms_opted_out")
}

// The codes requested from one address are limited, for all users together. A service that acts for
// users is not limited by its address, which belongs to no user.
func TestCodesFromOneAddress(t *testing.T) {
	r := newFixture(t, nil)
	for n := range 10 {
		r.want(r.call(as(token(100+n)), "POST", "/phone/verification", `{}`), 409, "phone_missing")
	}
	r.want(r.call(as(token(200)), "POST", "/phone/verification", `{}`), 429, "rate_limited")
	r.want(r.call(as(r.keys[staff.ScopeActAsUser], "X-User-ID", "200"), "POST", "/phone/verification", `{}`), 409, "phone_missing")
}
