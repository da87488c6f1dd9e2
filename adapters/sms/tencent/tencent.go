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
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
)

// DefaultURL is the interface, and DefaultRegion the region of an application, that
// most accounts have.
const (
	DefaultURL    = "https://sms.tencentcloudapi.com"
	DefaultRegion = "ap-guangzhou"
)

const (
	version = "2021-01-11"
	// chunkSize is the most numbers of one call.
	chunkSize = 200
	// atOnce is how many calls of one Send are under way at once, if its messages have
	// different values.
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
	// Serials keeps the names of messages, since receipts have no other; nil = receipts
	// are not taken.
	Serials feedback.Serials
	// Timeout bounds one call; 0 = 15 s.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control sms.Control
	// Now is the clock of signatures; nil = [time.Now].
	Now func() time.Time
}

// A Sender sends by Tencent Cloud. It is safe for concurrent use.
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

// ChunkSize returns the most numbers of one call.
func (s *Sender) ChunkSize() int { return chunkSize }

// Close ends idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// A group is messages with the same template and values, which one call may hold.
type group struct {
	request request
	at      []int // places among the messages
}

func (g *group) halves() [2]*group {
	n := len(g.at) / 2
	a, b := *g, *g
	a.at, b.at = g.at[:n], g.at[n:]
	a.request.PhoneNumberSet, b.request.PhoneNumberSet = g.request.PhoneNumberSet[:n], g.request.PhoneNumberSet[n:]
	return [2]*group{&a, &b}
}

// request is the body of SendSms.
type request struct {
	PhoneNumberSet   []string
	SmsSdkAppID      string `json:"SmsSdkAppId"`
	SignName         string `json:",omitempty"`
	TemplateID       string `json:"TemplateId"`
	TemplateParamSet []string
}

// A sending is one Send.
type sending struct {
	*Sender
	messages []delivery.Message
	results  []delivery.Result
	stopped  atomic.Bool // something that was taken cannot be recorded
}

// Send sends messages with the same text in one call, different ones side by side. A
// call takes its place among those under way until its messages are recorded in their
// [delivery.Journal].
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	results := make([]delivery.Result, len(messages))
	if err := ctx.Err(); err != nil {
		return delivery.Repeat(delivery.Result{Unsent: true, Detail: delivery.CauseOf(err)}, len(messages))
	}
	under := &sending{Sender: s, messages: messages, results: results}
	var calls errgroup.Group
	calls.SetLimit(atOnce)
	for _, g := range s.groups(messages, results) {
		calls.Go(func() error {
			crash := delivery.Isolated(func() delivery.Result {
				under.send(ctx, g)
				return delivery.Result{}
			})
			if crash.Crash != nil {
				for _, i := range g.at {
					results[i] = crash
				}
			}
			return nil
		})
	}
	_ = calls.Wait()
	return results
}

