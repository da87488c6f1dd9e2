package apns

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/sender"
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

// ManageURL returns the address for managing the channels of the service at url. Apple has one
// such address for each of its two environments.
func ManageURL(url string) string {
	switch {
	case strings.HasPrefix(url, "https://api.sandbox.push.apple.com"), strings.HasPrefix(url, "https://api.development.push.apple.com"):
		return "https://api-manage-broadcast.sandbox.push.apple.com:2195"
	case strings.HasPrefix(url, "https://"):
		return "https://api-manage-broadcast.push.apple.com:2196"
	}
	return url // an imitation
}

// NewBroadcasts returns the channels of the app that cfg names. Its errors are the errors of
// [New].
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
	type outcome struct {
		header http.Header
		answer live.Answer
	}
	o := sender.WithToken(b.service.token.get,
		func(bearer string) (o outcome, refused bool) {
			var reason string
			o.header, o.answer, reason = b.once(ctx, method, address, header, body, success, bearer)
			return o, reason == tooOld
		},
		func(error) outcome { return outcome{answer: live.Answer{Detail: unsigned}} })
	return o.header, o.answer
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
	maps.Copy(request.Header, header)
	request.Header.Set("Authorization", "bearer "+bearer)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	got, err := sender.Call(b.service.HTTP, request, push.MaxAnswer)
	if err != nil {
		return nil, live.Answer{Detail: delivery.CauseOf(err)}, ""
	}
	if got.Status == success {
		return got.Header, live.Answer{Verdict: live.Done}, ""
	}
	var said answer
	_ = json.Unmarshal(got.Body, &said) // an unreadable body is an unknown reason
	a := live.Answer{After: delivery.RetryAfter(got.Header.Get("Retry-After"), b.service.cfg.Time()),
		Detail: delivery.DetailOf("APNs answered " + strconv.Itoa(got.Status) + " " + said.Reason)}
	if said.Reason == "ChannelNotRegistered" {
		a.Verdict = live.Gone
	}
	return got.Header, a, said.Reason
}
