package mailfeedback

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// SES reads the messages that Amazon SES publishes to topics of Amazon SNS: events of a
// configuration set, or notifications of an identity. SNS calls this program.
type SES struct {
	topics []string
	certs  *certificates
	refs   feedback.Refs
	now    func() time.Time
}

// snsAge is the largest age of a message. SNS repeats a message that was not taken for an hour,
// or longer by the policy of the topic's owner. A repeated message keeps the instant of the
// first attempt.
const snsAge = 12 * time.Hour

// NewSES returns the source for the topics, which are ARNs. client loads certificates and
// confirms subscriptions.
func NewSES(topics []string, refs feedback.Refs, client *http.Client, now func() time.Time) *SES {
	return &SES{topics, newCertificates(client, certificate), refs, now}
}

// Name is the last part of the source's address.
func (*SES) Name() string { return "ses" }

// Read checks the signature of SNS and returns the reports of SES. It confirms
// subscriptions to the topics.
func (s *SES) Read(_ http.Header, _ *url.URL, body []byte) (call feedback.Call, err error) {
	m, host, ok := s.message(body)
	if !ok {
		return call, feedback.ErrUnverified
	}
	if err := s.certs.verify(m, host); err != nil {
		return call, err
	}
	switch m.Type {
	case "SubscriptionConfirmation":
		return call, s.certs.confirm(m.SubscribeURL, host)
	case "Notification":
		return s.reports(m.Message)
	}
	return call, nil // the end of a subscription
}

// message reads a call whose message names one of the topics, and returns the host of SNS in the
// topic's region. The signature is not checked yet.
func (s *SES) message(body []byte) (m snsMessage, host string, ok bool) {
	if decode(body, &m) != nil || !slices.Contains(s.topics, m.TopicArn) || !fresh(instant(m.Timestamp), s.now(), snsAge) {
		return m, "", false
	}
	host, ok = hostOf(m.TopicArn)
	return m, host, ok
}

// Fetches reports whether reading the call begins with loading a certificate.
func (s *SES) Fetches(body []byte) bool {
	m, host, ok := s.message(body)
	_, err := base64.StdEncoding.DecodeString(m.Signature)
	return ok && err == nil && (m.SignatureVersion == "1" || m.SignatureVersion == "2") && s.certs.unknown(m.SigningCertURL, host)
}

type sesRecipient struct {
	Address    string `json:"emailAddress"`
	Status     string `json:"status"`
	Diagnostic string `json:"diagnosticCode"`
}

type sesMessage struct {
	Notification string `json:"notificationType"` // of an identity's notifications
	Event        string `json:"eventType"`        // of a configuration set's events
	Mail         struct {
		Tags    map[string][]string `json:"tags"`
		Headers []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"headers"`
	} `json:"mail"`
	Bounce struct {
		Type       string         `json:"bounceType"`
		SubType    string         `json:"bounceSubType"`
		Recipients []sesRecipient `json:"bouncedRecipients"`
		Timestamp  string         `json:"timestamp"`
	} `json:"bounce"`
	Complaint struct {
		Feedback   string         `json:"complaintFeedbackType"`
		Recipients []sesRecipient `json:"complainedRecipients"`
		Timestamp  string         `json:"timestamp"`
	} `json:"complaint"`
	Delivery struct {
		Recipients []string `json:"recipients"`
		Timestamp  string   `json:"timestamp"`
	} `json:"delivery"`
}

// reports reads a message of SES. Other messages of the topic, such as SES's test message, give
// no report.
func (s *SES) reports(text string) (call feedback.Call, err error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return call, nil
	}
	var m sesMessage
	if err := decode([]byte(text), &m); err != nil {
		return call, err
	}
	ref := s.ref(m)
	add := func(status feedback.Status, to, cause, at string) {
		call.Reports = append(call.Reports, feedback.Report{Ref: ref, Status: status, Provider: s.Name(), Address: to,
			Cause: delivery.DetailOf(cause), At: instant(at)})
	}
	switch m.Event + m.Notification {
	case "Delivery":
		for _, to := range m.Delivery.Recipients {
			add(feedback.Delivered, to, "", m.Delivery.Timestamp)
		}
	case "Bounce":
		status := feedback.SoftBounced // Transient, and Undetermined: perhaps it passes
		if m.Bounce.Type == "Permanent" {
			status = feedback.Bounced
		}
		for _, r := range m.Bounce.Recipients {
			cause := r.Diagnostic
			if cause == "" {
				cause = strings.TrimSpace(m.Bounce.Type + " " + m.Bounce.SubType + " " + r.Status)
			}
			add(status, r.Address, cause, m.Bounce.Timestamp)
		}
	case "Complaint":
		if m.Complaint.Feedback == "not-spam" { // the recipient took it out of the spam
			break
		}
		for _, r := range m.Complaint.Recipients {
			add(feedback.Complained, r.Address, m.Complaint.Feedback, m.Complaint.Timestamp)
		}
	}
	return call, nil
}

// ref returns the message's reference. Events carry it in a tag; notifications carry it in a
// header, if they include the headers.
func (s *SES) ref(m sesMessage) feedback.Ref {
	for _, text := range m.Mail.Tags[key] {
		if ref, ok := s.refs.Parse(text); ok {
			return ref
		}
	}
	for _, h := range m.Mail.Headers {
		if strings.EqualFold(h.Name, "X-Dropbell-Reference") {
			return refOf(s.refs, h.Value)
		}
	}
	return feedback.Ref{}
}
