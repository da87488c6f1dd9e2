package mailfeedback_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/mailfeedback"
	"dropbell/domain/delivery/feedback"
	"dropbell/musttest"
)

const (
	topic       = "arn:aws:sns:us-east-1:123456789012:mail"
	certAddress = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
)

// sns imitates Amazon SNS: it signs messages and serves its certificate.
type sns struct {
	key *rsa.PrivateKey
	pem []byte
	// status is the status of its answers; 0 = 200. asked are the requested addresses.
	mu     sync.Mutex
	status int
	asked  []string
}

// snsKey is made once, because making it takes longer than all tests here.
var snsKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newSNS(t *testing.T) *sns {
	t.Helper()
	s := &sns{key: snsKey()}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &s.key.PublicKey, s.key)
	musttest.OK(t, err)
	s.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return s
}

// RoundTrip is part of [http.RoundTripper].
func (s *sns) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.String())
	if s.status == -1 {
		return nil, errors.New("no route to " + r.URL.String())
	}
	status := s.status
	if status == 0 {
		status = 200
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(s.pem))), Request: r}, nil
}

// snsNow is shortly after the recorded messages.
var snsNow = time.Date(2026, 11, 5, 16, 34, 0, 0, time.UTC)

func (s *sns) source() *mailfeedback.SES {
	return mailfeedback.NewSES([]string{"arn:aws:sns:eu-west-1:123456789012:other", topic}, refs, &http.Client{Transport: s}, func() time.Time { return snsNow })
}

// signed returns the message as SNS sends it, with the fields changed before signing.
func (s *sns) signed(t *testing.T, message string, change map[string]any) map[string]any {
	t.Helper()
	m := map[string]any{"Type": "Notification", "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324", "TopicArn": topic, "Subject": "Amazon SES Email Event Notification",
		"Message": message, "Timestamp": "2026-11-05T16:33:54.907Z", "SignatureVersion": "2", "SigningCertURL": certAddress,
		"UnsubscribeURL": "https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe"}
	for k, v := range change {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
	names := []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	if m["Type"] != "Notification" {
		names = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	}
	var text strings.Builder
	for _, name := range names {
		if v, ok := m[name].(string); ok {
			text.WriteString(name + "\n" + v + "\n")
		}
	}
	hash, sum := crypto.SHA256, sha256.New()
	if m["SignatureVersion"] == "1" {
		hash, sum = crypto.SHA1, sha1.New()
	}
	sum.Write([]byte(text.String()))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, hash, sum.Sum(nil))
	musttest.OK(t, err)
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	return m
}

func text(t *testing.T, m map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(m)
	musttest.OK(t, err)
	return string(raw)
}

func TestSES(t *testing.T) {
	amazon := newSNS(t)
	s := amazon.source()
	for name, want := range map[string]feedback.Status{"ses_bounce.json": feedback.Bounced, "ses_complaint.json": feedback.Complained, "ses_delivery.json": feedback.Delivered} {
		for _, change := range []map[string]any{nil, {"Subject": nil}, {"SignatureVersion": "1"}} {
			body := text(t, amazon.signed(t, recorded(t, name, refs.Text(mine)), change))
			call, err := s.Read(nil, nil, []byte(body))
			wants(t, call, err, feedback.Report{Ref: mine, Status: want, Provider: "ses", Address: "ada@shop.example"})
		}
	}
	for _, kind := range []string{"Transient", "Undetermined"} {
		soft := strings.Replace(recorded(t, "ses_bounce.json", refs.Text(mine)), `"Permanent"`, `"`+kind+`"`, 1)
		call, err := s.Read(nil, nil, []byte(text(t, amazon.signed(t, soft, nil))))
		wants(t, call, err, feedback.Report{Ref: mine, Status: feedback.SoftBounced, Provider: "ses", Address: "ada@shop.example"})
	}
	kind := strings.Replace(recorded(t, "ses_complaint.json", refs.Text(mine)), `"abuse"`, `"not-spam"`, 1)
	for _, quiet := range []string{kind, "Successfully validated SNS topic for Amazon SES event publishing.", `{"eventType":"Open"}`, `{}`, ""} {
		if call, err := s.Read(nil, nil, []byte(text(t, amazon.signed(t, quiet, nil)))); err != nil || len(call.Reports) > 0 {
			t.Errorf("%q: %+v %v", quiet, call, err)
		}
	}
	if _, err := s.Read(nil, nil, []byte(text(t, amazon.signed(t, `{"eventType":7}`, nil)))); !errors.Is(err, feedback.ErrUnreadable) {
		t.Error(err)
	}
	if len(amazon.asked) != 1 {
		t.Errorf("the certificate was loaded %d times", len(amazon.asked))
	}
}

