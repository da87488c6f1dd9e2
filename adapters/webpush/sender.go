// Package webpush delivers to browsers (RFC 8030), encrypted (RFC 8291) and
// identified by VAPID (RFC 8292).
package webpush

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	push "github.com/SherClockHolmes/webpush-go"
	"golang.org/x/sync/errgroup"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

const (
	// chunkSize is small because every message is a call of its own, or several.
	chunkSize = 20
	// maxSubscriptions bounds what one user can make us do; the newest count.
	maxSubscriptions = 20
	// maxDrain is how much of an answer is read to keep the connection.
	maxDrain = 16 << 10
)

// A Sender pushes to all of a user's browsers. It is safe for concurrent use.
type Sender struct {
	cfg     Config
	client  *http.Client
	subject string
}

// New returns a sender, or an error that says what is wrong with cfg, without
// the private key.
func New(cfg Config) (*Sender, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	return &Sender{
		cfg: cfg,
		// The library adds the scheme of mail addresses by itself.
		subject: strings.TrimPrefix(cfg.Subject, "mailto:"),
		client: &http.Client{
			Transport: cfg.Transport,
			Timeout:   cfg.Timeout,
			// A redirect would lead around the check of the endpoint.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Channel returns [delivery.WebPush].
func (s *Sender) Channel() delivery.Channel { return delivery.WebPush }

// ChunkSize returns the most messages of one Send.
func (s *Sender) ChunkSize() int { return chunkSize }

// Close ends idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Send pushes every message to all subscriptions of its user. It is Delivered
// if any push service accepts it, and Permanent if none of the user's
// subscriptions can ever work again.
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	results := make([]delivery.Result, len(messages))
	var group errgroup.Group
	group.SetLimit(s.cfg.Parallel)
	for i, m := range messages {
		group.Go(func() error {
			results[i] = s.one(ctx, m)
			return nil
		})
	}
	_ = group.Wait()
	return results
}

func (s *Sender) one(ctx context.Context, m delivery.Message) delivery.Result {
	subscriptions := m.To.Push
	if len(subscriptions) == 0 {
		return delivery.Result{Status: delivery.Permanent, Detail: "no push subscription"}
	}
	subscriptions = subscriptions[max(0, len(subscriptions)-maxSubscriptions):]
	body := payload(m)
	best := delivery.Result{Status: delivery.Permanent}
	for i, subscription := range subscriptions {
		result := s.push(ctx, m, subscription, body)
		if i == 0 || better(result, best) {
			best = result
		}
	}
	return best
}

// better tells which of two answers says more about what to do next: delivered
// is done; waiting as asked and trying again come before giving up.
func better(a, b delivery.Result) bool {
	rank := [...]int{delivery.Delivered: 3, delivery.Throttled: 2, delivery.Transient: 1, delivery.Permanent: 0}
	if rank[a.Status] != rank[b.Status] {
		return rank[a.Status] > rank[b.Status]
	}
	return a.After > b.After
}

func (s *Sender) push(ctx context.Context, m delivery.Message, to user.PushSubscription, body []byte) delivery.Result {
	if err := ctx.Err(); err != nil {
		return delivery.Result{Detail: delivery.CauseOf(err)}
	}
	if err := s.cfg.checkEndpoint(to.Endpoint); err != nil {
		return delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
	}
	now := s.cfg.Now()
	resp, err := push.SendNotificationWithContext(ctx, body, &push.Subscription{
		Endpoint: to.Endpoint,
		Keys:     push.Keys{Auth: to.Auth, P256dh: to.P256dh},
	}, &push.Options{
		HTTPClient:      s.client,
		Subscriber:      s.subject,
		Topic:           topic(m),
		TTL:             ttl(m.Subject, now),
		Urgency:         push.UrgencyHigh,
		VAPIDPublicKey:  s.cfg.PublicKey,
		VAPIDPrivateKey: s.cfg.PrivateKey,
	})
	if err != nil {
		return failure(err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrain)
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
		if s.cfg.OnGone != nil {
			s.cfg.OnGone(m.To.ID, to.Endpoint)
		}
		return delivery.Result{Status: delivery.Permanent, Detail: "the push subscription no longer exists"}
	}
	return delivery.HTTPResult(resp.StatusCode, resp.Header.Get("Retry-After"), now)
}

// failure sorts an error of a push that got no answer. Everything that happens
// before the call is about the subscription's own keys.
func failure(err error) delivery.Result {
	if errors.Is(err, errPrivate) {
		return delivery.Result{Status: delivery.Permanent, Detail: errPrivate.Error()}
	}
	if _, called := errors.AsType[*url.Error](err); called {
		return delivery.Result{Detail: delivery.CauseOf(err)}
	}
	return delivery.Result{Status: delivery.Permanent, Detail: "the push subscription's keys are not usable"}
}
