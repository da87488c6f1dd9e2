package aliyun

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dropbell/adapters/sms"
	"dropbell/domain/delivery/feedback"
)

// A Source reads the callbacks that Alibaba Cloud sends by HTTP: lists of receipts (SmsReport),
// and lists of messages that people send (SmsUp).
type Source struct {
	// Key is the secret that the callback's address contains as the parameter key, because
	// Alibaba Cloud signs nothing. An empty Key refuses every call.
	Key string
	// Refs reads references, which are signed.
	Refs feedback.Refs
}

// name is the provider's in reports and in the address of its callbacks.
const name = "aliyun"

// Name returns "aliyun".
func (s Source) Name() string { return name }

// event is a receipt, or a message that a person sent, which has a content.
type event struct {
	PhoneNumber string  `json:"phone_number"`
	ReportTime  string  `json:"report_time"`
	Success     *bool   `json:"success"`
	ErrCode     string  `json:"err_code"`
	ErrMsg      string  `json:"err_msg"`
	OutID       string  `json:"out_id"`
	Content     *string `json:"content"`
	SendTime    string  `json:"send_time"`
	// SequenceID is a string, or a number.
	SequenceID json.RawMessage `json:"sequence_id"`
}

// Read reads one callback.
func (s Source) Read(_ http.Header, u *url.URL, body []byte) (c feedback.Call, err error) {
	if !sms.Keyed(u, s.Key) {
		return c, feedback.ErrUnverified
	}
	var events []event
	if json.Unmarshal(body, &events) != nil {
		return c, feedback.ErrUnreadable
	}
	var odd bool
	for _, e := range events {
		switch {
		case e.Content != nil:
			if r := e.reply(); r.From != "" { // a short code is the number of no user
				c.Replies = append(c.Replies, r)
			}
		case e.Success != nil:
			c.Reports = append(c.Reports, s.receipt(e))
		default:
			odd = true
		}
	}
	return sms.Readable(c, odd)
}

func (s Source) receipt(e event) feedback.Report {
	r := sms.Receipt(name, *e.Success, passing(e.ErrCode), strings.TrimSpace(e.ErrCode+" "+e.ErrMsg))
	r.Address, r.At = number(e.PhoneNumber), sms.InChina(e.ReportTime)
	r.Ref, _ = s.Refs.Parse(e.OutID) // the zero Ref: a message of another program
	return r
}

// passing reports whether the network's code means that the phone was off, or that the
// network was busy.
func passing(code string) bool {
	return slices.Contains([]string{"EXPIRED", "UNDELIV", "NOROUTE", "MK:0001", "MI:0010", "MI:0084", "USER_NOT_ONLINE", "PHONE_POWER_OFF"}, code)
}

func (e event) reply() feedback.Reply {
	r := feedback.Reply{Provider: name, From: number(e.PhoneNumber), Text: *e.Content, ID: strings.Trim(string(e.SequenceID), `"`)}
	if r.ID == "" { // without a name the message is told apart by all there is
		r.ID = e.SendTime + " " + e.PhoneNumber
	}
	return r
}

// number reads a mobile number of a callback. Alibaba Cloud writes numbers of China without the
// country code, and other numbers with the country code and without a plus.
func number(s string) string {
	if len(s) == 11 && s[0] == '1' {
		s = "86" + s
	}
	return sms.NumberOf("+" + strings.TrimPrefix(s, "+"))
}

// Answer returns the answer that the service expects.
func (s Source) Answer([]string) (contentType string, body []byte) {
	return "application/json", []byte(`{"code":0,"msg":"OK"}`)
}
