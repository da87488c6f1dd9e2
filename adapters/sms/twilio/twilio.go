// Package twilio sends text messages by Twilio's REST interface (the resource Message
// of 2010-04-01), and reads its callbacks.
package twilio

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"dropbell/adapters/sender"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
)

// DefaultURL is Twilio's interface in the United States.
const DefaultURL = "https://api.twilio.com"

// Config is the account at Twilio.
type Config struct {
	// URL is another region's interface; empty = [DefaultURL].
	URL string
	// Account is the account's SID, AC…; AuthToken also signs callbacks. Required.
	Account, AuthToken string
	// From is the sender: a Messaging Service SID (MG…), a number in E.164, or a name of letters
	// and digits. Required.
	From string
	// Callback is the address of the status callback. The reference of each message is added to
	// it. Empty = no receipts.
	Callback string
	sender.Options
}

// account is the part of the sender that is Twilio's.
type account struct {
	cfg Config
	url string
}

// New returns a sender. An error names the mistake in cfg and never contains the token.
// New does not connect.
func New(cfg Config) (*sms.Sender, error) {
	base, err := sms.Endpoint(cfg.URL, DefaultURL)
	if err != nil {
		return nil, err
	}
	switch {
	case !strings.HasPrefix(cfg.Account, "AC") || strings.ContainsAny(cfg.Account, "/?#\r\n"):
		return nil, errors.New("the account of Twilio is its Account SID, AC and 32 hexadecimal digits")
	case cfg.AuthToken == "":
		return nil, errors.New("the auth token of Twilio is missing")
	case cfg.From == "":
		return nil, errors.New("the sender at Twilio is missing: a Messaging Service SID or a number")
	}
	return sms.NewSender(account{cfg, base.String() + "/2010-04-01/Accounts/" + url.PathEscape(cfg.Account) + "/Messages.json"}, cfg.Options), nil
}

func (a account) Name() string { return "Twilio" }

func (a account) Answered() string { return "Twilio answered " }

func (a account) Secrets() []string { return []string{a.cfg.AuthToken} }

func (a account) Request(ctx context.Context, to string, m delivery.Message) (*http.Request, error) {
	form := url.Values{"To": {to}, "Body": {sms.Shorten(m.Content.Text)}}
	if strings.HasPrefix(a.cfg.From, "MG") {
		form.Set("MessagingServiceSid", a.cfg.From)
	} else {
		form.Set("From", a.cfg.From)
	}
	if reference := m.Reference(); a.cfg.Callback != "" && reference != "" {
		form.Set("StatusCallback", a.cfg.Callback+"?ref="+reference+repeats)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(a.cfg.Account, a.cfg.AuthToken)
	return r, nil
}

func (a account) Read(answer sender.Answer, usual delivery.Result) sms.Said {
	var body struct {
		SID     string `json:"sid"`
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(answer.Body, &body) != nil {
		return sms.Said{}
	}
	if usual.Status == delivery.Delivered || body.Code == 0 {
		return sms.Said{Accepted: body.SID != ""}
	}
	said := sms.Said{Code: strconv.Itoa(body.Code), Words: body.Message, Result: delivery.Result{Status: classOf(body.Code, usual.Status), Unsent: usual.Unsent}}
	if said.Result.Status == delivery.Throttled {
		said.Result.After = usual.After
	}
	return said
}

// classOf sorts Twilio's codes into three groups: the message and its recipient, requests to
// wait, and our account. Codes about the account end no delivery. usual is the class of the HTTP
// status.
func classOf(code int, usual delivery.Status) delivery.Status {
	switch code {
	case 21211, 21214, 21217, 21407, 21421, 21602, 21604, 21610, 21612, 21614, 21617, 21619, 21635, 21656, 21408:
		return delivery.Permanent
	case 14107, 20429, 21611, 30001, 30022, 63018, 63038:
		return delivery.Throttled
	}
	if usual == delivery.Permanent { // a wrong sender, service or account
		return delivery.Transient
	}
	return usual
}
