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
	"time"

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
	// From is the sender: a Messaging Service SID, MG…, a number in E.164 or a name
	// of letters and digits. Required.
	From string
	// Callback is the address of the status callback, to which the reference of each
	// message is added; empty = no receipts.
	Callback string
	// Timeout bounds one call; 0 = 15 s.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control sms.Control
	// Now is the clock of Retry-After; nil = [time.Now].
	Now func() time.Time
}

// A Sender sends by Twilio. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	url    string
	client *http.Client
}

// New returns a sender, or an error that says what is wrong with cfg, without the
// token. It does not connect.
func New(cfg Config) (*Sender, error) {
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
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Sender{cfg, base.String() + "/2010-04-01/Accounts/" + url.PathEscape(cfg.Account) + "/Messages.json", sms.NewClient(cfg.Timeout, cfg.Control)}, nil
}

// Channel returns [delivery.SMS].
func (s *Sender) Channel() delivery.Channel { return delivery.SMS }

// ChunkSize is small because every message is a call of its own.
func (s *Sender) ChunkSize() int { return sms.EachAtOnce }

// Close ends idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Send sends every message in a call of its own; see [sms.Each].
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	return sms.Each(ctx, messages, s.one)
}

func (s *Sender) one(ctx context.Context, m delivery.Message) delivery.Result {
	to, err := sms.Number(m.To.Phone)
	if err != nil {
		return delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
	}
	form := url.Values{"To": {to}, "Body": {sms.Shorten(m.Content.Text)}}
	if strings.HasPrefix(s.cfg.From, "MG") {
		form.Set("MessagingServiceSid", s.cfg.From)
	} else {
		form.Set("From", s.cfg.From)
	}
	if reference := m.Reference(); s.cfg.Callback != "" && reference != "" {
		form.Set("StatusCallback", s.cfg.Callback+"?ref="+reference+repeats)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(form.Encode()))
	if err != nil {
		return delivery.Result{Unsent: true, Detail: "the address of Twilio is not usable"}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(s.cfg.Account, s.cfg.AuthToken)
	answer, failed := sms.Call(s.client, r)
	if failed != nil {
		return *failed
	}
	return s.result(answer)
}

func (s *Sender) result(a sms.Answer) delivery.Result {
	whole := delivery.HTTPResult(a.Status, a.RetryAfter, s.cfg.Now())
	var body struct {
		SID     string `json:"sid"`
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	err := json.Unmarshal(a.Body, &body)
	if whole.Status == delivery.Delivered {
		if err != nil || body.SID == "" {
			return sms.NotAgreed()
		}
		return whole
	}
	if err != nil || body.Code == 0 {
		whole.Whole = false
		return whole
	}
	detail := delivery.DetailOf(sms.Without("Twilio answered "+strconv.Itoa(body.Code)+": "+body.Message, s.cfg.AuthToken))
	class := classOf(body.Code, whole.Status)
	if class == delivery.Throttled {
		return delivery.Result{Status: class, After: whole.After, Unsent: whole.Unsent, Detail: detail}
	}
	return delivery.Result{Status: class, Unsent: whole.Unsent, Detail: detail}
}

// classOf sorts Twilio's codes: those about this message and its recipient, those
// that ask to wait, and those about our account, which end no delivery. usual is the
// class of the HTTP status.
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
