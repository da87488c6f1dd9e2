package apns_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/push/apns"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

var phone = user.Device{Platform: user.IOS, Token: strings.Repeat("a1", 32)}

func apple(t testing.TB) *pushtest.APNs {
	t.Helper()
	a, err := pushtest.NewAPNs()
	musttest.OK(t, err)
	t.Cleanup(a.Close)
	return a
}

func config(a *pushtest.APNs) apns.Config {
	return apns.Config{Key: a.Key, KeyID: a.KeyID, TeamID: a.TeamID, Topic: a.Topic, URL: a.URL}
}

func newSender(t testing.TB, cfg apns.Config) *push.Sender {
	t.Helper()
	s, err := apns.New(cfg)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return push.New(push.Options{}, s)
}

func to(devices ...user.Device) []delivery.Message {
	messages := sendertest.Messages(delivery.WebPush, 1)
	messages[0].To.Devices = devices
	return messages
}

func TestContract(t *testing.T) {
	a := apple(t)
	stalled := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	stalled.Config.Protocols = new(http.Protocols)
	stalled.Config.Protocols.SetUnencryptedHTTP2(true)
	stalled.Start()
	t.Cleanup(stalled.Close)
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender { return newSender(t, config(a)) },
		Stalled: func(t *testing.T) delivery.Sender {
			cfg := config(a)
			cfg.URL = stalled.URL
			return newSender(t, cfg)
		},
		Prepare:     func(u *user.User) { u.Devices = []user.Device{phone} },
		Unreachable: func(u *user.User) { u.Devices = nil },
		AtOnce:      20,
	})
}

