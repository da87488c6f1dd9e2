package fcm_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/push"
	"dropbell/adapters/push/fcm"
	"dropbell/adapters/push/pushtest"
	"dropbell/adapters/sendertest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

var phone = user.Device{Platform: user.Android, Token: "fYx3:APA91b" + strings.Repeat("x", 130)}

func google(t testing.TB) *pushtest.FCM {
	t.Helper()
	f, err := pushtest.NewFCM()
	musttest.OK(t, err)
	t.Cleanup(f.Close)
	return f
}

func config(f *pushtest.FCM) fcm.Config { return fcm.Config{Account: f.Account, URL: f.URL} }

func newSender(t testing.TB, cfg fcm.Config) *push.Sender {
	t.Helper()
	s, err := fcm.New(cfg)
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
	f := google(t)
	stalled := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the call is only noticed after its body
		<-r.Context().Done()
	}))
	t.Cleanup(stalled.Close)
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender { return newSender(t, config(f)) },
		Stalled: func(t *testing.T) delivery.Sender {
			cfg := config(f)
			cfg.URL = stalled.URL
			return newSender(t, cfg)
		},
		Prepare:     func(u *user.User) { u.Devices = []user.Device{phone} },
		Unreachable: func(u *user.User) { u.Devices = nil },
		AtOnce:      20,
	})
}

func TestWhatThePhoneGets(t *testing.T) {
	f := google(t)
	now := time.Now()
	cfg := config(f)
	cfg.Now = func() time.Time { return now }
	messages := to(user.Device{Platform: user.IOS, Token: "other"}, phone)
	messages[0].Subject.OpensAt = now.Add(90*time.Second + time.Millisecond)
	if r := newSender(t, cfg).Send(t.Context(), messages)[0]; r.Status != delivery.Delivered {
		t.Fatalf("got %+v", r)
	}
	var got struct {
		Message struct {
			Token        string
			Notification struct{ Title, Body string }
			Data         map[string]string
			Android      struct {
				Priority, TTL string
				Notification  struct{ Tag, Sound string }
			}
		}
	}
	musttest.OK(t, json.Unmarshal(f.Pushes()[0].Body, &got))
	m, note := messages[0], got.Message
	if note.Token != phone.Token || note.Notification.Title != m.Content.Title || note.Notification.Body != m.Content.Text ||
		note.Data["url"] != m.Subject.ClaimURL || note.Data["tag"] != m.IdempotencyKey() || note.Data["drop"] != "7" ||
		note.Android.Priority != "HIGH" || note.Android.TTL != "90s" || note.Android.Notification.Tag != m.IdempotencyKey() {
		t.Errorf("got %s", f.Pushes()[0].Body)
	}
}

