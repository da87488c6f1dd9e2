// Package jsonapi sends text messages through a provider with a JSON interface, and reads its
// callbacks.
//
// One call is POST {"messages":[{"to","text","idempotency_key","reference"}]} with a bearer
// token and at most 100 messages. reference is omitted if no receipts are taken. The provider
// answers 200 with {"results":[{"status":"accepted"|"rejected"|"throttled","error":""}]} in the
// order of the messages, or 429, or 5xx.
package jsonapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"dropbell/adapters/sender"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
)

const chunkSize = 100

// Config says which provider to use.
type Config struct {
	// URL is where messages are posted; http or https; required.
	URL string
	// Token is sent as a bearer token; empty sends none.
	Token string
	sender.Options
}

// A Sender posts messages to the provider. It is safe for concurrent use.
type Sender struct {
	*sms.Client
	cfg Config
}

// New returns a sender. An error names the mistake in cfg and never contains the token.
// New does not connect.
func New(cfg Config) (*Sender, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("sms address: not an http or https URL")
	}
	if strings.ContainsAny(cfg.Token, "\r\n") {
		return nil, errors.New("sms token: contains a line break")
	}
	return &Sender{sms.NewClient(chunkSize, cfg.Options), cfg}, nil
}

// Send posts all messages with a usable number in one call. Messages without a usable number are
// Permanent. If the answer cannot be parsed, all posted messages are Transient.
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	results := make([]delivery.Result, len(messages))
	if err := ctx.Err(); err != nil {
		return delivery.Repeat(sms.Ended(err), len(messages))
	}
	sendable := make([]int, 0, len(messages))
	texts := make([]text, 0, len(messages))
	for i, m := range messages {
		to, err := sms.Number(m.To.Phone)
		if err != nil {
			results[i] = delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
			continue
		}
		sendable = append(sendable, i)
		texts = append(texts, text{To: to, Text: sms.Shorten(m.Content.Text), IdempotencyKey: m.IdempotencyKey(), Reference: m.Reference()})
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
	body := append(sender.JSON(map[string][]text{"messages": texts}), '\n')
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return all(delivery.Result{Detail: delivery.CauseOf(err)})
	}
	r.Header.Set("Content-Type", "application/json")
	if s.cfg.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.cfg.Token)
	}
	answer, whole, failed := s.Call(r)
	switch {
	case whole.Detail != "": // a status other than 2xx, whatever the body
		return all(whole)
	case failed != nil:
		return all(*failed)
	}
	results, err := s.understand(answer.Body, len(texts))
	if err != nil {
		return all(delivery.Result{Detail: err.Error()})
	}
	for i := range results {
		if results[i].Status == delivery.Throttled {
			results[i].After = delivery.RetryAfter(answer.Header.Get("Retry-After"), s.cfg.Time())
		}
	}
	return results
}

// understand reads an answer to n messages.
func (s *Sender) understand(body []byte, n int) ([]delivery.Result, error) {
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
	cause = sms.Without(cause, s.cfg.Token)
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
