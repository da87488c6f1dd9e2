package dropbell

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	oldSecret = "whsec_b2xkIHNlY3JldA=="
	newSecret = "whsec_bmV3IHNlY3JldA=="
)

// signed returns the header of a webhook that is signed with the secret.
func signed(secret, body string, at time.Time) http.Header {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("msg_1." + stamp + "." + body))
	h := http.Header{}
	h.Set("webhook-id", "msg_1")
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", "v2,x v1,AAAA v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

// TestWebhooks: an event signed with one of the secrets is taken; any other is refused.
func TestWebhooks(t *testing.T) {
	const body = `{"type":"coupon.used","subject":"coupon/17","sequence":3,"data":{"order_id":"A-1"}}`
	w, err := NewWebhooks(newSecret, oldSecret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, secret := range []string{oldSecret, newSecret} {
		if e, err := w.Verify([]byte(body), signed(secret, body, now)); err != nil || e.ID != "msg_1" || e.Sequence != 3 || e.Subject != "coupon/17" {
			t.Errorf("%+v %v", e, err)
		}
	}
	for name, h := range map[string]http.Header{"another secret": signed("whsec_AAAA", body, now), "another body": signed(oldSecret, body+" ", now),
		"late": signed(oldSecret, body, now.Add(-6*time.Minute)), "early": signed(oldSecret, body, now.Add(6*time.Minute)), "nothing": {}} {
		if _, err := w.Verify([]byte(body), h); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, secrets := range [][]string{nil, {"whsec_"}, {"whsec_%"}} {
		if _, err := NewWebhooks(secrets...); err == nil {
			t.Errorf("%v is taken", secrets)
		}
	}
}

// TestWebhookHandler: the answer says whether Dropbell shall send the event again.
func TestWebhookHandler(t *testing.T) {
	w, err := NewWebhooks(newSecret)
	if err != nil {
		t.Fatal(err)
	}
	var fails error
	h := w.Handler(func(context.Context, Event) error { return fails })
	post := func(secret, body string) int {
		r, out := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), httptest.NewRecorder()
		r.Header = signed(secret, body, time.Now())
		h.ServeHTTP(out, r)
		return out.Code
	}
	if got := []int{post(newSecret, "{}"), post(oldSecret, "{}"), post(newSecret, "[]"), post(newSecret, strings.Repeat("x", largestEvent+1))}; got[0] != 204 || got[1] != 401 || got[2] != 400 || got[3] != 400 {
		t.Errorf("%v", got)
	}
	if fails = errors.New("the disk is full"); post(newSecret, "{}") != 500 {
		t.Error("a failure is answered as a success")
	}
}
