package mailfeedback

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery/feedback"
)

// DirectMail reads the events of Alibaba Cloud Direct Mail: deliveries, failures and complaints.
// Direct Mail makes no signed calls itself. It publishes the events to EventBridge, which calls
// this program. The format is published at
// help.aliyun.com/zh/eventbridge/user-guide/events-of-the-direct-mail-type.
type DirectMail struct {
	bridge *eventBridge
	refs   feedback.Refs
}

// NewDirectMail returns the source for the EventBridge rule whose HTTP target has this token.
// Certificates are loaded with client.
func NewDirectMail(token string, refs feedback.Refs, client *http.Client, now func() time.Time) *DirectMail {
	return &DirectMail{&eventBridge{token, newCertificates(client, eventBridgeCertificate), now}, refs}
}

// Name is the last part of the source's address.
func (*DirectMail) Name() string { return "directmail" }

type directMailEvent struct {
	Type string `json:"type"`
	Time string `json:"time"`
	Data struct {
		Header  map[string]any `json:"header"`
		To      string         `json:"rcpt"`
		Status  word           `json:"status"` // 2 = there is no such address, 3 = taken for spam, 4 = any other
		Code    word           `json:"err_code"`
		Message string         `json:"err_msg"`
		Failure string         `json:"failed_type"`
		// A complaint has no header, but the mail's Message-ID, the recipient, and the instant
		// in seconds since 1970.
		MessageID string `json:"message_id"`
		Blocked   string `json:"block_email"`
		BlockedAt word   `json:"block_time"`
	} `json:"data"`
}

// refusedHere are the failures of mails that Direct Mail did not send, because the address
// failed for good or complained before.
var refusedHere = map[string]bool{"SysOutRcptOnAccountLevelBounceList": true, "SysOutInvRcpt": true, "SysIncomingInvRcpt": true, "SysOutRecipientReportedSpam": true}

// Read checks the signature and returns the reports. A rule may send several events in one call.
func (s *DirectMail) Read(h http.Header, u *url.URL, body []byte) (call feedback.Call, err error) {
	if err := s.bridge.verify(h, u, body); err != nil {
		return call, err
	}
	var events []directMailEvent
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		err = decode(body, &events)
	} else {
		events = make([]directMailEvent, 1)
		err = decode(body, &events[0])
	}
	if err != nil {
		return call, err
	}
	for _, e := range events {
		if r, ok := s.report(e); ok {
			call.Reports = append(call.Reports, one(r).Reports...)
		}
	}
	return call, nil
}

// report returns the report of an event; ok is false for an event that does not concern
// delivery.
func (s *DirectMail) report(e directMailEvent) (r feedback.Report, ok bool) {
	ref, _ := e.Data.Header["X-Notify-Message-ID"].(string)
	r = feedback.Report{Ref: refOf(s.refs, ref), Provider: s.Name(), Address: e.Data.To, At: instant(e.Time)}
	switch e.Type {
	case "dm:Deliver:Succeed":
		r.Status = feedback.Delivered
	case "dm:Deliver:Fail":
		r.Status = feedback.SoftBounced
		if e.Data.Status == "2" || refusedHere[e.Data.Failure] {
			r.Status = feedback.Bounced
		}
		if r.Cause = e.Data.Message; r.Cause == "" {
			r.Cause = strings.TrimSpace(string(e.Data.Code) + " " + e.Data.Failure)
		}
	case "dm:Feedback:FblReport":
		r.Status, r.Address, r.Ref = feedback.Complained, e.Data.Blocked, s.refOfID(e.Data.MessageID)
		if at, err := strconv.ParseFloat(string(e.Data.BlockedAt), 64); err == nil {
			r.At = seconds(at)
		}
	default:
		return r, false
	}
	return r, true
}

// refOfID is the message that a Message-ID names: its part before the @ is the reference.
func (s *DirectMail) refOfID(id string) feedback.Ref {
	name, _, _ := strings.Cut(strings.TrimPrefix(id, "<"), "@")
	return refOf(s.refs, name)
}

// A word is a JSON string or number, as text; "" for any other JSON value.
type word string

// UnmarshalJSON is part of [json.Unmarshaler].
func (w *word) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*w = word(text)
		return nil
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		*w = word(number)
	}
	return nil
}
