package apns_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/push/apns"
	"dropbell/adapters/push/pushtest"
	"dropbell/domain/live"
)

// TestBroadcasts: a channel is created, sent a broadcast and removed as Apple's documentation
// says. Each answer of Apple gives the expected result.
func TestBroadcasts(t *testing.T) {
	a := apple(t)
	channels := a.Channels()
	b, err := apns.NewBroadcasts(config(a))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	channel, answer := b.Create(t.Context())
	if answer.Verdict != live.Done || channel == "" {
		t.Fatalf("%q %+v", channel, answer)
	}
	at := time.Unix(1_800_000_000, 0)
	m := live.Move{Content: live.Content{OpensAt: at.Unix() + 600, State: "scheduled", Minutes: 10, Left: 95}, Urgent: true, Until: at.Add(10 * time.Minute)}
	if answer := b.Broadcast(t.Context(), channel, m, at); answer.Verdict != live.Done {
		t.Fatalf("%+v", answer)
	}
	m.End, m.Urgent = true, false
	if answer := b.Broadcast(t.Context(), channel, m, at); answer.Verdict != live.Done {
		t.Fatalf("%+v", answer)
	}
	sent := channels.Broadcasts()
	if len(sent) != 2 {
		t.Fatalf("%d broadcasts", len(sent))
	}
	for i, want := range []string{
		`{"aps":{"content-state":{"opens_at":1800000600,"state":"scheduled","minutes":10,"left":95},"event":"update","stale-date":1800000600,"timestamp":1800000000}}`,
		`{"aps":{"content-state":{"opens_at":1800000600,"state":"scheduled","minutes":10,"left":95},"dismissal-date":1800000600,"event":"end","timestamp":1800000000}}`,
	} {
		if string(sent[i].Body) != want || sent[i].Channel != channel || sent[i].Header.Get("apns-expiration") != "1800000600" ||
			sent[i].Header.Get("apns-priority") != []string{"10", "5"}[i] {
			t.Errorf("%s %v", sent[i].Body, sent[i].Header)
		}
		if !json.Valid(sent[i].Body) {
			t.Error("not JSON")
		}
	}
	channels.Fail(pushtest.Fault{Status: 429, Reason: "TooManyRequests", RetryAfter: "9"}, pushtest.Fault{Status: 403, Reason: "ExpiredProviderToken"})
	if answer := b.Broadcast(t.Context(), channel, m, at); answer.Verdict != live.Failed || answer.After != 9*time.Second || !strings.Contains(answer.Detail, "429") {
		t.Errorf("%+v", answer)
	}
	if answer := b.Broadcast(t.Context(), channel, m, at); answer.Verdict != live.Done { // with another token
		t.Errorf("%+v", answer)
	}
	for _, want := range []live.Verdict{live.Done, live.Gone} {
		if answer := b.Delete(t.Context(), channel); answer.Verdict != want {
			t.Errorf("%+v", answer)
		}
	}
	if answer := b.Broadcast(t.Context(), channel, m, at); answer.Verdict != live.Gone {
		t.Errorf("%+v", answer)
	}
}

// TestManageURL: channels are managed at an address of their own in each environment.
func TestManageURL(t *testing.T) {
	for url, want := range map[string]string{"https://api.push.apple.com": "https://api-manage-broadcast.push.apple.com:2196",
		"https://api.sandbox.push.apple.com": "https://api-manage-broadcast.sandbox.push.apple.com:2195", "http://127.0.0.1:9": "http://127.0.0.1:9"} {
		if got := apns.ManageURL(url); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
}
