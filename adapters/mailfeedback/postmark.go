package mailfeedback

import (
	"net/http"
	"net/url"

	"dropbell/domain/delivery/feedback"
)

// Postmark reads the calls of Postmark's webhooks. Postmark signs nothing. The address that
// Postmark calls contains the secret, as the password of basic authentication or as the
// parameter token.
type Postmark struct {
	secret string
	refs   feedback.Refs
}

// NewPostmark returns the source of calls that know the secret.
func NewPostmark(secret string, refs feedback.Refs) *Postmark { return &Postmark{secret, refs} }

// Name is the last part of the source's address.
func (*Postmark) Name() string { return "postmark" }

type postmarkCall struct {
	RecordType  string
	Type        string // of a bounce
	Recipient   string // of a delivery
	Email       string // of a bounce or a complaint
	DeliveredAt string
	BouncedAt   string
	Description string
	Details     string
	Metadata    map[string]string
}

// hardBounces are the bounces after which Postmark sends no more mails to the address. failures
// are the other bounces. Types in neither map do not concern delivery.
var (
	hardBounces = map[string]bool{"HardBounce": true, "BadEmailAddress": true, "ManuallyDeactivated": true}
	failures    = map[string]bool{"Transient": true, "DnsError": true, "SpamNotification": true, "SoftBounce": true, "VirusNotification": true,
		"Blocked": true, "DMARCPolicy": true, "Unknown": true, "Undeliverable": true}
)

// Read checks the secret and returns the report.
func (s *Postmark) Read(h http.Header, u *url.URL, body []byte) (call feedback.Call, err error) {
	_, password, ok := (&http.Request{Header: h}).BasicAuth()
	if !ok {
		password = u.Query().Get("token")
	}
	if !equal(password, s.secret) {
		return call, feedback.ErrUnverified
	}
	var c postmarkCall
	if err := decode(body, &c); err != nil {
		return call, err
	}
	r := feedback.Report{Ref: refOf(s.refs, c.Metadata[key]), Provider: s.Name(), Address: c.Email, Cause: c.Details, At: instant(c.BouncedAt)}
	if r.Cause == "" {
		r.Cause = c.Description
	}
	switch {
	case c.RecordType == "Delivery":
		r.Status, r.Address, r.At = feedback.Delivered, c.Recipient, instant(c.DeliveredAt)
	case c.RecordType == "SpamComplaint", c.RecordType == "Bounce" && c.Type == "SpamComplaint":
		r.Status = feedback.Complained
	case c.RecordType == "Bounce" && hardBounces[c.Type]:
		r.Status = feedback.Bounced
	case c.RecordType == "Bounce" && failures[c.Type]:
		r.Status = feedback.SoftBounced
	default:
		return call, nil
	}
	return one(r), nil
}
