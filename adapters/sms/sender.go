// Package sms sends text messages through a provider with a JSON interface, and has
// what its packages for providers with interfaces of their own share.
//
// One call is POST {"messages":[{"to","text","idempotency_key","reference"}]}, at
// most 100, with a bearer token. reference is left out where no receipts are taken. The provider answers 200 with
// {"results":[{"status":"accepted"|"rejected"|"throttled","error":""}]} in the
// order of the messages, or 429, or 5xx.
package sms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dropbell/domain/delivery"
)

const (
	chunkSize      = 100
	defaultTimeout = 15 * time.Second
	// maxAnswer bounds what is read of an answer: 100 results with generous errors.
	maxAnswer = 1 << 20
)

// Config says which provider to use.
type Config struct {
	// URL is where messages are posted; http or https; required.
	URL string
	// Token is sent as a bearer token; empty sends none.
	Token string
	// Timeout bounds one call from dialling to the end of the answer; default 15 s.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control Control
	// Now is the clock for Retry-After dates; default [time.Now].
	Now func() time.Time
}

// A Sender posts messages to the provider. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	client *http.Client
}

// New returns a sender, or an error that says what is wrong with cfg, without
// the token. It does not connect.
func New(cfg Config) (*Sender, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("sms address: not an http or https URL")
	}
	if strings.ContainsAny(cfg.Token, "\r\n") {
		return nil, errors.New("sms token: contains a line break")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Sender{cfg: cfg, client: NewClient(cfg.Timeout, cfg.Control)}, nil
}

// Channel returns [delivery.SMS].
func (s *Sender) Channel() delivery.Channel { return delivery.SMS }

// ChunkSize returns the most messages the provider takes in one call.
func (s *Sender) ChunkSize() int { return chunkSize }

// Close ends idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Send posts all messages with a usable number in one call; the others are
// Permanent. An answer that cannot be parsed is Transient for all of them.
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	results := make([]delivery.Result, len(messages))
	if err := ctx.Err(); err != nil {
		return delivery.Repeat(delivery.Result{Unsent: true, Detail: delivery.CauseOf(err)}, len(messages))
	}
	sendable := make([]int, 0, len(messages))
	texts := make([]text, 0, len(messages))
	for i, m := range messages {
		to, err := Number(m.To.Phone)
		if err != nil {
			results[i] = delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
			continue
		}
		sendable = append(sendable, i)
		texts = append(texts, text{To: to, Text: Shorten(m.Content.Text), IdempotencyKey: m.IdempotencyKey(), Reference: m.Reference()})
	}
	if len(texts) == 0 {
		return results
	}
	for k, r := range s.post(ctx, texts) {
		results[sendable[k]] = r
	}
	return results
}

// text is one message of the provider's contract.
type text struct {
	To             string `json:"to"`
	Text           string `json:"text"`
	IdempotencyKey string `json:"idempotency_key"`
	// Reference names the message in receipts; left out where there are none.
	Reference string `json:"reference,omitempty"`
}

func (s *Sender) post(ctx context.Context, texts []text) []delivery.Result {
	all := func(r delivery.Result) []delivery.Result { return delivery.Repeat(r, len(texts)) }
	resp, err := s.call(ctx, texts)
	if err != nil {
		return all(noAnswer(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return all(delivery.Result{Detail: delivery.CauseOf(err)})
	}

	now := s.cfg.Now()
	retryAfter := resp.Header.Get("Retry-After")
	if whole := delivery.HTTPResult(resp.StatusCode, retryAfter, now); whole.Status != delivery.Delivered {
		return all(whole)
	}
	results, err := s.understand(body, len(texts))
	if err != nil {
		return all(delivery.Result{Detail: err.Error()})
	}
	for i := range results {
		if results[i].Status == delivery.Throttled {
			results[i].After = delivery.RetryAfter(retryAfter, now)
		}
	}
	return results
}

func (s *Sender) call(ctx context.Context, texts []text) (*http.Response, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string][]text{"messages": texts}); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, &body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Dropbell")
	if s.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.cfg.Token)
	}
	return s.client.Do(req)
}

// understand reads an answer to n messages.
func (s *Sender) understand(body []byte, n int) ([]delivery.Result, error) {
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the provider's answer is larger than %d KiB", maxAnswer>>10)
	}
	var answer struct {
		Results []struct {
			Status string `json:"status"`
			Error  string `json:"error"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errors.New("the provider's answer is not the JSON that was agreed")
	}
	if len(answer.Results) != n {
		return nil, fmt.Errorf("the provider answered %d results for %d messages", len(answer.Results), n)
	}
	results := make([]delivery.Result, n)
	for i, r := range answer.Results {
		results[i] = s.result(r.Status, r.Error)
	}
	return results, nil
}

func (s *Sender) result(status, cause string) delivery.Result {
	if s.cfg.Token != "" {
		cause = strings.ReplaceAll(cause, s.cfg.Token, "…")
	}
	switch status {
	case "accepted":
		return delivery.Result{Status: delivery.Delivered}
	case "rejected":
		return delivery.Result{Status: delivery.Permanent, Detail: delivery.DetailOf("rejected: " + cause)}
	case "throttled":
		return delivery.Result{Status: delivery.Throttled, Detail: delivery.DetailOf("throttled: " + cause)}
	}
	return delivery.Result{Detail: delivery.DetailOf("the provider answered an unknown status: " + status)}
}
