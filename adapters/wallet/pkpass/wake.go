package pkpass

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/sender"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/delivery"
)

// DefaultPushURL is Apple's push service, which passes use in development too.
const DefaultPushURL = "https://api.push.apple.com"

const (
	// timeout bounds one push.
	timeout = 10 * time.Second
	// keptFor is how long Apple may keep a push for a device that is off.
	keptFor = 24 * time.Hour
	// maxAnswer is how much of an answer is read.
	maxAnswer = 16 << 10
)

// http2Only is a transport that speaks HTTP/2, with TLS as the owner of the pass type.
func http2Only(address string, pair tls.Certificate) http.RoundTripper {
	t := sender.NewTransport(timeout, nil)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(strings.HasPrefix(address, "https:"))
	t.Protocols.SetUnencryptedHTTP2(strings.HasPrefix(address, "http:"))
	t.TLSClientConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second}
	return t
}

// Wake sends the device an empty push, after which the device asks for its changed passes. The
// push's topic is the pass type. See [wallet.Waker].
func (i *Issuer) Wake(ctx context.Context, pushToken string) wallet.Answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.cfg.PushURL+"/3/device/"+url.PathEscape(pushToken), strings.NewReader("{}"))
	if err != nil {
		return wallet.Answer{Verdict: wallet.Refused, Detail: "the device's token is not usable"}
	}
	now := i.cfg.Now()
	request.Header = http.Header{
		"Content-Type":    {"application/json"},
		"Apns-Topic":      {i.cfg.TypeID},
		"Apns-Push-Type":  {"background"},
		"Apns-Priority":   {"5"}, // which pushes of that type must have
		"Apns-Expiration": {strconv.FormatInt(now.Add(keptFor).Unix(), 10)},
	}
	got, err := sender.Call(i.client, request, maxAnswer)
	if err != nil {
		return wallet.Answer{Detail: delivery.CauseOf(err)}
	}
	if got.Status == http.StatusOK {
		return wallet.Answer{Verdict: wallet.Told}
	}
	var refusal struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(got.Body, &refusal) // an unreadable body is an unknown reason
	return judge(got.Status, refusal.Reason, delivery.RetryAfter(got.Header.Get("Retry-After"), now))
}

// judge sorts answers into three groups: the device, this installation's identity, which
// operators can correct, and Apple itself.
func judge(status int, reason string, after time.Duration) wallet.Answer {
	a := wallet.Answer{After: after, Detail: delivery.DetailOf("APNs answered " + strconv.Itoa(status) + " " + reason)}
	switch {
	case status == http.StatusGone:
		a.Verdict = wallet.Gone
	case reason == "BadDeviceToken":
		a.Verdict = wallet.Refused
	case status == http.StatusForbidden, strings.Contains(reason, "Topic"), strings.Contains(reason, "Certificate"):
		a.Detail += ": check PASS_TYPE_ID, PASS_CERTIFICATE, PASS_KEY and PASS_PUSH_URL"
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
	default:
		a.Verdict = wallet.Refused
	}
	return a
}
