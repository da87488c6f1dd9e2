package mailfeedback

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// SendGrid reads the calls of SendGrid's signed event webhook.
type SendGrid struct {
	key  *ecdsa.PublicKey
	refs feedback.Refs
	now  func() time.Time
}

// sendGridAge is the largest age of a call. SendGrid repeats a call that was not taken for 24
// hours.
const sendGridAge = 26 * time.Hour

// ParseSendGridKey reads the verification key as SendGrid shows it: the public key in base64,
// without the header and footer lines of a PEM file.
func ParseSendGridKey(text string) (*ecdsa.PublicKey, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		var parsed any
		if parsed, err = x509.ParsePKIXPublicKey(der); err == nil {
			if key, ok := parsed.(*ecdsa.PublicKey); ok {
				return key, nil
			}
		}
	}
	return nil, errors.New("not a public key of ECDSA in base64")
}

// NewSendGrid returns the source of the provider whose verification key this is.
func NewSendGrid(verificationKey string, refs feedback.Refs, now func() time.Time) (*SendGrid, error) {
	key, err := ParseSendGridKey(verificationKey)
	return &SendGrid{key, refs, now}, err
}

// Name is the last part of the source's address.
func (*SendGrid) Name() string { return "sendgrid" }

type sendGridEvent struct {
	Event     string  `json:"event"`
	Email     string  `json:"email"`
	Timestamp float64 `json:"timestamp"`
	Type      string  `json:"type"`   // of a bounce: bounce or blocked
	Reason    string  `json:"reason"` // of a bounce or a dropped mail
	Status    string  `json:"status"`
	Response  string  `json:"response"` // of a delivered mail
	Ref       string  `json:"dropbell"`
}

// Read checks the signature and returns the reports.
func (s *SendGrid) Read(h http.Header, _ *url.URL, body []byte) (call feedback.Call, err error) {
	signature, err := base64.StdEncoding.DecodeString(h.Get("X-Twilio-Email-Event-Webhook-Signature"))
	if err != nil {
		return call, feedback.ErrUnverified
	}
	signed := sha256.New()
	signed.Write([]byte(h.Get("X-Twilio-Email-Event-Webhook-Timestamp")))
	signed.Write(body)
	if !ecdsa.VerifyASN1(s.key, signed.Sum(nil), signature) {
		return call, feedback.ErrUnverified
	}
	at, err := strconv.ParseInt(h.Get("X-Twilio-Email-Event-Webhook-Timestamp"), 10, 64)
	if err != nil || !fresh(time.Unix(at, 0), s.now(), sendGridAge) {
		return call, feedback.ErrUnverified
	}
	var events []sendGridEvent
	if err := decode(body, &events); err != nil {
		return call, err
	}
	for _, e := range events {
		if status := e.status(); status != "" {
			call.Reports = append(call.Reports, feedback.Report{Ref: refOf(s.refs, e.Ref), Status: status, Provider: s.Name(),
				Address: e.Email, Cause: delivery.DetailOf(strings.TrimSpace(e.Status + " " + e.Reason)), At: seconds(e.Timestamp)})
		}
	}
	return call, nil
}

// status returns the delivery status of the event; "" for an event that does not concern
// delivery.
func (e sendGridEvent) status() feedback.Status {
	switch e.Event {
	case "delivered":
		return feedback.Delivered
	case "spamreport":
		return feedback.Complained
	case "bounce":
		if e.Type == "blocked" { // the server refused the message, not the address
			return feedback.SoftBounced
		}
		return feedback.Bounced
	case "dropped": // SendGrid did not try
		// Others, such as "Invalid SMTPAPI header", are about the mail.
		if e.Reason == "Invalid" || strings.HasPrefix(e.Reason, "Bounced Address") || strings.HasPrefix(e.Reason, "Spam Reporting Address") {
			return feedback.Bounced
		}
		return feedback.SoftBounced
	}
	return ""
}
