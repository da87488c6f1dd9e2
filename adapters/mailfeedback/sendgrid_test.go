package mailfeedback_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"

	"dropbell/adapters/mailfeedback"
	"dropbell/domain/delivery/feedback"
	"dropbell/musttest"
)

// sendGrid returns a source and a function that signs as SendGrid does.
func sendGrid(t *testing.T) (*mailfeedback.SendGrid, func(body string) http.Header) {
	t.Helper()
	return sendGridAt(t, new(time.Unix(1790000000, 0)))
}

// sendGridAt is a SendGrid whose calls are signed at 1790000000 and read at now.
func sendGridAt(t *testing.T, now *time.Time) (*mailfeedback.SendGrid, func(body string) http.Header) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	musttest.OK(t, err)
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	musttest.OK(t, err)
	s, err := mailfeedback.NewSendGrid(base64.StdEncoding.EncodeToString(der), refs, func() time.Time { return *now })
	musttest.OK(t, err)
	return s, func(body string) http.Header {
		const at = "1790000000"
		sum := sha256.Sum256([]byte(at + body))
		signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		musttest.OK(t, err)
		h := http.Header{}
		h.Set("X-Twilio-Email-Event-Webhook-Signature", base64.StdEncoding.EncodeToString(signature))
		h.Set("X-Twilio-Email-Event-Webhook-Timestamp", at)
		return h
	}
}

func TestSendGrid(t *testing.T) {
	s, sign := sendGrid(t)
	body := recorded(t, "sendgrid.json", refs.Text(mine))
	call, err := s.Read(sign(body), nil, []byte(body))
	musttest.OK(t, err)
	want := []feedback.Status{feedback.Delivered, feedback.Bounced, feedback.SoftBounced, feedback.Bounced, feedback.SoftBounced, feedback.Complained}
	if len(call.Reports) != len(want) {
		t.Fatalf("%+v", call.Reports)
	}
	for i, r := range call.Reports {
		wants(t, feedback.Call{Reports: call.Reports[i : i+1]}, nil, feedback.Report{Ref: mine, Status: want[i], Provider: "sendgrid", Address: "ada@shop.example"})
		if r.Cause == "" && want[i] == feedback.Bounced {
			t.Errorf("%d: no cause", i)
		}
	}
	// Of a message of another installation only the address is known.
	body = recorded(t, "sendgrid.json", feedback.NewRefs("another secret").Text(mine))
	if call, err = s.Read(sign(body), nil, []byte(body)); err != nil || call.Reports[1].Ref != (feedback.Ref{}) || call.Reports[1].Address == "" {
		t.Errorf("%+v %v", call, err)
	}
}

// A mail that SendGrid did not send is a bounce if the address is at fault.
func TestSendGridDrops(t *testing.T) {
	s, sign := sendGrid(t)
	for reason, want := range map[string]feedback.Status{"Invalid": feedback.Bounced, "Bounced Address": feedback.Bounced, "Spam Reporting Address": feedback.Bounced,
		"Invalid SMTPAPI header": feedback.SoftBounced, "Spam Content (if Spam Checker app is enabled)": feedback.SoftBounced, "Recipient List over Package Quota": feedback.SoftBounced} {
		body := `[{"event":"dropped","email":"ada@shop.example","reason":"` + reason + `"}]`
		if call, err := s.Read(sign(body), nil, []byte(body)); err != nil || len(call.Reports) != 1 || call.Reports[0].Status != want {
			t.Errorf("%s: %+v %v", reason, call, err)
		}
	}
}

func TestSendGridRefuses(t *testing.T) {
	s, sign := sendGrid(t)
	_, stranger := sendGrid(t)
	body := recorded(t, "sendgrid.json", refs.Text(mine))
	refuses(t, "no signature", s, http.Header{}, nil, body)
	refuses(t, "another key", s, stranger(body), nil, body)
	refuses(t, "another body", s, sign(body), nil, body+" ")
	now := time.Unix(1790000000, 0)
	aged, old := sendGridAt(t, &now)
	for _, passed := range []time.Duration{27 * time.Hour, -11 * time.Minute} {
		now = time.Unix(1790000000, 0).Add(passed)
		refuses(t, passed.String()+" old", aged, old(body), nil, body)
	}
	now = time.Unix(1790000000, 0).Add(25 * time.Hour)
	if _, err := aged.Read(old(body), nil, []byte(body)); err != nil {
		t.Errorf("repeated a day later: %v", err)
	}
	later := sign(body)
	later.Set("X-Twilio-Email-Event-Webhook-Timestamp", "1790000001")
	refuses(t, "another time", s, later, nil, body)
	for _, odd := range []string{"", "{", `{"event":"delivered"}`, `[{"event":7}]`, "null garbage"} {
		if _, err := s.Read(sign(odd), nil, []byte(odd)); !errors.Is(err, feedback.ErrUnreadable) {
			t.Errorf("%q: %v", odd, err)
		}
	}
	for _, quiet := range []string{"[]", "null", `[{"event":"open"},{}]`} {
		if call, err := s.Read(sign(quiet), nil, []byte(quiet)); err != nil || len(call.Reports) != 0 {
			t.Errorf("%q: %+v %v", quiet, call, err)
		}
	}
	for _, odd := range []string{"", "x", base64.StdEncoding.EncodeToString([]byte("no key"))} {
		if _, err := mailfeedback.NewSendGrid(odd, refs, time.Now); err == nil {
			t.Errorf("%q is taken as a key", odd)
		}
	}
}