func TestSESConfirmsItsOwnTopics(t *testing.T) {
	amazon := newSNS(t)
	s := amazon.source()
	const confirm = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=2336412f37f"
	hello := map[string]any{"Type": "SubscriptionConfirmation", "Token": "2336412f37f", "SubscribeURL": confirm, "Subject": nil}
	if _, err := s.Read(nil, nil, []byte(text(t, amazon.signed(t, "You have chosen to subscribe", hello)))); err != nil || len(amazon.asked) != 2 || amazon.asked[1] != confirm {
		t.Errorf("%v %q", err, amazon.asked)
	}
	for _, evil := range []string{"https://sns.us-east-1.amazonaws.com.evil.example/", "https://sns.s3.amazonaws.com/", "https://sns.eu-west-1.amazonaws.com/"} {
		hello["SubscribeURL"] = evil
		refuses(t, "to another host", s, nil, nil, text(t, amazon.signed(t, "You have chosen to subscribe", hello)))
	}
	if len(amazon.asked) != 2 {
		t.Errorf("%q", amazon.asked)
	}
	amazon.status = 503
	hello["SubscribeURL"] = confirm
	if _, err := s.Read(nil, nil, []byte(text(t, amazon.signed(t, "You have chosen to subscribe", hello)))); err == nil || errors.Is(err, feedback.ErrUnverified) {
		t.Errorf("SNS is to repeat it: %v", err)
	}
	amazon.status = 0
	bye := map[string]any{"Type": "UnsubscribeConfirmation", "Token": "x", "SubscribeURL": confirm, "Subject": nil}
	if call, err := s.Read(nil, nil, []byte(text(t, amazon.signed(t, "You have chosen to leave", bye)))); err != nil || len(call.Reports) > 0 || len(amazon.asked) != 3 {
		t.Errorf("%v %q", err, amazon.asked)
	}
}

func TestSESRefuses(t *testing.T) {
	amazon := newSNS(t)
	s := amazon.source()
	good := recorded(t, "ses_bounce.json", refs.Text(mine))
	for about, m := range map[string]map[string]any{
		"another topic":                amazon.signed(t, good, map[string]any{"TopicArn": topic + "x"}),
		"no version":                   amazon.signed(t, good, map[string]any{"SignatureVersion": "3"}),
		"a certificate from elsewhere": amazon.signed(t, good, map[string]any{"SigningCertURL": "https://evil.example/SimpleNotificationService-0123.pem"}),
		"a host that looks like SNS":   amazon.signed(t, good, map[string]any{"SigningCertURL": "https://sns.us-east-1.amazonaws.com.evil.example/x.pem"}),
		"a user name before the host":  amazon.signed(t, good, map[string]any{"SigningCertURL": "https://sns.us-east-1.amazonaws.com@evil.example/x.pem"}),
		"another port":                 amazon.signed(t, good, map[string]any{"SigningCertURL": "https://sns.us-east-1.amazonaws.com:8443/x.pem"}),
		"without encryption":           amazon.signed(t, good, map[string]any{"SigningCertURL": strings.Replace(certAddress, "https", "http", 1)}),
		"a bucket of anybody":          amazon.signed(t, good, map[string]any{"SigningCertURL": "https://s3.us-east-1.amazonaws.com/x.pem"}),
		"a bucket named sns":           amazon.signed(t, good, map[string]any{"SigningCertURL": "https://sns.s3.amazonaws.com/SimpleNotificationService-0123.pem"}),
		"another region":               amazon.signed(t, good, map[string]any{"SigningCertURL": strings.Replace(certAddress, "us-east-1", "eu-west-1", 1)}),
		"another name":                 amazon.signed(t, good, map[string]any{"SigningCertURL": "https://sns.us-east-1.amazonaws.com/x.pem"}),
		"a query":                      amazon.signed(t, good, map[string]any{"SigningCertURL": certAddress + "?Action=Publish&x=.pem"}),
		"a day old":                    amazon.signed(t, good, map[string]any{"Timestamp": "2026-11-04T16:33:54.907Z"}),
		"of tomorrow":                  amazon.signed(t, good, map[string]any{"Timestamp": "2026-11-06T16:33:54.907Z"}),
		"no instant":                   amazon.signed(t, good, map[string]any{"Timestamp": "now"}),
		"no certificate":               amazon.signed(t, good, map[string]any{"SigningCertURL": certAddress + "/x"}),
	} {
		refuses(t, about, s, nil, nil, text(t, m))
		if s.Fetches([]byte(text(t, m))) {
			t.Errorf("%s: a certificate would be loaded", about)
		}
	}
	if len(amazon.asked) > 0 {
		t.Errorf("asked for %q", amazon.asked)
	}
	if body := []byte(text(t, amazon.signed(t, good, nil))); !s.Fetches(body) {
		t.Error("the first certificate is not loaded")
	} else if _, err := s.Read(nil, nil, body); err != nil || s.Fetches(body) {
		t.Errorf("a certificate that was loaded is loaded again, %v", err)
	}
	for _, field := range []string{"Message", "MessageId", "Subject", "Timestamp", "Type"} {
		m := amazon.signed(t, good, nil)
		m[field] = m[field].(string) + "x"
		refuses(t, "changed "+field, s, nil, nil, text(t, m))
	}
	for _, odd := range []string{"", "{", "[]", `{"TopicArn":7}`, `{"TopicArn":"` + topic + `"}`} {
		refuses(t, odd, s, nil, nil, odd)
	}
	for status, unverified := range map[int]bool{403: true, 404: true, 302: true, 500: false, 503: false, 429: false, -1: false} {
		amazon.status = status
		_, err := amazon.source().Read(nil, nil, []byte(text(t, amazon.signed(t, good, nil))))
		if err == nil || errors.Is(err, feedback.ErrUnverified) != unverified || strings.Contains(err.Error(), "https") {
			t.Errorf("the certificate is answered with %d: %v", status, err)
		}
	}
}