func TestWhatThePhoneGets(t *testing.T) {
	a := apple(t)
	messages := to(user.Device{Platform: user.Android, Token: "other"}, phone)
	if r := newSender(t, config(a)).Send(t.Context(), messages)[0]; r.Status != delivery.Delivered {
		t.Fatalf("got %+v", r)
	}
	m := messages[0]
	got := a.Pushes()[0]
	for name, want := range map[string]string{
		"apns-topic": a.Topic, "apns-push-type": "alert", "apns-priority": "10", "apns-collapse-id": m.IdempotencyKey(),
		"apns-expiration": strconv.FormatInt(m.Subject.OpensAt.Unix(), 10),
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	var note struct {
		APS struct {
			Alert    struct{ Title, Body string }
			ThreadID string `json:"thread-id"`
			Level    string `json:"interruption-level"`
			Sound    string
		}
		URL, Tag string
		Drop     int64
	}
	musttest.OK(t, json.Unmarshal(got.Body, &note))
	if note.APS.Alert.Title != m.Content.Title || note.APS.Alert.Body != m.Content.Text || note.URL != m.Subject.ClaimURL ||
		note.Tag != m.IdempotencyKey() || note.Drop != 7 || note.APS.ThreadID != "drop-7" || note.APS.Level != "time-sensitive" {
		t.Errorf("got %s", got.Body)
	}
	again := newSender(t, config(a)) // a repetition by another process
	again.Send(t.Context(), messages)
	if all := a.Pushes(); all[0].Header.Get("apns-id") != all[1].Header.Get("apns-id") {
		t.Error("a repetition has another apns-id")
	}
}

func TestLongMessagesFit(t *testing.T) {
	a := apple(t)
	s := newSender(t, config(a))
	for name, text := range map[string]string{
		"ascii": strings.Repeat("a", 10_000), "chinese": strings.Repeat("券", 10_000),
		"control": strings.Repeat("\x01", 10_000), "broken": strings.Repeat("\xff券", 10_000),
	} {
		messages := to(phone)
		messages[0].Content = &delivery.Content{Title: text, Text: text}
		if r := s.Send(t.Context(), messages)[0]; r.Status != delivery.Delivered {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

// TestAnswers goes through Apple's table of reasons.
func TestAnswers(t *testing.T) {
	a := apple(t)
	s := newSender(t, config(a))
	for _, c := range []struct {
		fault  pushtest.Fault
		status delivery.Status
		apart  bool
		pause  time.Duration
	}{
		{pushtest.Fault{Status: 400, Reason: "BadDeviceToken"}, delivery.Permanent, false, 0},
		{pushtest.Fault{Status: 400, Reason: "DeviceTokenNotForTopic"}, delivery.Permanent, false, 0},
		{pushtest.Fault{Status: 400, Reason: "TopicDisallowed"}, delivery.Transient, false, 0},
		{pushtest.Fault{Status: 403, Reason: "InvalidProviderToken"}, delivery.Transient, false, 0},
		{pushtest.Fault{Status: 410, Reason: "Unregistered"}, delivery.Permanent, false, 0},
		{pushtest.Fault{Status: 410, Reason: "ExpiredToken"}, delivery.Permanent, false, 0},
		{pushtest.Fault{Status: 413, Reason: "PayloadTooLarge"}, delivery.Permanent, false, 0},
		{pushtest.Fault{Status: 429, Reason: "TooManyRequests", RetryAfter: "7"}, delivery.Throttled, true, 7 * time.Second},
		{pushtest.Fault{Status: 429, Reason: "TooManyProviderTokenUpdates"}, delivery.Throttled, false, 0},
		{pushtest.Fault{Status: 500, Reason: "InternalServerError"}, delivery.Transient, false, 0},
		{pushtest.Fault{Status: 503, Reason: "ServiceUnavailable", RetryAfter: "9"}, delivery.Throttled, false, 9 * time.Second},
		{pushtest.Fault{Status: 503, Reason: "Shutdown"}, delivery.Transient, false, 0},
		{pushtest.Fault{Status: 404}, delivery.Transient, false, 0},
	} {
		a.Fail("", c.fault)
		r := s.Send(t.Context(), to(phone))[0]
		if r.Status != c.status || r.Apart != c.apart || r.After != c.pause || r.Whole || r.Detail == "" || strings.Contains(r.Detail, phone.Token) {
			t.Errorf("%+v: got %+v", c.fault, r)
		}
	}
}

// TestAPhoneThatIsGone is removed, unless it has registered since Apple learned of it.
func TestAPhoneThatIsGone(t *testing.T) {
	a := apple(t)
	var mu sync.Mutex
	var gone []string
	cfg := config(a)
	cfg.OnGone = func(_ context.Context, id user.ID, d user.Device) {
		mu.Lock()
		defer mu.Unlock()
		gone = append(gone, id.String()+d.Token[:2])
	}
	s := newSender(t, cfg)
	now := time.Now()
	old, fresh, spoilt := phone, phone, phone
	old.Token, old.SeenAt = strings.Repeat("b1", 32), now.Add(-time.Hour)
	fresh.Token, fresh.SeenAt = strings.Repeat("c1", 32), now.Add(time.Hour)
	a.Fail(old.Token, pushtest.Fault{Status: 410, Reason: "Unregistered", Since: now})
	a.Fail(fresh.Token, pushtest.Fault{Status: 410, Reason: "Unregistered", Since: now})
	a.Fail(spoilt.Token, pushtest.Fault{Status: 400, Reason: "BadDeviceToken"})
	if r := s.Send(t.Context(), to(old, fresh, spoilt))[0]; r.Status != delivery.Permanent {
		t.Errorf("got %+v", r)
	}
	if len(gone) != 1 || gone[0] != "1b1" {
		t.Errorf("removed %v", gone)
	}
}

// TestProviderTokens: all pushes share one token. A new token is signed after 45 minutes, and at
// once when Apple answers that the token is too old.
func TestProviderTokens(t *testing.T) {
	a := apple(t)
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	pass := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	cfg := config(a)
	cfg.Now, a.Now = clock, clock
	s := newSender(t, cfg)
	send := func(tokens int) {
		t.Helper()
		for range 3 {
			if r := s.Send(t.Context(), to(phone))[0]; r.Status != delivery.Delivered {
				t.Fatalf("got %+v", r)
			}
		}
		if n := a.ProviderTokens(); n != tokens {
			t.Errorf("%d provider tokens, want %d", n, tokens)
		}
	}
	send(1)
	pass(44 * time.Minute)
	send(1)
	pass(2 * time.Minute)
	send(2)

	// Our clock is behind Apple's.
	a.Now = func() time.Time { return clock().Add(61 * time.Minute) }
	r := s.Send(t.Context(), to(phone))[0]
	if r.Status != delivery.Transient || !strings.Contains(r.Detail, "ExpiredProviderToken") {
		t.Errorf("got %+v", r)
	}
	a.Now = clock
	send(3)
}

func TestNewNamesTheMistake(t *testing.T) {
	a := apple(t)
	for name, spoil := range map[string]func(*apns.Config){
		".p8":     func(c *apns.Config) { c.Key = []byte("nonsense") },
		"P-256":   func(c *apns.Config) { c.Key = []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n") },
		"team":    func(c *apns.Config) { c.TeamID = "" },
		"address": func(c *apns.Config) { c.URL = "gopher://x" },
	} {
		cfg := config(a)
		spoil(&cfg)
		if _, err := apns.New(cfg); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
