package mailfeedback_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dropbell/adapters/mailfeedback"
	"dropbell/domain/delivery/feedback"
)

func TestPostmark(t *testing.T) {
	const secret = "a password of tests"
	s := mailfeedback.NewPostmark(secret, refs)
	plain := &url.URL{Path: "/callbacks/postmark"}
	basic := func(password string) http.Header {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth("postmark", password)
		return r.Header
	}
	bounce, delivery := recorded(t, "postmark_bounce.json", refs.Text(mine)), recorded(t, "postmark_delivery.json", refs.Text(mine))
	want := feedback.Report{Ref: mine, Status: feedback.Delivered, Provider: "postmark", Address: "ada@shop.example"}
	call, err := s.Read(basic(secret), plain, []byte(delivery))
	wants(t, call, err, want)
	call, err = s.Read(http.Header{}, &url.URL{Path: plain.Path, RawQuery: url.Values{"token": {secret}}.Encode()}, []byte(delivery))
	wants(t, call, err, want)
	for kind, status := range map[string]feedback.Status{"HardBounce": feedback.Bounced, "BadEmailAddress": feedback.Bounced, "SoftBounce": feedback.SoftBounced,
		"Transient": feedback.SoftBounced, "Blocked": feedback.SoftBounced, "SpamComplaint": feedback.Complained, "AutoResponder": "", "Unsubscribe": "", "": ""} {
		call, err := s.Read(basic(secret), plain, []byte(strings.Replace(bounce, `"HardBounce"`, `"`+kind+`"`, 1)))
		if status == "" {
			if err != nil || len(call.Reports) > 0 {
				t.Errorf("%s: %+v %v", kind, call, err)
			}
			continue
		}
		want.Status = status
		wants(t, call, err, want)
	}
	complaint := strings.Replace(bounce, `"RecordType": "Bounce"`, `"RecordType": "SpamComplaint"`, 1)
	want.Status = feedback.Complained
	call, err = s.Read(basic(secret), plain, []byte(complaint))
	wants(t, call, err, want)
	refuses(t, "no secret", s, http.Header{}, plain, bounce)
	refuses(t, "another password", s, basic(secret+"x"), plain, bounce)
	refuses(t, "an empty password", s, basic(""), plain, bounce)
	refuses(t, "another token", s, http.Header{}, &url.URL{RawQuery: "token=x"}, bounce)
	for _, odd := range []string{"", "{", "[]", `{"RecordType":1}`, `{"Metadata":{"dropbell":[]}}`} {
		if _, err := s.Read(basic(secret), plain, []byte(odd)); !errors.Is(err, feedback.ErrUnreadable) {
			t.Errorf("%q: %v", odd, err)
		}
	}
}
