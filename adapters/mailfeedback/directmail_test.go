package mailfeedback_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/mailfeedback"
	"dropbell/domain/delivery/feedback"
)

const (
	bridgeToken       = "a token of the tests"
	bridgeCertificate = "https://cn-hangzhou-eventbridge.oss-accelerate.aliyuncs.com/x509_public_certificate_1.pem"
)

var (
	bridgeNow     = time.UnixMilli(1_794_033_234_567)
	bridgeAddress = &url.URL{Scheme: "https", Host: "drops.example", Path: "/callbacks/directmail/17", RawQuery: "a=b"}
)

func (s *sns) directMail() *mailfeedback.DirectMail {
	return mailfeedback.NewDirectMail(bridgeToken, refs, &http.Client{Transport: s}, func() time.Time { return bridgeNow })
}

// bridged returns the headers with which EventBridge calls the address. The headers in change
// are set before signing. end follows the body in the signed text.
func (s *sns) bridged(t *testing.T, body, end string, change map[string]string) http.Header {
	t.Helper()
	h := http.Header{}
	var text strings.Builder
	text.WriteString("https://drops.example/callbacks/directmail/17?a=b\n")
	for _, header := range [][2]string{{"x-eventbridge-signature-timestamp", strconv.FormatInt(bridgeNow.UnixMilli(), 10)}, {"x-eventbridge-hash-method", "SHA256"},
		{"x-eventbridge-signature-version", "1.0"}, {"x-eventbridge-signature-url", bridgeCertificate}, {"x-eventbridge-signature-token", bridgeToken}} {
		v := header[1]
		if other, ok := change[header[0]]; ok {
			v = other
		}
		if v != "" {
			h.Set(header[0], v)
			text.WriteString(header[0] + ": " + v + "\n")
		}
	}
	sum := sha256.Sum256([]byte(text.String() + body + end))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	h.Set("x-eventbridge-signature-v2", base64.StdEncoding.EncodeToString(signature))
	return h
}

func TestDirectMail(t *testing.T) {
	bridge := newSNS(t)
	s := bridge.directMail()
	fail, succeed, complaint := recorded(t, "directmail_fail.json", refs.Text(mine)), recorded(t, "directmail_succeed.json", refs.Text(mine)), recorded(t, "directmail_complaint.json", refs.Text(mine))
	soft := strings.Replace(fail, `"status": "2"`, `"status": "4"`, 1)
	for _, c := range []struct {
		about, body string
		want        feedback.Status
	}{
		{"succeed", succeed, feedback.Delivered},
		{"no such address", fail, feedback.Bounced},
		{"the status as a number", strings.Replace(fail, `"status": "2"`, `"status": 2`, 1), feedback.Bounced},
		{"taken for spam", strings.Replace(fail, `"status": "2"`, `"status": "3"`, 1), feedback.SoftBounced},
		{"another failure", soft, feedback.SoftBounced},
		{"not tried, since the address failed before", strings.Replace(soft, "SmtpNxBox", "SysOutRcptOnAccountLevelBounceList", 1), feedback.Bounced},
		{"complaint", complaint, feedback.Complained},
		{"a list of events", "[" + complaint + "]", feedback.Complained},
	} {
		for _, end := range []string{"", "\n"} {
			call, err := s.Read(bridge.bridged(t, c.body, end, nil), bridgeAddress, []byte(c.body))
			wants(t, call, err, feedback.Report{Ref: mine, Status: c.want, Provider: "directmail", Address: "ada@shop.example"})
		}
	}
	for _, body := range []string{strings.Replace(fail, "dm:Deliver:Fail", "dm:Trace:Open", 2), `{"type":"dm:Deliver:Other"}`, "{}", "[]", "null"} {
		if call, err := s.Read(bridge.bridged(t, body, "", nil), bridgeAddress, []byte(body)); err != nil || len(call.Reports) > 0 {
			t.Errorf("%.40q: %+v %v", body, call, err)
		}
	}
	odd := strings.Replace(fail, `"`+refs.Text(mine)+`"`, "7", 1)
	if call, err := s.Read(bridge.bridged(t, odd, "", nil), bridgeAddress, []byte(odd)); err != nil || call.Reports[0].Ref != (feedback.Ref{}) {
		t.Errorf("%+v %v", call, err)
	}
	for _, body := range []string{"", "{", "[7]", `{"data":7}`} {
		if _, err := s.Read(bridge.bridged(t, body, "", nil), bridgeAddress, []byte(body)); !errors.Is(err, feedback.ErrUnreadable) {
			t.Errorf("%q: %v", body, err)
		}
	}
	if len(bridge.asked) != 1 || bridge.asked[0] != bridgeCertificate {
		t.Errorf("asked for %q", bridge.asked)
	}
}

