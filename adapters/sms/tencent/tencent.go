// Package tencent sends text messages by Tencent Cloud's SMS (API 2021-01-11, signature
// TC3-HMAC-SHA256), and reads its callbacks.
package tencent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/sender"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// DefaultURL is the interface that most accounts use, and DefaultRegion the region of most
// accounts' applications.
const (
	DefaultURL    = "https://sms.tencentcloudapi.com"
	DefaultRegion = "ap-guangzhou"
)

const (
	version = "2021-01-11"
	// chunkSize is the most numbers of one call.
	chunkSize = 200
	// atOnce is how many calls of one Send are under way at once. Messages with different values
	// need different calls.
	atOnce = 20
	// limitPause follows a limit for which the service names no time.
	limitPause = time.Minute
	// keepPatience bounds how long the names of messages may take to be stored.
	keepPatience = 5 * time.Second
)

// Config is the account at Tencent Cloud.
type Config struct {
	// URL is another interface; empty = [DefaultURL]. Region: empty = [DefaultRegion].
	URL, Region string
	// KeyID and KeySecret are SecretId and SecretKey. Required.
	KeyID, KeySecret string
	// App is the SmsSdkAppId. Required.
	App string
	// Signature is the approved SignName; numbers of China demand one.
	Signature string
	// Templates are the approved texts. Required.
	Templates sms.Templates
	// Serials keeps the serial numbers of messages, because receipts name a message only by its
	// serial number; nil = receipts are not taken.
	Serials feedback.Serials
	sender.Options
}

// A Sender sends by Tencent Cloud. It is safe for concurrent use.
type Sender struct {
	*sms.Client
	cfg Config
	url *url.URL
}

// New returns a sender. An error names the mistake in cfg and never contains the key.
// New does not connect.
func New(cfg Config) (*Sender, error) {
	base, err := sms.Endpoint(cfg.URL, DefaultURL)
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.KeyID == "" || cfg.KeySecret == "" || strings.ContainsAny(cfg.KeyID, ",=/ \r\n"):
		return nil, errors.New("the key of Tencent Cloud (SecretId, SecretKey) is missing or not usable")
	case cfg.App == "":
		return nil, errors.New("the application (SmsSdkAppId) is missing")
	case cfg.Templates.Empty():
		return nil, errors.New("there are no templates; Tencent Cloud sends no other texts")
	case strings.ContainsAny(cfg.Region, "\r\n"):
		return nil, errors.New("the region contains a line break")
	}
	if cfg.Region == "" {
		cfg.Region = DefaultRegion
	}
	if base.Path == "" {
		base.Path = "/"
	}
	return &Sender{sms.NewClient(chunkSize, cfg.Options), cfg, base}, nil
}

// request is the body of SendSms.
type request struct {
	PhoneNumberSet   []string
	SmsSdkAppID      string `json:"SmsSdkAppId"`
	SignName         string `json:",omitempty"`
	TemplateID       string `json:"TemplateId"`
	TemplateParamSet []string
}

// Send sends messages with the same text in one call, and calls for different texts in parallel;
// see [sender.Calls].
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	results := make([]delivery.Result, len(messages))
	if err := ctx.Err(); err != nil {
		return delivery.Repeat(sms.Ended(err), len(messages))
	}
	numbers := make([]string, len(messages))
	calls, requests := s.divide(messages, numbers, results)
	sender.Calls(ctx, messages, results, atOnce, calls, func(ctx context.Context, at []int) sender.Reply {
		body := requests[at[0]]
		for _, i := range at {
			body.PhoneNumberSet = append(body.PhoneNumberSet, numbers[i])
		}
		return s.send(ctx, messages, at, body)
	})
	return results
}

// divide groups the messages into calls with the same template and values, and sets the results
// of messages that cannot be sent. A call holds only numbers of China or only other numbers.
// divide sets numbers, and returns the request of each message without its number.
func (s *Sender) divide(messages []delivery.Message, numbers []string, results []delivery.Result) (calls [][]int, requests map[int]request) {
	last := map[string]int{} // the call that messages with these values join
	requests = map[int]request{}
	for i, m := range messages {
		to, err := sms.Number(m.To.Phone)
		if err != nil {
			results[i] = delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
			continue
		}
		text, found := s.cfg.Templates.For(m)
		if !found {
			results[i] = delivery.Result(*sms.NoTemplate(m))
			continue
		}
		numbers[i] = to
		requests[i] = request{SmsSdkAppID: s.cfg.App, SignName: s.cfg.Signature, TemplateID: text.ID, TemplateParamSet: append([]string{}, text.Values...)}
		key := strconv.FormatBool(strings.HasPrefix(to, "+86")) + "\x00" + text.ID + "\x00" + strings.Join(text.Values, "\x00")
		n, known := last[key]
		if !known || len(calls[n]) == chunkSize {
			n, calls = len(calls), append(calls, nil)
			last[key] = n
		}
		calls[n] = append(calls[n], i)
	}
	return calls, requests
}

