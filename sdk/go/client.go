// Package dropbell is the Go client of Dropbell for the servers of shops. Package api below it
// is generated from the server's OpenAPI document and has a method for each operation. Package
// dropbell adds idempotency keys, retries, errors with codes, the server's clock, tokens of end
// users, and the verification of webhooks.
//
// A retry sends the same Idempotency-Key as the first request, so a caller sees one effect and
// one answer. An answer other than 2xx is returned as a [*Problem].
package dropbell

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"dropbell/sdk/go/api"
)

// Client calls a Dropbell server. It is safe for use by several goroutines.
type Client struct {
	*api.ClientWithResponses
	// Clock is the server's clock as the answers so far have shown it.
	Clock *Clock
}

// Credential returns the credential of a request: a service key, or a token of an end user. It
// is called for each request.
type Credential func(context.Context) (string, error)

// ServiceKey authorizes with a service key, dbk_….
func ServiceKey(key string) Credential {
	return func(context.Context) (string, error) { return key, nil }
}

// Option changes how a [Client] calls.
type Option func(*transport)

// WithHTTPClient uses client for connections; default: one with a timeout of 30 s.
func WithHTTPClient(client *http.Client) Option { return func(t *transport) { t.http = client } }

// WithTries sends a request n times at most; default 5. 1 = no retries.
func WithTries(n int) Option { return func(t *transport) { t.tries = max(n, 1) } }

// WithLongestWait limits the pause that a server may ask for; default 30 s. If the server asks
// for a longer pause than d, the client does not retry and returns the [*Problem] at once.
func WithLongestWait(d time.Duration) Option { return func(t *transport) { t.longest = d } }

// AsUser sends each request for the user with this id. The service key needs the scope
// act-as-user.
func AsUser(id string) Option { return func(t *transport) { t.user = id } }

// New returns a client of the server, such as https://drops.example.com.
func New(server string, credential Credential, options ...Option) (*Client, error) {
	if credential == nil {
		return nil, errors.New("dropbell: a credential is required")
	}
	t := &transport{http: &http.Client{Timeout: 30 * time.Second}, credential: credential, clock: &Clock{}, tries: 5,
		longest: 30 * time.Second, wait: pause}
	for _, o := range options {
		o(t)
	}
	generated, err := api.NewClientWithResponses(strings.TrimRight(server, "/")+"/api/v1", api.WithHTTPClient(t))
	if err != nil {
		return nil, err
	}
	return &Client{generated, t.clock}, nil
}
