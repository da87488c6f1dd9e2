package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/webhook"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

type message struct {
	UserID         string `json:"user_id"`
	TemplateID     string `json:"template_id"`
	Kind           string `json:"kind"`
	Slot           int    `json:"slot"`
	Title          string `json:"title"`
	Text           string `json:"text"`
	IdempotencyKey string `json:"idempotency_key"`
}

type call struct {
	id       string
	messages []message
}

// An endpoint accepts and records calls with a correct signature. answer, when set, replaces the
// answer.
type endpoint struct {
	answer http.HandlerFunc

	mu    sync.Mutex
	calls []call
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil || verifier.Verify(body, r.Header) != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var got struct{ Messages []message }
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&got) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.calls = append(e.calls, call{r.Header.Get("webhook-id"), got.Messages})
	e.mu.Unlock()
	if e.answer != nil {
		e.answer(w, r)
	}
}

func start(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func newSender(t testing.TB, cfg webhook.Config) *webhook.Sender {
	t.Helper()
	cfg.Secret = secret
	s, err := webhook.New(cfg)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContract(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender {
			return newSender(t, webhook.Config{URL: start(t, new(endpoint))})
		},
		Stalled: func(t *testing.T) delivery.Sender {
			stalled := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
			return newSender(t, webhook.Config{URL: start(t, &endpoint{answer: stalled})})
		},
	})
}

func TestBody(t *testing.T) {
	e := new(endpoint)
	s := newSender(t, webhook.Config{URL: start(t, e)})
	messages := sendertest.Messages(delivery.Webhook, 3)
	odd := delivery.Content{Title: "a\"b\\c\r\n</script>\x00", Text: "券 \u2028 \xff end"}
	messages[1].Content = &odd
	messages[2].To.ID = 9007199254740993 // not a float64
	for i, r := range s.Send(t.Context(), messages) {
		if r.Status != delivery.Delivered {
			t.Fatalf("message %d: got %+v", i, r)
		}
	}
	content := messages[0].Content
	want := []message{
		{"1", "7", "reminder", 2, content.Title, content.Text, messages[0].IdempotencyKey()},
		{"2", "7", "reminder", 2, odd.Title, "券 \u2028 \ufffd end", messages[1].IdempotencyKey()},
		{"9007199254740993", "7", "reminder", 2, content.Title, content.Text, messages[2].IdempotencyKey()},
	}
	if diff := cmp.Diff(want, e.calls[0].messages); diff != "" {
		t.Errorf("body differs (-want +got):\n%s", diff)
	}
}

func TestIDIsStableOverRetries(t *testing.T) {
	e := new(endpoint)
	s := newSender(t, webhook.Config{URL: start(t, e)})
	messages := sendertest.Messages(delivery.Webhook, 4)
	for _, chunk := range [][]delivery.Message{messages, messages, messages[:3], messages[1:]} {
		s.Send(t.Context(), chunk)
	}
	ids := make([]string, 4)
	for i, c := range e.calls {
		ids[i] = c.id
	}
	if ids[0] != ids[1] || ids[0] == ids[2] || ids[0] == ids[3] || ids[2] == ids[3] {
		t.Errorf("got ids %q", ids)
	}
	if !strings.HasPrefix(ids[0], "msg_") {
		t.Errorf("got id %q", ids[0])
	}
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		code   int
		after  string
		status delivery.Status
		pause  time.Duration
	}{
		{200, "", delivery.Delivered, 0},
		{202, "", delivery.Delivered, 0},
		{204, "", delivery.Delivered, 0},
		{429, "4", delivery.Throttled, 4 * time.Second},
		{503, "4", delivery.Throttled, 4 * time.Second},
		{503, "", delivery.Transient, 0},
		{500, "", delivery.Transient, 0},
		{410, "", delivery.Permanent, 0},
		{404, "", delivery.Transient, 0},
		{401, "", delivery.Transient, 0},
		{400, "", delivery.Permanent, 0},
		{413, "", delivery.Permanent, 0},
		{422, "", delivery.Permanent, 0},
	} {
		t.Run(fmt.Sprint(c.code, c.after), func(t *testing.T) {
			s := newSender(t, webhook.Config{URL: start(t, &endpoint{answer: func(w http.ResponseWriter, _ *http.Request) {
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(c.code)
			}})})
			for i, r := range s.Send(t.Context(), sendertest.Messages(delivery.Webhook, 2)) {
				if r.Status != c.status || r.After != c.pause {
					t.Errorf("message %d: got %+v", i, r)
				}
			}
		})
	}
}

