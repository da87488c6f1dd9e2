// Package sender holds the common parts of the senders of all providers: the HTTP client,
// bounded reading of answers, parallel calls, access tokens and quotas. The package of a
// provider builds and signs a request and reads the answer.
package sender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"syscall"
	"time"

	"dropbell/domain/netrule"
)

// maxIdle keeps a connection for every parallel call there is likely to be.
const maxIdle = 64

// A Control judges every address before it is connected to, after the name was resolved.
type Control = func(ctx context.Context, network, address string, c syscall.RawConn) error

// Public is the [Control] that refuses addresses that are not public, with [netrule.ErrPrivate].
// It also refuses a public name that resolves to a private address.
func Public(_ context.Context, _, address string, _ syscall.RawConn) error {
	return netrule.Dialled(address)
}

// Options are the common options of all providers' configurations.
type Options struct {
	// Timeout bounds one call; 0 = as the provider's package says.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control Control
	// Now is the clock of signatures, tokens and Retry-After; nil = [time.Now].
	Now func() time.Time
}

// Time returns the time by the clock.
func (o Options) Time() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

// Client returns the client for the provider's calls; usual is the timeout if none is set.
func (o Options) Client(usual time.Duration) *http.Client {
	if o.Timeout > 0 {
		usual = o.Timeout
	}
	return NewClient(usual, NewTransport(usual, o.Control))
}

// NewTransport returns a transport whose dialler takes at most timeout. control may be nil. With
// a control the transport uses no proxy, because a proxy would resolve names itself.
func NewTransport(timeout time.Duration, control Control) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = maxIdle
	if control != nil {
		t.Proxy = nil
		t.DialContext = (&net.Dialer{Timeout: timeout, ControlContext: control}).DialContext
	}
	return t
}

// NewClient returns a client whose calls take at most timeout, from dialling to the end of the
// answer. The client follows no redirects: a redirect could collect contacts and signatures, and
// would bypass the check of the address.
func NewClient(timeout time.Duration, t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// An Answer is a provider's answer to one call.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Cut is why the body could not be read to its end or the limit; nil = it was.
	Cut error
}

// Call makes the call and reads at most limit bytes of the answer's body. An error means that
// there is no answer, and says why.
func Call(client *http.Client, r *http.Request, limit int64) (Answer, error) {
	response, err := client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, limit))
	return Answer{response.StatusCode, response.Header, body, err}, nil
}

// Post posts a body of JSON with further headers, as [Call] does.
func Post(ctx context.Context, client *http.Client, address string, header http.Header, body []byte, limit int64) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	maps.Copy(r.Header, header)
	r.Header.Set("Content-Type", "application/json")
	return Call(client, r, limit)
}

// JSON encodes v without escaping characters of HTML and without a line feed at the end. v must
// be encodable.
func JSON(v any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Unreached reports whether the error of a call means that no connection was made. The provider
// has then certainly taken no message.
func Unreached(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}
