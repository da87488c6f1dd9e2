package sns_test

import (
	"net/http"
	"strings"
	"testing"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/smstest"
	"dropbell/adapters/sms/sns"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

func start(t testing.TB) *smstest.SNS {
	t.Helper()
	p := smstest.NewSNS()
	t.Cleanup(p.Close)
	return p
}

func sender(t testing.TB, cfg sns.Config) *sms.Sender {
	t.Helper()
	cfg.Region, cfg.KeyID = "us-east-1", smstest.KeyID
	if cfg.KeySecret == "" {
		cfg.KeySecret = smstest.KeySecret
	}
	s, err := sns.New(cfg)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContract(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender { return sender(t, sns.Config{URL: start(t).URL}) },
		Stalled: func(t *testing.T) delivery.Sender {
			p := start(t)
			p.Stall()
			return sender(t, sns.Config{URL: p.URL})
		},
		Unreachable: func(u *user.User) { u.Phone = "+1" },
		AtOnce:      20,
	})
}

// The example of Amazon's page on signature version 4 checks the imitation.
func TestSignature(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	musttest.OK(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("X-Amz-Date", "20150830T123600Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7")
	if !smstest.AmazonSigned(r, "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY") || smstest.AmazonSigned(r, "AKIDEXAMPLE", "another") {
		t.Error("the imitation checks signatures in another way")
	}
}

func TestRequest(t *testing.T) {
	p := start(t)
	texts, err := sms.ParseTemplates(`{"*":{"*":{"id":"1107160000000000000","params":[]}}}`)
	musttest.OK(t, err)
	s := sender(t, sns.Config{URL: p.URL, From: "SHOP", Entity: "1101456324", Templates: texts})
	m := sendertest.Messages(delivery.SMS, 1)
	if r := s.Send(t.Context(), m)[0]; r.Status != delivery.Delivered {
		t.Fatalf("got %+v", r)
	}
	sent := p.Sent()[0]
	want := map[string]string{"AWS.SNS.SMS.SMSType": "Transactional", "AWS.SNS.SMS.SenderID": "SHOP", "AWS.MM.SMS.EntityId": "1101456324", "AWS.MM.SMS.TemplateId": "1107160000000000000"}
	for k, v := range want {
		if sent.Params[k] != v {
			t.Errorf("%s is %q", k, sent.Params[k])
		}
	}
	if sent.To != "+8613800000001" || sent.Text != m[0].Content.Text {
		t.Errorf("sent %+v", sent)
	}
}

func TestCodes(t *testing.T) {
	p := start(t)
	s := sender(t, sns.Config{URL: p.URL})
	for code, want := range map[string]delivery.Status{"InvalidParameter": delivery.Permanent, "Throttling": delivery.Throttled, "ThrottlingException": delivery.Throttled,
		"InternalError": delivery.Transient, "AuthorizationError": delivery.Transient, "InvalidClientTokenId": delivery.Transient, "new": delivery.Transient} {
		p.Refuse("+8613800000001", code)
		r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 2))
		if r[0].Status != want || !strings.Contains(r[0].Detail, code) || strings.Contains(r[0].Detail, "138") {
			t.Errorf("%s: got %+v", code, r[0])
		}
		if r[1].Status != delivery.Delivered {
			t.Errorf("%s: the other message got %+v", code, r[1])
		}
	}
	for status, want := range map[int]delivery.Status{429: delivery.Throttled, 500: delivery.Transient, 200: delivery.Transient} {
		p.Answer(status, "")
		if r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 1))[0]; r.Status != want || r.Detail == "" {
			t.Errorf("%d: got %+v", status, r)
		}
	}
	p.Answer(0, "")
	if r := sender(t, sns.Config{URL: p.URL, KeySecret: "another-secret"}).Send(t.Context(), sendertest.Messages(delivery.SMS, 1))[0]; r.Status != delivery.Transient || !strings.Contains(r.Detail, "SignatureDoesNotMatch") {
		t.Errorf("got %+v", r)
	}
	for _, cfg := range []sns.Config{{}, {Region: "x"}, {Region: "us-east-1"}, {Region: "us-east-1", KeyID: "a/b", KeySecret: "another-secret"}, {Region: "us-east-1", URL: "x"}} {
		if _, err := sns.New(cfg); err == nil || strings.Contains(err.Error(), "another-secret") {
			t.Errorf("%+v: got %v", cfg, err)
		}
	}
}