// TestAWebPageIsNoReceipt: an address that leads to a sign-in page, a parked domain or a proxy's
// error page answers 200 as well, and counts as a failure. Any other body, or none, counts as
// delivered.
func TestAWebPageIsNoReceipt(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		status     int
		want       delivery.Status
	}{
		{"text/html; charset=utf-8", "<!DOCTYPE html><html><body>Sign in</body></html>", 200, delivery.Transient},
		{"text/html", "\n  <html lang=en><head></head></html>", 200, delivery.Transient},
		{"application/json", "<!doctype html>\n<title>Parked</title>", 202, delivery.Transient},
		{"text/html", "ok", 200, delivery.Delivered}, // as frameworks send a plain text
		{"text/html", "", 200, delivery.Delivered},
		{"text/plain", "received", 200, delivery.Delivered},
		{"application/json", `{"ok":true}`, 200, delivery.Delivered},
		{"application/xml", "<?xml version=\"1.0\"?><ok/>", 200, delivery.Delivered},
		{"", "", 204, delivery.Delivered},
	} {
		answer := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}
		s := newSender(t, webhook.Config{URL: start(t, &endpoint{answer: answer})})
		for i, r := range s.Send(t.Context(), sendertest.Messages(delivery.Webhook, 2)) {
			if r.Status != c.want || (c.want == delivery.Transient) != strings.Contains(r.Detail, "web page") {
				t.Errorf("%d %s %q, message %d: got %+v", c.status, c.kind, c.body, i, r)
			}
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var visits atomic.Int32
	elsewhere := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := newSender(t, webhook.Config{URL: start(t, http.RedirectHandler(elsewhere, code))})
		r := s.Send(t.Context(), sendertest.Messages(delivery.Webhook, 1))[0]
		if r.Status != delivery.Transient || !strings.Contains(r.Detail, "redirect") {
			t.Errorf("%d: got %+v", code, r)
		}
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("the other host was called %d times", n)
	}
}

// TestBuffersAreNotSharedTooEarly: the endpoint answers before it has read, and calls end in the
// middle. If a buffer went back to its pool while the transport reads it, bodies would be torn
// or the race detector would report it.
func TestBuffersAreNotSharedTooEarly(t *testing.T) {
	big := delivery.Content{Title: "t", Text: strings.Repeat("text ", 4_000)}
	e := new(endpoint)
	var n atomic.Int32
	s := newSender(t, webhook.Config{
		URL: start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1)%2 == 0 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			e.ServeHTTP(w, r)
		})),
		Timeout: 5 * time.Second,
	})
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			for range 10 {
				messages := sendertest.Messages(delivery.Webhook, 20)
				for i := range messages {
					messages[i].Content = &big
				}
				for _, r := range s.Send(t.Context(), messages) {
					if strings.Contains(r.Detail, "401") || strings.Contains(r.Detail, "400") {
						t.Errorf("a body arrived torn: %+v", r)
					}
				}
			}
		})
	}
	callers.Wait()
}

func TestHangingEndpointTimesOut(t *testing.T) {
	s := newSender(t, webhook.Config{
		Timeout: 100 * time.Millisecond,
		URL: start(t, &endpoint{answer: func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}}),
	})
	r := s.Send(t.Context(), sendertest.Messages(delivery.Webhook, 1))[0]
	if r.Status != delivery.Transient || r.Detail != "timed out" {
		t.Errorf("got %+v", r)
	}
}

func TestClosedKeptConnectionIsReplaced(t *testing.T) {
	server := httptest.NewServer(new(endpoint))
	defer server.Close()
	s := newSender(t, webhook.Config{URL: server.URL})
	for round := range 3 {
		// The first call may still use the dead connection, so its outcome is unknown. The
		// second call must not use the dead connection.
		r := s.Send(t.Context(), sendertest.Messages(delivery.Webhook, 1))[0]
		if r.Status == delivery.Transient {
			r = s.Send(t.Context(), sendertest.Messages(delivery.Webhook, 1))[0]
		}
		if r.Status != delivery.Delivered {
			t.Errorf("round %d: got %+v", round, r)
		}
		server.CloseClientConnections()
	}
}

func TestNewNamesTheMistake(t *testing.T) {
	for _, cfg := range []webhook.Config{
		{Secret: secret},
		{URL: "hooks.example", Secret: secret},
		{URL: "file:///etc/passwd", Secret: secret},
		{URL: "https://hooks.example"},
		{URL: "https://hooks.example", Secret: "whsec_"},
		{URL: "https://hooks.example", Secret: "whsec_???hush???"},
	} {
		if _, err := webhook.New(cfg); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: got error %v", cfg, err)
		}
	}
}

func TestAnEndpointThatIsNotThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	s, err := webhook.New(webhook.Config{URL: server.URL, Secret: secret})
	musttest.OK(t, err)
	if got := s.Send(t.Context(), sendertest.Messages(delivery.Webhook, 1))[0]; got.Status != delivery.Transient || !got.Unsent {
		t.Errorf("%+v, want it certainly not sent", got)
	}
}
