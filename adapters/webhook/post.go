package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/event/hook"
	"dropbell/domain/netrule"
)

// maxResponse is how many bytes of an answer are kept for the log.
const maxResponse = 2 << 10

// detailPrivate says that the endpoint's name leads to an address that is not called.
const detailPrivate = "the endpoint's name leads to an address that is not public"

// A Poster posts events to the endpoints of shops' servers. It connects only to public
// addresses, which are checked after the name was resolved. It follows no redirects and uses no
// proxy, because a proxy would resolve names itself. It is safe for concurrent use.
type Poster struct {
	client    *http.Client
	rehearsal string // the number of the rehearsal that all requests are about; "" = none
}

// NewPoster returns a poster whose calls take at most timeout, from resolving the name to the
// end of the answer; 0 = 15 s. insecure allows every address, for development.
func NewPoster(timeout time.Duration, insecure bool) *Poster {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	control := sender.Public
	if insecure {
		control = nil
	}
	client := newClient(timeout, control)
	transport := client.Transport.(*http.Transport)
	transport.Proxy = nil
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 256, 16
	transport.MaxResponseHeaderBytes = 64 << 10
	transport.DisableCompression = true // so that an answer is not larger than what is read of it
	return &Poster{client: client}
}

// Close ends idle connections.
func (p *Poster) Close() error {
	p.client.CloseIdleConnections()
	return nil
}

// Rehearsing returns a poster with the connections of p that marks each request as one about a rehearsal: by the field rehearsal of its body, by the
// header [RehearsalHeader], and by an id that no other event has.
func (p *Poster) Rehearsing(id int64) *Poster {
	return &Poster{client: p.client, rehearsal: strconv.FormatInt(id, 10)}
}

// RehearsalHeader is the header of requests about rehearsals; its value is the number of the rehearsal.
const RehearsalHeader = "Dropbell-Rehearsal"

// Post posts the body, signed with each of the keys; see [hook.Poster].
func (p *Poster) Post(ctx context.Context, url, id string, at time.Time, body []byte, keys [][]byte) (a hook.Answer) {
	began := time.Now()
	defer func() { a.Took = time.Since(began) }()
	if p.rehearsal != "" {
		id, body = "rehearsal_"+p.rehearsal+"_"+id, append([]byte(`{"rehearsal":true,`), bytes.TrimPrefix(body, []byte("{"))...)
	}
	req, err := signedRequest(ctx, url, id, at, body, keys...)
	if err != nil {
		return hook.Answer{Error: "the endpoint's address cannot be used"}
	}
	if p.rehearsal != "" {
		req.Header.Set(RehearsalHeader, p.rehearsal)
	}
	resp, err := p.client.Do(req)
	if errors.Is(err, netrule.ErrPrivate) {
		return hook.Answer{Error: detailPrivate}
	}
	if err != nil {
		return hook.Answer{Error: delivery.CauseOf(err)}
	}
	defer resp.Body.Close()
	start, _ := io.ReadAll(io.LimitReader(resp.Body, maxResponse)) // the part that has come is kept
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	return hook.Answer{Status: resp.StatusCode, Response: strings.ToValidUTF8(string(start), "\uFFFD"),
		RetryAfter: delivery.RetryAfter(resp.Header.Get("Retry-After"), at)}
}
