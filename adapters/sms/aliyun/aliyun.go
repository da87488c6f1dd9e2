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

	"dropbell/adapters/sender"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
)

// DefaultURL is the interface in mainland China.
const DefaultURL = "https://dysmsapi.aliyuncs.com"

const version = "2017-05-25"

// limitPause is how long the account waits after a limit, if the service names no time.
const limitPause = time.Minute

// Config is the account at Alibaba Cloud.
type Config struct {
	// URL is another region's interface; empty = [DefaultURL].
	URL string
	// KeyID and KeySecret are the AccessKey of a RAM user with the permission dysms:SendSms.
	// Required.
	KeyID, KeySecret string
	// Signature is the approved SignName. Required.
	Signature string
	// Templates are the approved texts. Required.
	Templates sms.Templates
	sender.Options
}

// account is Alibaba Cloud's part of the sender. Every message is a call of its own: a call for
// several numbers has one OutId, so its receipts could not be told apart, and it is sent with a
// delay.
type account struct {
	cfg Config
	url *url.URL
}

// New returns a sender. An error names the mistake in cfg and never contains the key.
// New does not connect.
func New(cfg Config) (*sms.Sender, error) {
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
	if base.Path == "" {
		base.Path = "/"
	}
	return sms.NewSender(account{cfg, base}, cfg.Options), nil
}

func (a account) Name() string { return "Alibaba Cloud" }

func (a account) Answered() string { return "Alibaba Cloud answered " }

func (a account) Secrets() []string { return []string{a.cfg.KeySecret, a.cfg.KeyID} }

func (a account) Request(ctx context.Context, to string, m delivery.Message) (*http.Request, error) {
	text, found := a.cfg.Templates.For(m)
	if !found {
		return nil, sms.NoTemplate(m)
	}
	params := map[string]string{}
	for i, n := range text.Names {
		params[n] = text.Values[i]
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, &sms.Refusal{Status: delivery.Permanent, Detail: "the values of the template are not text"}
	}
	query := url.Values{"PhoneNumbers": {international(to)}, "SignName": {a.cfg.Signature}, "TemplateCode": {text.ID}, "TemplateParam": {string(encoded)}}
	if reference := m.Reference(); reference != "" {
		query.Set("OutId", reference)
	}
	u := *a.url
	u.RawQuery = canonicalQuery(query)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("x-acs-action", "SendSms")
	r.Header.Set("x-acs-version", version)
	r.Header.Set("x-acs-date", a.cfg.Time().UTC().Format(time.RFC3339))
	r.Header.Set("x-acs-signature-nonce", uuid.NewString())
	Sign(r, a.cfg.KeyID, a.cfg.KeySecret)
	return r, nil
}

// international writes a number as the service expects it: a number of China as the national
// number, any other number with its country code and without a plus.
func international(e164 string) string {
	if national, ok := strings.CutPrefix(e164, "+86"); ok {
		return national
	}
	return strings.TrimPrefix(e164, "+")
}

func (a account) Read(answer sender.Answer, usual delivery.Result) sms.Said {
	var body struct {
		Code    string `json:"Code"`
		Message string `json:"Message"`
	}
	if json.Unmarshal(answer.Body, &body) != nil {
		return sms.Said{}
	}
	said := sms.Said{Accepted: body.Code == "OK", Code: body.Code, Words: body.Message, Result: delivery.Result{Status: classOf(body.Code)}}
	// A defect of the service may be behind a message that it took.
	said.Result.Unsent = answer.Status < http.StatusInternalServerError && !slices.Contains([]string{"isp.SYSTEM_ERROR", "isp.GATEWAY_ERROR"}, body.Code)
	if said.Result.Status == delivery.Throttled {
		// Limits of one number are separate from limits of the account.
		said.Result.Apart = body.Code == "isv.BUSINESS_LIMIT_CONTROL"
		if said.Result.After = usual.After; usual.After == 0 && !strings.HasPrefix(body.Code, "Throttling") {
			said.Result.After = limitPause
		}
	}
	return said
}

// permanent are the codes about this message or its recipient.
var permanent = []string{"isv.MOBILE_NUMBER_ILLEGAL", "isv.MOBILE_COUNT_OVER_LIMIT", "isv.BLACK_KEY_CONTROL_LIMIT", "isv.BLACK_LIST",
	"isv.PARAM_LENGTH_LIMIT", "isv.PARAM_NOT_SUPPORT_URL", "isv.INVALID_PARAMETERS", "isv.INVALID_JSON_PARAM", "isv.TEMPLATE_MISSING_PARAMETERS",
	"isv.TEMPLATE_PARAMS_ILLEGAL", "isv.SMS_CONTENT_ILLEGAL", "isv.UNSUPPORTED_CONTENT", "isv.PHONENUMBER_BLACKLIST", "MOBILE_NUMBER_ILLEGAL"}

// classOf sorts the service's codes. Codes about the account, its signature, template, balance
// or key are transient, so they end no delivery.
func classOf(code string) delivery.Status {
	switch {
	case slices.Contains(permanent, code):
		return delivery.Permanent
	case strings.HasPrefix(code, "Throttling"), code == "isv.BUSINESS_LIMIT_CONTROL", code == "isv.DAY_LIMIT_CONTROL", code == "isv.MONTH_LIMIT_CONTROL", code == "isv.SMS_OVER_LIMIT":
		return delivery.Throttled
	}
	return delivery.Transient
}
