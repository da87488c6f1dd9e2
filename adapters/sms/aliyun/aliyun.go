// Package aliyun sends text messages by Alibaba Cloud's Short Message Service
// (Dysmsapi 2017-05-25, signature ACS3-HMAC-SHA256), and reads its callbacks.
package aliyun

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
)

// DefaultURL is the interface in mainland China.
const DefaultURL = "https://dysmsapi.aliyuncs.com"

const version = "2017-05-25"

// limitPause is how long the account waits after a limit for which the service names no
// time.
const limitPause = time.Minute

// Config is the account at Alibaba Cloud.
type Config struct {
	// URL is another region's interface; empty = [DefaultURL].
	URL string
	// KeyID and KeySecret are the AccessKey of a RAM user that may dysms:SendSms.
	// Required.
	KeyID, KeySecret string
	// Signature is the approved SignName. Required.
	Signature string
	// Templates are the approved texts. Required.
	Templates sms.Templates
	// Timeout bounds one call; 0 = 15 s.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control sms.Control
	// Now is the clock of signatures; nil = [time.Now].
	Now func() time.Time
}

// A Sender sends by Alibaba Cloud. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	url    *url.URL
	client *http.Client
}

// New returns a sender, or an error that says what is wrong with cfg, without the key.
// It does not connect.
func New(cfg Config) (*Sender, error) {
	base, err := sms.Endpoint(cfg.URL, DefaultURL)
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.KeyID == "" || cfg.KeySecret == "" || strings.ContainsAny(cfg.KeyID, ",= \r\n"):
		return nil, errors.New("the AccessKey of Alibaba Cloud is missing or not usable")
	case cfg.Signature == "":
		return nil, errors.New("the signature (SignName) is missing; Alibaba Cloud sends nothing without one")
	case cfg.Templates.Empty():
		return nil, errors.New("there are no templates; Alibaba Cloud sends no other texts")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if base.Path == "" {
		base.Path = "/"
	}
	return &Sender{cfg, base, sms.NewClient(cfg.Timeout, cfg.Control)}, nil
}

// Channel returns [delivery.SMS].
func (s *Sender) Channel() delivery.Channel { return delivery.SMS }

// ChunkSize is small because every message is a call of its own: a call for several
// numbers has one OutId, so that its receipts could not be told apart, and is sent with
// a delay.
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
	text, found := s.cfg.Templates.For(m)
	if !found {
		return sms.NoTemplate(m)
	}
	params := map[string]string{}
	for i, n := range text.Names {
		params[n] = text.Values[i]
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return delivery.Result{Status: delivery.Permanent, Detail: "the values of the template are not text"}
	}
	query := url.Values{"PhoneNumbers": {international(to)}, "SignName": {s.cfg.Signature}, "TemplateCode": {text.ID}, "TemplateParam": {string(encoded)}}
	if reference := m.Reference(); reference != "" {
		query.Set("OutId", reference)
	}
	r, err := s.request(ctx, "SendSms", query)
	if err != nil {
		return delivery.Result{Unsent: true, Detail: "the address of Alibaba Cloud is not usable"}
	}
	answer, failed := sms.Call(s.client, r)
	if failed != nil {
		return *failed
	}
	return s.result(answer)
}

// international writes numbers as the service expects them: of China by their national
// number, others with the country's code and without a plus.
func international(e164 string) string {
	if national, ok := strings.CutPrefix(e164, "+86"); ok {
		return national
	}
	return strings.TrimPrefix(e164, "+")
}

func (s *Sender) request(ctx context.Context, action string, query url.Values) (*http.Request, error) {
	u := *s.url
	u.RawQuery = canonicalQuery(query)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("x-acs-action", action)
	r.Header.Set("x-acs-version", version)
	r.Header.Set("x-acs-date", s.cfg.Now().UTC().Format(time.RFC3339))
	r.Header.Set("x-acs-signature-nonce", uuid.NewString())
	Sign(r, s.cfg.KeyID, s.cfg.KeySecret)
	return r, nil
}

func (s *Sender) result(a sms.Answer) delivery.Result {
	whole := delivery.HTTPResult(a.Status, a.RetryAfter, s.cfg.Now())
	whole.Whole = false
	var body struct {
		Code    string `json:"Code"`
		Message string `json:"Message"`
	}
	if json.Unmarshal(a.Body, &body) != nil || body.Code == "" {
		if whole.Status == delivery.Delivered {
			return sms.NotAgreed()
		}
		return whole
	}
	if body.Code == "OK" && whole.Status == delivery.Delivered {
		return whole
	}
	detail := delivery.DetailOf(sms.Without("Alibaba Cloud answered "+body.Code+": "+body.Message, s.cfg.KeySecret, s.cfg.KeyID))
	// A defect of the service may be behind a message that it took.
	unsent := a.Status < http.StatusInternalServerError && !slices.Contains([]string{"isp.SYSTEM_ERROR", "isp.GATEWAY_ERROR"}, body.Code)
	result := delivery.Result{Status: classOf(body.Code), Unsent: unsent, Detail: detail}
	if result.Status == delivery.Throttled {
		// The limits of one number are apart from those of the account.
		result.Apart = body.Code == "isv.BUSINESS_LIMIT_CONTROL"
		if result.After = whole.After; result.After == 0 && !strings.HasPrefix(body.Code, "Throttling") {
			result.After = limitPause
		}
	}
	return result
}

// permanent are the codes about this message or its recipient.
var permanent = []string{"isv.MOBILE_NUMBER_ILLEGAL", "isv.MOBILE_COUNT_OVER_LIMIT", "isv.BLACK_KEY_CONTROL_LIMIT", "isv.BLACK_LIST",
	"isv.PARAM_LENGTH_LIMIT", "isv.PARAM_NOT_SUPPORT_URL", "isv.INVALID_PARAMETERS", "isv.INVALID_JSON_PARAM", "isv.TEMPLATE_MISSING_PARAMETERS",
	"isv.TEMPLATE_PARAMS_ILLEGAL", "isv.SMS_CONTENT_ILLEGAL", "isv.UNSUPPORTED_CONTENT", "isv.PHONENUMBER_BLACKLIST", "MOBILE_NUMBER_ILLEGAL"}

// classOf sorts the service's codes. Those about the account, its signature, template,
// balance or key are transient: they end no delivery.
func classOf(code string) delivery.Status {
	switch {
	case slices.Contains(permanent, code):
		return delivery.Permanent
	case strings.HasPrefix(code, "Throttling"), code == "isv.BUSINESS_LIMIT_CONTROL", code == "isv.DAY_LIMIT_CONTROL", code == "isv.MONTH_LIMIT_CONTROL", code == "isv.SMS_OVER_LIMIT":
		return delivery.Throttled
	}
	return delivery.Transient
}
