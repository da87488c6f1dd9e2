package tencent

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/sms"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
)

// A Source reads Tencent Cloud's callbacks: lists of receipts, and single messages that people
// sent.
type Source struct {
	// Key is the secret that the callback's address contains as the parameter key, because
	// Tencent Cloud signs nothing. An empty Key refuses every call.
	Key string
	// Refs reads references.
	Refs feedback.Refs
	// Serials finds the references of receipts.
	Serials feedback.Serials
}

// name is the provider's in reports and in the address of its callbacks.
const name = "tencent"

// findPatience bounds the search for references.
const findPatience = 5 * time.Second

// errUnfound is returned if the names of messages cannot be looked up now.
var errUnfound = fault.New(fault.Unavailable, "overloaded", "this could not be looked up now; repeat the call")

// Name returns "tencent".
func (s Source) Name() string { return name }

type receipt struct {
	UserReceiveTime string `json:"user_receive_time"`
	NationCode      string `json:"nationcode"`
	Mobile          string `json:"mobile"`
	ReportStatus    string `json:"report_status"`
	ErrMsg          string `json:"errmsg"`
	Description     string `json:"description"`
	SID             string `json:"sid"`
}

type reply struct {
	Extend     string      `json:"extend"`
	Mobile     string      `json:"mobile"`
	NationCode string      `json:"nationcode"`
	Text       *string     `json:"text"`
	Time       json.Number `json:"time"`
}

// Read reads one callback.
func (s Source) Read(_ http.Header, u *url.URL, body []byte) (c feedback.Call, err error) {
	if !sms.Keyed(u, s.Key) {
		return c, feedback.ErrUnverified
	}
	var receipts []receipt
	if json.Unmarshal(body, &receipts) == nil {
		return s.receipts(receipts)
	}
	var r reply
	if json.Unmarshal(body, &r) != nil || r.Text == nil {
		return c, feedback.ErrUnreadable
	}
	from := number(r.NationCode, r.Mobile)
	if from == "" { // a short code is the number of no user
		return c, nil
	}
	// The message has no name: a repeated callback is equal.
	id := r.Time.String() + " " + from + " " + strconv.Quote(*r.Text)
	c.Replies = append(c.Replies, feedback.Reply{Provider: name, From: from, Text: *r.Text, ID: id})
	return c, nil
}

// receipts finds the messages of the receipts by the serial numbers that were kept at sending. A
// serial number is unknown if another program of the account sent the message, or if the serial
// number could not be kept.
func (s Source) receipts(list []receipt) (c feedback.Call, err error) {
	all := len(list)
	list = slices.DeleteFunc(list, func(r receipt) bool { return r.SID == "" || r.ReportStatus != "SUCCESS" && r.ReportStatus != "FAIL" })
	if len(list) == 0 && all > 0 {
		return c, feedback.ErrUnreadable
	}
	if len(list) == 0 || s.Serials == nil {
		return c, nil
	}
	var ids []string
	for _, r := range list {
		ids = append(ids, r.SID)
	}
	ctx, cancel := context.WithTimeout(context.Background(), findPatience)
	defer cancel()
	references, err := s.Serials.Find(ctx, name, ids)
	if err != nil {
		return c, errUnfound
	}
	var early []feedback.Early
	for _, r := range list {
		report := sms.Receipt(name, r.ReportStatus == "SUCCESS", passing(r.ErrMsg), strings.TrimSpace(r.ErrMsg+" "+r.Description))
		report.At = sms.InChina(r.UserReceiveTime)
		reference, sent := references[r.SID]
		if !sent { // its answer is still on the way, or another program has sent it
			early = append(early, feedback.Early{Serial: r.SID, Report: report})
			continue
		}
		if ref, known := s.Refs.Parse(reference); known {
			report.Ref, report.Address = ref, number(r.NationCode, r.Mobile)
			c.Reports = append(c.Reports, report)
		}
	}
	if len(early) > 0 && s.Serials.Early(ctx, name, early) != nil {
		return feedback.Call{}, errUnfound
	}
	return c, nil
}

// passing reports whether the network's code means that the phone was off, or that the
// network was busy.
func passing(code string) bool {
	return slices.Contains([]string{"EXPIRED", "UNDELIV", "MK:0001", "MI:0010", "MI:0084", "NOROUTE"}, code)
}

func number(country, national string) string { return sms.NumberOf("+" + country + national) }

// Answer returns the answer that the service expects.
func (s Source) Answer([]string) (contentType string, body []byte) {
	return "application/json", []byte(`{"result":0,"errmsg":"OK"}`)
}
