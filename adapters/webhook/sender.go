// Package webhook delivers messages to an HTTP endpoint of the shop, signed according to the
// Standard Webhooks specification (standardwebhooks.com, 1.0).
//
// One call is POST {"messages":[{"user_id","template_id","kind","slot","title",
// "text","idempotency_key"}]} with at most 100 messages. The header webhook-id is the same when
// the same messages are sent together again.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.opentelemetry.io/otel/propagation"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/killpoint"
)

const (
	chunkSize      = 100
	defaultTimeout = 15 * time.Second
	// maxDrain is how much of an answer is read to keep the connection.
	maxDrain = 64 << 10
	// writeBuffer holds most calls whole, so that one write sends them.
	writeBuffer = 64 << 10
)

// Config says where to deliver.
type Config struct {
	// URL is the endpoint; http or https; required.
	URL string
	// Secret signs the calls: "whsec_" and base64, as in the specification; required.
	Secret string
	// Timeout bounds one call from dialling to the answer; default 15 s.
	Timeout time.Duration
	// Control judges every address after the name was resolved and before the connection; no
	// proxy is used then. nil = every address is permitted.
	Control sender.Control
	// Now is the clock for timestamps and Retry-After dates; default [time.Now].
	Now func() time.Time
}

// A Sender posts messages to the endpoint. It is safe for concurrent use.
type Sender struct {
	cfg    Config
	client *http.Client
	key    []byte
	// room is the size of the last body in bytes, plus an eighth.
	room atomic.Int64
}

// New returns a sender. An error names the mistake in cfg and never contains the secret.
// New does not connect.
func New(cfg Config) (*Sender, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("webhook address: not an http or https URL")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(cfg.Secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("webhook secret: not of the form whsec_ followed by base64")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Sender{cfg: cfg, client: newClient(cfg.Timeout, cfg.Control), key: key}, nil
}

// signature returns the signature of the specification's symmetric scheme, version 1. The
// specification's own library is not used, because it copies every body twice for a signature.
func signature(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	head := append(append(make([]byte, 0, 64), id...), '.')
	head = append(strconv.AppendInt(head, at.Unix(), 10), '.')
	mac.Write(head)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func newClient(timeout time.Duration, control sender.Control) *http.Client {
	transport := sender.NewTransport(timeout, control)
	transport.WriteBufferSize = writeBuffer
	return sender.NewClient(timeout, transport)
}

// Channel returns [delivery.Webhook].
func (s *Sender) Channel() delivery.Channel { return delivery.Webhook }

// ChunkSize returns the most messages in one call.
func (s *Sender) ChunkSize() int { return chunkSize }

// Close ends idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Send posts the messages in one call. The answer's status holds for all of them: 2xx is
// Delivered, whatever the body, unless the body is a web page.
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	if len(messages) == 0 {
		return nil
	}
	result, err := s.post(ctx, messages)
	if err != nil {
		result = delivery.Result{Unsent: sender.Unreached(err), Detail: delivery.CauseOf(err)}
	}
	return delivery.Repeat(result, len(messages))
}

func (s *Sender) post(ctx context.Context, messages []delivery.Message) (delivery.Result, error) {
	if err := ctx.Err(); err != nil {
		return delivery.Result{}, err
	}
	body, id := compose(messages, s.room.Load())
	s.room.Store(int64(len(body) + len(body)/8))
	req, err := s.request(ctx, body, id)
	if err != nil {
		return delivery.Result{}, err
	}
	var resp *http.Response
	err = killpoint.Around("webhook.call", func() (err error) {
		resp, err = s.client.Do(req)
		return err
	})
	if err != nil {
		return delivery.Result{}, err
	}
	var start [512]byte // all that the content type is detected from
	n, _ := io.ReadFull(resp.Body, start[:])
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	_ = resp.Body.Close()
	result := delivery.HTTPResult(resp.StatusCode, resp.Header.Get("Retry-After"), s.cfg.Now())
	if result.Status == delivery.Delivered && isPage(start[:n]) {
		result = delivery.Result{Detail: "the endpoint answered HTTP " + strconv.Itoa(resp.StatusCode) + " with a web page, as a sign-in or error page does; check its address"}
	}
	return result, nil
}

// isPage reports whether an answer is an HTML document, which is no acknowledgement of a
// webhook. The header Content-Type is not reliable: many frameworks call a plain "ok" text/html.
func isPage(start []byte) bool {
	return strings.HasPrefix(http.DetectContentType(start), "text/html")
}

func (s *Sender) request(ctx context.Context, body []byte, id string) (*http.Request, error) {
	now := s.cfg.Now()
	req, err := signedRequest(ctx, s.cfg.URL, id, now, body, s.key)
	if err != nil {
		return nil, err
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header)) // nothing unless ctx is traced
	return req, nil
}

// signedRequest returns a request with a signature for each of the keys.
func signedRequest(ctx context.Context, url, id string, at time.Time, body []byte, keys ...[]byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body)) // which the transport can send in one write, and repeat
	if err != nil {
		return nil, err
	}
	signatures := make([]string, len(keys))
	for i, key := range keys {
		signatures[i] = signature(key, id, at, body)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Dropbell")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return req, nil
}