// groups divides the messages, and answers those that cannot be sent. A call holds
// numbers of China or others, and not both.
func (s *Sender) groups(messages []delivery.Message, results []delivery.Result) []*group {
	of := map[string]*group{}
	var list []*group
	for i, m := range messages {
		to, err := sms.Number(m.To.Phone)
		if err != nil {
			results[i] = delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
			continue
		}
		text, found := s.cfg.Templates.For(m)
		if !found {
			results[i] = sms.NoTemplate(m)
			continue
		}
		key := strconv.FormatBool(strings.HasPrefix(to, "+86")) + "\x00" + text.ID + "\x00" + strings.Join(text.Values, "\x00")
		g := of[key]
		if g == nil || len(g.at) == chunkSize {
			g = &group{request: request{SmsSdkAppID: s.cfg.App, SignName: s.cfg.Signature, TemplateID: text.ID, TemplateParamSet: append([]string{}, text.Values...)}}
			of[key] = g
			list = append(list, g)
		}
		g.request.PhoneNumberSet = append(g.request.PhoneNumberSet, to)
		g.at = append(g.at, i)
	}
	return list
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

func (s *sending) send(ctx context.Context, g *group) {
	all := func(r delivery.Result) {
		for _, i := range g.at {
			s.results[i] = r
		}
	}
	if s.stopped.Load() {
		all(delivery.Unrecorded())
		return
	}
	if err := ctx.Err(); err != nil {
		all(delivery.Result{Unsent: true, Detail: delivery.CauseOf(err)})
		return
	}
	r, err := s.call(ctx, g.request)
	if err != nil {
		all(delivery.Result{Unsent: true, Detail: "the address of Tencent Cloud is not usable"})
		return
	}
	answer, failed := sms.Call(s.client, r)
	if failed != nil {
		all(*failed)
		return
	}
	whole := delivery.HTTPResult(answer.Status, answer.RetryAfter, s.cfg.Now())
	var body response
	err = json.Unmarshal(answer.Body, &body)
	switch {
	case err == nil && body.Response.Error != nil:
		refused := s.result(body.Response.Error.Code, body.Response.Error.Message)
		if refused.Status == delivery.Permanent && len(g.at) > 1 { // it is about one of them
			for _, half := range g.halves() {
				s.send(ctx, half)
			}
			return
		}
		all(refused)
		return
	case whole.Status != delivery.Delivered:
		all(whole)
		return
	case err != nil || len(body.Response.SendStatusSet) != len(g.at):
		all(sms.NotAgreed())
		return
	}
	var serials []feedback.Serial
	var recorded []func(context.Context) error
	for k, i := range g.at {
		// In the order of the numbers; the service writes some of them differently.
		status, m := body.Response.SendStatusSet[k], s.messages[i]
		if s.results[i] = s.result(status.Code, status.Message); s.results[i].Status != delivery.Delivered {
			continue
		}
		if m.Journal != nil {
			recorded = append(recorded, m.Journal.Accepted(m.To.ID))
		}
		if reference := m.Reference(); reference != "" {
			serials = append(serials, feedback.Serial{ID: status.SerialNo, Reference: reference})
		}
	}
	s.keep(ctx, serials)
	for _, wait := range recorded {
		if wait(ctx) != nil {
			s.stopped.Store(true)
		}
	}
}

// keep stores the names of messages for their receipts. If it fails their receipts are
// lost, and nothing else.
func (s *Sender) keep(ctx context.Context, serials []feedback.Serial) {
	if s.cfg.Serials == nil || len(serials) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepPatience)
	defer cancel()
	_ = s.cfg.Serials.Keep(ctx, name, serials)
}

func (s *Sender) call(ctx context.Context, body request) (*http.Request, error) {
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
	Sign(r, raw, "sms", s.cfg.KeyID, s.cfg.KeySecret, s.cfg.Now())
	return r, nil
}

// result is what a code means, of a number or of a call.
func (s *Sender) result(code, words string) delivery.Result {
	if code == "Ok" {
		return delivery.Result{Status: delivery.Delivered}
	}
	// A defect of the service may be behind a message that it took.
	r := delivery.Result{Status: classOf(code), Unsent: !strings.HasPrefix(code, "InternalError"), Detail: delivery.DetailOf(sms.Without("Tencent Cloud answered "+code+": "+words, s.cfg.KeySecret, s.cfg.KeyID))}
	if r.Status == delivery.Throttled {
		r.Apart = slices.Contains(ofNumber, code)
		if r.After = limitPause; strings.HasPrefix(code, "RequestLimitExceeded") {
			r.After = time.Second
		}
	}
	return r
}

// ofNumber are limits of one number. permanent are codes about this message or its
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

// classOf sorts codes. Those about the account, its signature, template, balance or key
// are transient: they end no delivery.
func classOf(code string) delivery.Status {
	switch {
	case slices.Contains(permanent, code):
		return delivery.Permanent
	case strings.HasPrefix(code, "LimitExceeded"), strings.HasPrefix(code, "RequestLimitExceeded"):
		return delivery.Throttled
	}
	return delivery.Transient
}
