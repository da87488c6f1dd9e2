package apns

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/live"
)

// Broadcasts are channels by which Live Activities follow a drop ("Sending channel
// management requests to APNs" and "Sending broadcast push notification requests to
// APNs" of Apple's documentation). It is safe for concurrent use.
type Broadcasts struct {
	service *Service
	manage  string // address of the management of channels
}

// ManageURL returns the address at which channels are managed for the service at url:
// Apple has one for each of its two environments.
func ManageURL(url string) string {
	switch {
	case strings.HasPrefix(url, "https://api.sandbox.push.apple.com"), strings.HasPrefix(url, "https://api.development.push.apple.com"):
		return "https://api-manage-broadcast.sandbox.push.apple.com:2195"
	case strings.HasPrefix(url, "https://"):
		return "https://api-manage-broadcast.push.apple.com:2196"
	}
	return url // an imitation
}

// NewBroadcasts returns the channels of the app that cfg names, or an error as [New]
// does.
func NewBroadcasts(cfg Config) (*Broadcasts, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return &Broadcasts{s, ManageURL(s.cfg.URL)}, nil
}

// Close ends idle connections.
func (b *Broadcasts) Close() error { return b.service.Close() }

// stored makes Apple keep the latest message of a channel for phones that are off.
const stored = 1

// Create makes a channel; see [live.Broadcaster].
func (b *Broadcasts) Create(ctx context.Context) (string, live.Answer) {
	header, a := b.call(ctx, http.MethodPost, b.manage+"/1/apps/"+url.PathEscape(b.service.cfg.Topic)+"/channels", nil,
		map[string]any{"message-storage-policy": stored, "push-type": "LiveActivity"}, http.StatusCreated)
	channel := header.Get("apns-channel-id")
	if a.Verdict == live.Done && channel == "" {
		return "", live.Answer{Detail: "APNs named no channel"}
	}
	return channel, a
}

// Delete removes a channel; see [live.Broadcaster].
func (b *Broadcasts) Delete(ctx context.Context, channel string) live.Answer {
	_, a := b.call(ctx, http.MethodDelete, b.manage+"/1/apps/"+url.PathEscape(b.service.cfg.Topic)+"/channels", http.Header{"Apns-Channel-Id": {channel}}, nil, http.StatusNoContent)
	return a
}

// Broadcast updates every activity that follows the channel; see [live.Broadcaster].
func (b *Broadcasts) Broadcast(ctx context.Context, channel string, m live.Move, at time.Time) live.Answer {
	body := map[string]any{"timestamp": at.Unix(), "event": "update", "content-state": m.Content, "stale-date": m.Until.Unix()}
	if m.End {
		delete(body, "stale-date")
		body["event"], body["dismissal-date"] = "end", m.Until.Unix()
	}
	priority := "5"
	if m.Urgent {
		priority = "10"
	}
	_, a := b.call(ctx, http.MethodPost, b.service.cfg.URL+"/4/broadcasts/apps/"+url.PathEscape(b.service.cfg.Topic), http.Header{"Apns-Channel-Id": {channel},
		"Apns-Push-Type": {"liveactivity"}, "Apns-Priority": {priority}, "Apns-Expiration": {strconv.FormatInt(m.Until.Unix(), 10)}},
		map[string]any{"aps": body}, http.StatusOK)
	return a
}

// call sends one request, twice if Apple says that the provider token was too old.
func (b *Broadcasts) call(ctx context.Context, method, address string, header http.Header, body any, success int) (http.Header, live.Answer) {
	bearer, err := b.service.token.get("")
	if err != nil {
		return nil, live.Answer{Detail: "the provider token cannot be signed"}
	}
	answered, a, reason := b.once(ctx, method, address, header, body, success, bearer)
	if reason == "ExpiredProviderToken" {
		if bearer, err = b.service.token.get(bearer); err == nil {
			answered, a, _ = b.once(ctx, method, address, header, body, success, bearer)
		}
	}
	return answered, a
}

func (b *Broadcasts) once(ctx context.Context, method, address string, header http.Header, body any, success int, bearer string) (http.Header, live.Answer, string) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, live.Answer{Detail: "the content has no JSON form"}, ""
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, live.Answer{Detail: "the address of APNs is not usable"}, ""
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Authorization", "bearer "+bearer)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := b.service.client.Do(request)
	if err != nil {
		return nil, live.Answer{Detail: delivery.CauseOf(err)}, ""
	}
	defer func() { _ = response.Body.Close() }()
	raw, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode == success {
		return response.Header, live.Answer{Verdict: live.Done}, ""
	}
	var said answer
	_ = json.Unmarshal(raw, &said) // no reason is one that is unknown
	a := live.Answer{After: delivery.RetryAfter(response.Header.Get("Retry-After"), b.service.cfg.Now()),
		Detail: delivery.DetailOf("APNs answered " + strconv.Itoa(response.StatusCode) + " " + said.Reason)}
	if said.Reason == "ChannelNotRegistered" {
		a.Verdict = live.Gone
	}
	return response.Header, a, said.Reason
}
