// Package linkcheck asks whether the addresses in messages answer. Addresses that are not public are
// not called: shops type them, and they must not lead into the network of the servers.
package linkcheck

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"dropbell/adapters/sender"
)

const (
	// timeout bounds one call.
	timeout = 4 * time.Second
	// maxAnswer is how much of a page is read before the connection is closed.
	maxAnswer = 1 << 10
	// mostRedirects is how many redirects one call follows. The address of each is judged too.
	mostRedirects = 5
	agent         = "Dropbell-link-check"
)

// A Caller calls links; see [dropbell/domain/flight.Caller]. It is safe for concurrent use.
type Caller struct{ client *http.Client }

// New returns a caller. With private it calls addresses that are not public too, for installations on
// one machine.
func New(private bool) *Caller {
	control := sender.Public
	if private {
		control = nil
	}
	client := sender.Options{Control: control}.Client(timeout)
	client.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
		if len(via) >= mostRedirects {
			return errors.New("too many redirects")
		}
		return nil
	}
	return &Caller{client}
}

// Close ends idle connections.
func (c *Caller) Close() error {
	c.client.CloseIdleConnections()
	return nil
}

// Call returns the HTTP status with which the address answers, 0 if there is no answer. A server that does
// not take HEAD is asked with GET.
func (c *Caller) Call(ctx context.Context, address string) int {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return 0
	}
	status := 0
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		r, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
		if err != nil {
			return 0
		}
		r.Header.Set("User-Agent", agent)
		answer, err := sender.Call(c.client, r, maxAnswer)
		if err != nil {
			return status
		}
		if status = answer.Status; status < http.StatusBadRequest {
			break
		}
	}
	return status
}
