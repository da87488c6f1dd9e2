// Package sms has what all providers of text messages have in common: numbers,
// registered texts, budgets and the frame of a sender. Each provider's interface is an
// [Account] in a package of its own.
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
	// maxAnswer bounds how many bytes of an answer are read: 100 results with generous
	// errors.
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

// Call makes the call and returns its answer with the result that the answer's status
// stands for. failed, unless nil, is the result if the answer did not come, or not whole,
// or is too large; of an answer that is too large usual is set, too.
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

// Endpoint returns the address of an interface, given by an operator or else the
// usual one, without a slash at the end.
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
