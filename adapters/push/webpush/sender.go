// Package webpush delivers to browsers (RFC 8030). Messages are encrypted (RFC 8291), and the
// server identifies itself by VAPID (RFC 8292).
package webpush

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	push "github.com/SherClockHolmes/webpush-go"

	pushing "dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/netrule"
	"dropbell/domain/user"
)

const (
	// maxSubscriptions is how many subscriptions of one user are called: the newest ones.
	maxSubscriptions = 20
	// maxDrain is how much of an answer is read to keep the connection.
	maxDrain = 16 << 10
)

// A Sender is the push service of browsers. It is safe for concurrent use.
type Sender struct {
	cfg     Config
	client  *http.Client
	subject string
	hosts   *hosts
}

// New returns a sender. An error names the mistake in cfg and never contains the private key.
func New(cfg Config) (*Sender, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	return &Sender{
		cfg:   cfg,
		hosts: newHosts(cfg.Now),
		// The library adds the scheme of mail addresses by itself.
		subject: strings.TrimPrefix(cfg.Subject, "mailto:"),
		client:  sender.NewClient(cfg.Timeout, cfg.Transport),
	}, nil
}

// Name returns "web".
func (s *Sender) Name() string { return "web" }

// Close ends idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Push sends the message to the user's browsers; see [push.Service].
func (s *Sender) Push(ctx context.Context, m delivery.Message) []delivery.Result {
	subscriptions := m.To.Push
	if len(subscriptions) == 0 {
		return nil
	}
	subscriptions = subscriptions[max(0, len(subscriptions)-maxSubscriptions):]
	body := payload(m)
	results := make([]delivery.Result, len(subscriptions))
	for i, subscription := range subscriptions {
		results[i] = s.push(ctx, m, subscription, body)
	}
	return results
}

func (s *Sender) push(ctx context.Context, m delivery.Message, to user.PushSubscription, body []byte) delivery.Result {
	if err := ctx.Err(); err != nil {
		return delivery.Result{Detail: delivery.CauseOf(err)}
	}
	host, err := s.cfg.checkEndpoint(to.Endpoint)
	if err != nil {
		return delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
	}
	if r := s.hosts.ask(host, s.cfg.Timeout); r.left > 0 {
		return s.leftAlone(r)
	}
	result, gone := s.call(ctx, post{body: body, topic: topic(m.IdempotencyKey()), ttl: int(pushing.TTL(m.Subject, s.cfg.Now()))}, host, to)
	if gone && s.cfg.OnGone != nil {
		s.cfg.OnGone(ctx, m.To.ID, to)
	}
	return result
}

// leftAlone is the answer for a host that is not called for a while. The wait counts as an
// attempt only if the host has failed for long, or if all hosts fail.
func (s *Sender) leftAlone(r rest) delivery.Result {
	result := delivery.Result{Detail: "the push service fails and is left alone for a moment: " + r.cause, After: r.left}
	switch {
	case s.hosts.down():
	case s.cfg.Now().Sub(r.since) > forgiving:
		result.Apart = true
	default:
		result.Status, result.Apart = delivery.Throttled, true
	}
	return result
}

// A post is the content of one call. ttl is in seconds.
type post struct {
	body  []byte
	topic string
	ttl   int
}

// call pushes once and records whether the host worked. gone reports that the subscription no
// longer exists.
func (s *Sender) call(ctx context.Context, p post, host string, to user.PushSubscription) (result delivery.Result, gone bool) {
	now := s.cfg.Now()
	resp, err := push.SendNotificationWithContext(ctx, p.body, &push.Subscription{
		Endpoint: to.Endpoint,
		Keys:     push.Keys{Auth: to.Auth, P256dh: to.P256dh},
	}, &push.Options{
		HTTPClient:      s.client,
		Subscriber:      s.subject,
		Topic:           p.topic,
		TTL:             p.ttl,
		Urgency:         push.UrgencyHigh,
		VAPIDPublicKey:  s.cfg.PublicKey,
		VAPIDPrivateKey: s.cfg.PrivateKey,
	})
	if err != nil {
		return s.failure(ctx, host, err), false
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	_ = resp.Body.Close()
	result = delivery.HTTPResult(resp.StatusCode, resp.Header.Get("Retry-After"), now)
	if resp.StatusCode >= 500 && result.Status == delivery.Transient {
		s.hosts.failed(host, result.Detail)
	} else {
		s.hosts.answered(host, result.Status == delivery.Delivered)
	}
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
		return delivery.Result{Status: delivery.Permanent, Detail: "the push subscription no longer exists"}, true
	}
	// How fast one push service may be called is its own affair.
	result.Apart = result.Status == delivery.Throttled || result.Status == delivery.Transient && !s.hosts.down()
	return result, false
}

// failure sorts an error of a push without an answer. Every error before the call concerns the
// subscription's own keys.
func (s *Sender) failure(ctx context.Context, host string, err error) delivery.Result {
	lookup, unresolved := errors.AsType[*net.DNSError](err)
	_, called := errors.AsType[*url.Error](err)
	permanent := ""
	switch {
	case errors.Is(err, netrule.ErrPrivate):
		permanent = detailPrivate
	case !called:
		permanent = "the push subscription's keys are not usable"
	case unresolved && lookup.IsNotFound && !s.hosts.good(host):
		// A host name that has never resolved is invented, or its push service is gone. A host
		// name that has resolved before is missing only for the moment.
		permanent = "the push endpoint's host does not exist"
	case ctx.Err() == nil:
		cause := delivery.CauseOf(err)
		if unresolved {
			cause = delivery.DetailOf("its name was not found: " + lookup.Err) // without the name
		}
		s.hosts.failed(host, cause)
		return delivery.Result{Detail: cause, Apart: !s.hosts.down()}
	}
	s.hosts.spared(host)
	if permanent != "" {
		return delivery.Result{Status: delivery.Permanent, Detail: permanent}
	}
	return delivery.Result{Detail: delivery.CauseOf(err)} // we hung up
}