// response is the answer to SendSms.
type response struct {
	Response struct {
		SendStatusSet []struct {
			SerialNo    string
			PhoneNumber string
			Code        string
			Message     string
		}
		Error *struct{ Code, Message string }
	}
}

// send makes one call with the messages at these places.
func (s *Sender) send(ctx context.Context, messages []delivery.Message, at []int, content request) sender.Reply {
	all := func(r delivery.Result) sender.Reply { return sender.All(r, len(at)) }
	if err := ctx.Err(); err != nil {
		return all(sms.Ended(err))
	}
	r, err := s.request(ctx, content)
	if err != nil {
		return all(delivery.Result{Unsent: true, Detail: "the address of Tencent Cloud is not usable"})
	}
	answer, whole, failed := s.Call(r)
	if failed != nil {
		return all(*failed)
	}
	var body response
	err = json.Unmarshal(answer.Body, &body)
	switch {
	case err == nil && body.Response.Error != nil:
		reply := all(s.result(body.Response.Error.Code, body.Response.Error.Message))
		reply.Divide = reply.Results[0].Status == delivery.Permanent // it is about one of them
		return reply
	case whole.Status != delivery.Delivered:
		return all(whole)
	case err != nil || len(body.Response.SendStatusSet) != len(at):
		return all(sms.NotAgreed())
	}
	reply := all(delivery.Result{})
	var serials []feedback.Serial
	for k, status := range body.Response.SendStatusSet {
		// In the order of the numbers; the service writes some of them differently.
		reply.Results[k] = s.result(status.Code, status.Message)
		if reference := messages[at[k]].Reference(); reference != "" && reply.Results[k].Status == delivery.Delivered {
			serials = append(serials, feedback.Serial{ID: status.SerialNo, Reference: reference})
		}
	}
	reply.Keep = func() { s.keep(ctx, serials) }
	return reply
}

// keep stores the serial numbers of messages for their receipts. If keep fails, only these
// receipts are lost.
func (s *Sender) keep(ctx context.Context, serials []feedback.Serial) {
	if s.cfg.Serials == nil || len(serials) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepPatience)
	defer cancel()
	_ = s.cfg.Serials.Keep(ctx, name, serials)
}

func (s *Sender) request(ctx context.Context, body request) (*http.Request, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("X-TC-Action", "SendSms")
	r.Header.Set("X-TC-Version", version)
	r.Header.Set("X-TC-Region", s.cfg.Region)
	Sign(r, raw, "sms", s.cfg.KeyID, s.cfg.KeySecret, s.cfg.Time())
	return r, nil
}

// result returns the meaning of a code about a number or a call.
func (s *Sender) result(code, words string) delivery.Result {
	if code == "Ok" {
		return delivery.Result{Status: delivery.Delivered}
	}
	// A defect of the service may be behind a message that it took.
	r := delivery.Result{Status: classOf(code), Unsent: !strings.HasPrefix(code, "InternalError"), Detail: sms.Detail("Tencent Cloud answered ", code, words, s.cfg.KeySecret, s.cfg.KeyID)}
	if r.Status == delivery.Throttled {
		r.Apart = slices.Contains(ofNumber, code)
		if r.After = limitPause; strings.HasPrefix(code, "RequestLimitExceeded") {
			r.After = time.Second
		}
	}
	return r
}

// ofNumber are codes about limits of one number. permanent are codes about this message or its
// recipient.
var (
	ofNumber = []string{"LimitExceeded.PhoneNumberDailyLimit", "LimitExceeded.PhoneNumberOneHourLimit", "LimitExceeded.PhoneNumberThirtySecondLimit",
		"LimitExceeded.PhoneNumberSameContentDailyLimit", "LimitExceeded.PhoneNumberCountLimit"}
	permanent = []string{"FailedOperation.PhoneNumberInBlacklist", "FailedOperation.ContainSensitiveWord", "FailedOperation.MarketingSendTimeConstraint",
		"InvalidParameterValue.IncorrectPhoneNumber", "InvalidParameterValue.TemplateParameterLengthLimit", "InvalidParameterValue.TemplateParameterFormatError",
		"InvalidParameterValue.ContentLengthLimit", "InvalidParameterValue.ProhibitedUseUrlInTemplateParameter", "InvalidParameterValue.MobileNumberFormatError",
		"UnsupportedOperation.ChineseMainlandTemplateToGlobalPhone", "UnsupportedOperation.GlobalTemplateToChineseMainlandPhone",
		"UnsupportedOperation.UnsupportedRegion"}
)

// classOf sorts the service's codes. Codes about the account, its signature, template, balance
// or key are transient, so they end no delivery.
func classOf(code string) delivery.Status {
	switch {
	case slices.Contains(permanent, code):
		return delivery.Permanent
	case strings.HasPrefix(code, "LimitExceeded"), strings.HasPrefix(code, "RequestLimitExceeded"):
		return delivery.Throttled
	}
	return delivery.Transient
}
