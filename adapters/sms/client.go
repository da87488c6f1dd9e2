// Package sms holds the common parts of all providers of text messages: numbers, registered
// texts, budgets and the sender. The interface of each provider is an [Account] in a package of
// its own.
package sms

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
)

const (
	defaultTimeout = 15 * time.Second
	// maxAnswer is the most bytes that are read of an answer. It leaves room for 100 results
	// with long errors.
	maxAnswer = 1 << 20
)

// A Client is the HTTP side of a sender of text messages, which embeds it.
type Client struct {
	options   sender.Options
	chunkSize int
	http      *http.Client
}

// NewClient returns a client for a sender that takes chunkSize messages in one Send. A
// call takes at most 15 s, unless the options say otherwise.
func NewClient(chunkSize int, o sender.Options) *Client {
	return &Client{o, chunkSize, o.Client(defaultTimeout)}
}

// Channel returns [delivery.SMS].
func (c *Client) Channel() delivery.Channel { return delivery.SMS }

// ChunkSize returns the most messages of one Send.
func (c *Client) ChunkSize() int { return c.chunkSize }

// Close ends idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Call makes the call and returns its answer. usual is the result that the answer's HTTP status
// means. failed is the result if no answer came, or an incomplete or too large answer; otherwise
// nil. usual is also set for an answer that is too large.
func (c *Client) Call(r *http.Request) (a sender.Answer, usual delivery.Result, failed *delivery.Result) {
	r.Header.Set("User-Agent", "Dropbell")
	a, err := sender.Call(c.http, r, maxAnswer+1)
	switch {
	case err != nil:
		return a, usual, &delivery.Result{Unsent: sender.Unreached(err), Detail: delivery.CauseOf(err)}
	case a.Cut != nil:
		return a, usual, &delivery.Result{Detail: delivery.CauseOf(a.Cut)}
	case len(a.Body) > maxAnswer:
		failed = &delivery.Result{Detail: fmt.Sprintf("the provider's answer is larger than %d KiB", maxAnswer>>10)}
	}
	return a, delivery.HTTPResult(a.Status, a.Header.Get("Retry-After"), c.options.Time()), failed
}

// Endpoint returns the address of an interface without a slash at the end: given, which an
// operator sets, or usual if given is empty.
func Endpoint(given, usual string) (*url.URL, error) {
	if given == "" {
		given = usual
	}
	u, err := url.Parse(strings.TrimRight(given, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the address of the SMS provider is not an http or https URL without a query")
	}
	return u, nil
}

// NotAgreed is the result of an answer that is not in the provider's format.
func NotAgreed() delivery.Result {
	return delivery.Result{Detail: "the provider's answer is not in its published format"}
}

// Ended is the result of a message that is not handed over because the context has ended.
func Ended(err error) delivery.Result {
	return delivery.Result{Unsent: true, Detail: delivery.CauseOf(err)}
}
