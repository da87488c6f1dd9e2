// Package siteverify checks tokens at a service such as Turnstile or hCaptcha. They share one call: a
// form with secret and response, answered by JSON with success.
package siteverify

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dropbell/domain/pass"
)

const (
	// patience is how long a call may take; a user's request ends after two seconds.
	patience = 1500 * time.Millisecond
	// atOnce bounds the calls in flight of this process.
	atOnce    = 64
	maxAnswer = 64 << 10
)

// Client calls the service. It is a [pass.Verifier].
type Client struct {
	address, secret string
	http            *http.Client
	turns           chan struct{}
}

// New returns a client of the service at address. Addresses of users are not sent to the service.
func New(address, secret string) *Client {
	return &Client{address, secret, &http.Client{Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, make(chan struct{}, atOnce)}
}

// Verify is part of [pass.Verifier]. The outcome is unknown, and the error [pass.ErrUnreachable],
// also if the service rejects the secret or answers without JSON.
func (c *Client) Verify(ctx context.Context, token string) (bool, error) {
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return false, pass.ErrUnreachable
	}
	form := url.Values{"secret": {c.secret}, "response": {token}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, strings.NewReader(form.Encode()))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.http.Do(r)
	if err != nil {
		return false, pass.ErrUnreachable
	}
	defer answer.Body.Close()
	var said struct {
		Success *bool    `json:"success"`
		Errors  []string `json:"error-codes"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&said); err != nil || said.Success == nil || answer.StatusCode >= 500 {
		return false, pass.ErrUnreachable
	}
	for _, code := range said.Errors {
		if strings.HasSuffix(code, "-input-secret") || strings.HasSuffix(code, "-secret") || code == "internal-error" {
			return false, pass.ErrUnreachable.Because("the service that checks tokens answers %s; the operator must correct SITEVERIFY_SECRET", code)
		}
	}
	return *said.Success, nil
}