func TestLongMessagesFit(t *testing.T) {
	f := google(t)
	s := newSender(t, config(f))
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

// TestAnswers goes through Google's table of error codes.
func TestAnswers(t *testing.T) {
	f := google(t)
	removed := 0
	cfg := config(f)
	cfg.OnGone = func(context.Context, user.ID, user.Device) { removed++ }
	s := newSender(t, cfg)
	for _, c := range []struct {
		fault  pushtest.Fault
		status delivery.Status
		pause  time.Duration
		gone   int
	}{
		{pushtest.Fault{Status: 404, Reason: "UNREGISTERED"}, delivery.Permanent, 0, 1},
		{pushtest.Fault{Status: 403, Reason: "SENDER_ID_MISMATCH"}, delivery.Permanent, 0, 0},
		{pushtest.Fault{Status: 429, Reason: "QUOTA_EXCEEDED", RetryAfter: "7"}, delivery.Throttled, 7 * time.Second, 0},
		{pushtest.Fault{Status: 429, Reason: "QUOTA_EXCEEDED"}, delivery.Throttled, time.Minute, 0},
		{pushtest.Fault{Status: 503, Reason: "UNAVAILABLE", RetryAfter: "9"}, delivery.Throttled, 9 * time.Second, 0},
		{pushtest.Fault{Status: 500, Reason: "INTERNAL"}, delivery.Transient, 0, 0},
		{pushtest.Fault{Status: 401, Reason: "THIRD_PARTY_AUTH_ERROR"}, delivery.Transient, 0, 0},
	} {
		removed = 0
		f.Fail("", c.fault)
		r := s.Send(t.Context(), to(phone))[0]
		if r.Status != c.status || r.After != c.pause || r.Apart || r.Whole || r.Detail == "" || removed != c.gone {
			t.Errorf("%+v: got %+v, %d removed", c.fault, r, removed)
		}
	}
	f.Heal()
	if r := s.Send(t.Context(), to(user.Device{Platform: user.Android, Token: "short"}))[0]; r.Status != delivery.Permanent || !strings.Contains(r.Detail, "token") {
		t.Errorf("a spoilt token: %+v", r)
	}
}

// TestAccessTokens: all pushes share one token. Messages wait while Google issues no token. A
// revoked token is replaced.
func TestAccessTokens(t *testing.T) {
	f := google(t)
	f.NoTokens.Store(true)
	s := newSender(t, config(f))
	if r := s.Send(t.Context(), to(phone))[0]; r.Status != delivery.Transient || r.After == 0 || strings.Contains(r.Detail, "127.0.0.1") {
		t.Errorf("no token: %+v", r)
	}
	f.NoTokens.Store(false)
	if r := s.Send(t.Context(), to(phone))[0]; r.Status != delivery.Delivered {
		t.Errorf("got %+v", r)
	}
	f.Revoke()
	if r := s.Send(t.Context(), to(phone))[0]; r.Status != delivery.Delivered {
		t.Errorf("after a new token: %+v", r)
	}
}

// TestTheQuotaIsAPace: a message beyond the quota waits, and does not fail.
func TestTheQuotaIsAPace(t *testing.T) {
	f := google(t)
	cfg := config(f)
	cfg.PerMinute = 60
	s := newSender(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	messages := sendertest.Messages(delivery.WebPush, 5)
	for i := range messages {
		messages[i].To.Devices = []user.Device{phone}
	}
	counts := map[delivery.Status]int{}
	for _, r := range s.Send(ctx, messages) {
		counts[r.Status]++
	}
	if counts[delivery.Delivered] != 1 || counts[delivery.Throttled] != 4 || f.Count() != 1 {
		t.Errorf("got %v, %d arrived", counts, f.Count())
	}
}

// TestTheQuotaHoldsUpNoOtherDevice: a message beyond the quota does not wait in its call. It is
// tried again at its turn, at most a minute later.
func TestTheQuotaHoldsUpNoOtherDevice(t *testing.T) {
	f := google(t)
	cfg := config(f)
	cfg.PerMinute = 2
	s := newSender(t, cfg)
	messages := sendertest.Messages(delivery.WebPush, 20)
	for i := range messages {
		messages[i].To.Devices = []user.Device{phone}
	}
	var waits []time.Duration
	for _, r := range s.Send(t.Context(), messages) {
		switch {
		case r.Status == delivery.Throttled && r.Held && r.Unsent && r.Apart:
			waits = append(waits, r.After)
		case r.Status != delivery.Delivered:
			t.Errorf("%+v", r)
		}
	}
	if slices.Sort(waits); f.Count() != 1 || len(waits) != 19 || waits[0] != 30*time.Second || waits[1] != time.Minute || waits[18] != time.Minute {
		t.Errorf("%d arrived, the others wait %v", f.Count(), waits)
	}
}

// TestTheQuotaIsShared: the quota of all workers together is asked for in portions.
func TestTheQuotaIsShared(t *testing.T) {
	f := google(t)
	cfg := config(f)
	cfg.PerMinute = 12_000 // ten are a portion
	var mu sync.Mutex
	budget := 15
	cfg.Admit = func(_ context.Context, n, perMinute int) (int, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if n != 10 || perMinute != 12_000 {
			t.Errorf("asked for %d of %d", n, perMinute)
		}
		n = min(n, budget)
		budget -= n
		return n, time.Hour
	}
	send := func(n int) (sent int) {
		s := newSender(t, cfg)
		messages := sendertest.Messages(delivery.WebPush, n)
		for i := range messages {
			messages[i].To.Devices = []user.Device{phone}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for _, r := range s.Send(ctx, messages) {
			if r.Status == delivery.Delivered {
				sent++
			}
		}
		return sent
	}
	if sent := send(20); sent != 15 || f.Count() != 15 {
		t.Errorf("sent %d of 15 that were admitted", sent)
	}
	cfg.Admit = nil
	if sent := send(20); sent != 20 {
		t.Errorf("sent %d of 20 by a worker that has the quota alone", sent)
	}
}

func TestNewNamesTheMistake(t *testing.T) {
	f := google(t)
	for name, spoil := range map[string]func(*fcm.Config){
		"JSON":      func(c *fcm.Config) { c.Account = []byte("nonsense") },
		"token_uri": func(c *fcm.Config) { c.Account = []byte(`{"project_id":"p","private_key":"SECRET"}`) },
		"address":   func(c *fcm.Config) { c.URL = "gopher://x" },
	} {
		cfg := config(f)
		spoil(&cfg)
		if _, err := fcm.New(cfg); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}