// TestDirectMailRefuses: every customer of EventBridge can have it call this address, but only
// the owner of the rule knows the token.
func TestDirectMailRefuses(t *testing.T) {
	bridge := newSNS(t)
	s := bridge.directMail()
	body := recorded(t, "directmail_fail.json", refs.Text(mine))
	shifted := func(d time.Duration) string { return strconv.FormatInt(bridgeNow.Add(d).UnixMilli(), 10) }
	for about, change := range map[string]map[string]string{
		"another token":                 {"x-eventbridge-signature-token": "a guess"},
		"no token":                      {"x-eventbridge-signature-token": ""},
		"an older algorithm":            {"x-eventbridge-hash-method": "SHA1"},
		"no algorithm":                  {"x-eventbridge-hash-method": ""},
		"an old call":                   {"x-eventbridge-signature-timestamp": shifted(-61 * time.Second)},
		"a call of the future":          {"x-eventbridge-signature-timestamp": shifted(61 * time.Second)},
		"no instant":                    {"x-eventbridge-signature-timestamp": "now"},
		"a certificate from elsewhere":  {"x-eventbridge-signature-url": "https://evil.example/x509_public_certificate_1.pem"},
		"a bucket named alike":          {"x-eventbridge-signature-url": strings.Replace(bridgeCertificate, "cn-hangzhou", "my-hangzhou", 1)},
		"a host that looks like it":     {"x-eventbridge-signature-url": strings.Replace(bridgeCertificate, ".com/", ".com.evil.example/", 1)},
		"a user name before the host":   {"x-eventbridge-signature-url": strings.Replace(bridgeCertificate, ".com/", ".com@evil.example/", 1)},
		"a user name":                   {"x-eventbridge-signature-url": strings.Replace(bridgeCertificate, "https://", "https://a@", 1)},
		"another port":                  {"x-eventbridge-signature-url": strings.Replace(bridgeCertificate, ".com/", ".com:8443/", 1)},
		"without encryption":            {"x-eventbridge-signature-url": strings.Replace(bridgeCertificate, "https", "http", 1)},
		"a query":                       {"x-eventbridge-signature-url": bridgeCertificate + "?x=.pem"},
		"a file that is no certificate": {"x-eventbridge-signature-url": strings.TrimSuffix(bridgeCertificate, ".pem")},
		"no certificate":                {"x-eventbridge-signature-url": ""},
	} {
		refuses(t, about, s, bridge.bridged(t, body, "", change), bridgeAddress, body)
	}
	if len(bridge.asked) > 0 {
		t.Errorf("asked for %q", bridge.asked)
	}
	signed := bridge.bridged(t, body, "", nil)
	refuses(t, "another body", s, signed, bridgeAddress, strings.Replace(body, "ada@", "bob@", 1))
	refuses(t, "a body with more", s, signed, bridgeAddress, body+" ")
	refuses(t, "another address", s, signed, &url.URL{Scheme: "https", Host: "drops.example", Path: "/callbacks/directmail/18", RawQuery: "a=b"}, body)
	refuses(t, "no signature", s, http.Header{}, bridgeAddress, body)
	late := signed.Clone()
	late.Set("x-eventbridge-signature-timestamp", shifted(time.Second))
	refuses(t, "another instant", s, late, bridgeAddress, body)
	first := signed.Clone()
	first.Del("x-eventbridge-signature-v2")
	first.Set("x-eventbridge-signature", "AA==")
	refuses(t, "the first algorithm", s, first, bridgeAddress, body)
	for status, unverified := range map[int]bool{403: true, 404: true, 302: true, 500: false, 503: false, -1: false} {
		bridge.status = status
		_, err := bridge.directMail().Read(signed, bridgeAddress, []byte(body))
		if err == nil || errors.Is(err, feedback.ErrUnverified) != unverified || strings.Contains(err.Error(), "https") {
			t.Errorf("the certificate is answered with %d: %v", status, err)
		}
	}
}
