package sms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"dropbell/domain/delivery"
)

// maxIdle keeps a connection for every parallel call there is likely to be.
const maxIdle = 64

// A Control judges every address before it is connected to, after the name was resolved.
type Control = func(ctx context.Context, network, address string, c syscall.RawConn) error

// NewClient returns a client for a provider's interface. It follows no redirects: one
// could collect phone numbers. With a control, which may be nil, it uses no proxy: that
// would resolve names itself.
func NewClient(timeout time.Duration, control Control) *http.Client {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns = maxIdle
	transport.MaxIdleConnsPerHost = maxIdle
	if control != nil {
		transport.Proxy = nil
		transport.DialContext = (&net.Dialer{Timeout: timeout, ControlContext: control}).DialContext
	}
	return &http.Client{
		Transport:     transport,
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// An Answer is a provider's answer to one call.
type Answer struct {
	Status     int
	RetryAfter string // the header
	Body       []byte
}

// Call makes the call and reads its answer. If there is none, the result says why.
func Call(client *http.Client, r *http.Request) (a Answer, failed *delivery.Result) {
	r.Header.Set("User-Agent", "Dropbell")
	response, err := client.Do(r)
	if err != nil {
		return a, new(noAnswer(err))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return a, &delivery.Result{Detail: delivery.CauseOf(err)}
	}
	if len(body) > maxAnswer {
		return a, &delivery.Result{Detail: fmt.Sprintf("the provider's answer is larger than %d KiB", maxAnswer>>10)}
	}
	return Answer{response.StatusCode, response.Header.Get("Retry-After"), body}, nil
}

// noAnswer is the result of a call that failed. A provider to which there is no
// connection has taken nothing.
func noAnswer(err error) delivery.Result {
	failed, ok := errors.AsType[*net.OpError](err)
	return delivery.Result{Unsent: ok && failed.Op == "dial", Detail: delivery.CauseOf(err)}
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

// Without returns a provider's words without the secrets.
func Without(words string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			words = strings.ReplaceAll(words, s, "…")
		}
	}
	return words
}

// NotAgreed is the result of an answer that is not in the provider's format.
func NotAgreed() delivery.Result {
	return delivery.Result{Detail: "the provider's answer is not in its published format"}
}
