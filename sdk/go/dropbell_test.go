package dropbell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"dropbell/sdk/go/api"
)

// answer is the answer of a test server to one request; status 0 breaks the connection.
type answer struct {
	status     int
	body       string
	retryAfter string
	breaks     bool // in the middle of the body
}

// server returns its answers in order and keeps the requests. Without a further answer the connection breaks.
type server struct {
	*testing.T
	mu      sync.Mutex // of requests on several connections
	answers []answer
	keys    []string
	bodies  []string
	pauses  []time.Duration
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.bodies = append(s.keys, r.Header.Get(keyHeader)), append(s.bodies, string(body))
	if r.Header.Get("Authorization") != "Bearer dbk_x" {
		s.Errorf("Authorization: %q", r.Header.Get("Authorization"))
	}
	var a answer
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	if a.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if a.retryAfter != "" {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	if a.breaks {
		w.Header().Set("Content-Length", fmt.Sprint(len(a.body)+1))
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// client returns a client of a server that answers so; its pauses take no time.
func client(t *testing.T, answers []answer, options ...Option) (*Client, *server) {
	t.Helper()
	s := &server{T: t, answers: answers}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	noPause := func(tr *transport) {
		// New connections only: net/http itself retries a broken connection that was used
		// before.
		tr.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		tr.wait = func(_ context.Context, d time.Duration) error { s.pauses = append(s.pauses, d); return nil }
	}
	c, err := New(h.URL+"/", ServiceKey("dbk_x"), append([]Option{noPause}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// TestRetries: a request is sent again with its key and body until it is answered.
func TestRetries(t *testing.T) {
	c, s := client(t, []answer{{}, {status: 409, body: `{"code":"idempotency_in_progress"}`, retryAfter: "1"}, {status: 429, body: `{"code":"rate_limited"}`, retryAfter: "2"},
		{status: 503, body: `{"code":"overloaded"}`}, {status: 201, body: `{"claim_id":"5","coupon_id":"17","state":"issued"}`}})
	got, err := c.ClaimWithResponse(t.Context(), nil, api.ClaimWish{TemplateId: "1"})
	if err != nil || got.JSON201 == nil || *got.JSON201.CouponId != "17" {
		t.Fatalf("%+v %v", got, err)
	}
	for i := range s.keys {
		if s.keys[i] == "" || s.keys[i] != s.keys[0] || s.bodies[i] != `{"template_id":"1"}` {
			t.Errorf("%d: key %q, body %s", i, s.keys[i], s.bodies[i])
		}
	}
	if len(s.keys) != 5 || len(s.pauses) != 4 || s.pauses[0] < firstPause/2 || s.pauses[1] < time.Second || s.pauses[2] < 2*time.Second {
		t.Errorf("%d requests, pauses %v", len(s.keys), s.pauses)
	}
	if _, ok := c.Clock.Offset(); !ok {
		t.Error("the clock has learned nothing")
	}
}

// TestBrokenAnswer: a connection that breaks in the middle of an answer is treated like a
// connection that breaks before the answer.
func TestBrokenAnswer(t *testing.T) {
	body := `{"claim_id":"5","coupon_id":"17","state":"issued"}`
	c, s := client(t, []answer{{status: 201, body: body, breaks: true}, {status: 201, body: body}})
	got, err := c.ClaimWithResponse(t.Context(), nil, api.ClaimWish{TemplateId: "1"})
	if err != nil || *got.JSON201.CouponId != "17" || len(s.keys) != 2 || s.keys[0] != s.keys[1] {
		t.Errorf("%+v %v, keys %q", got, err, s.keys)
	}
}

// TestBackoff doubles up to its bound, however often a request is sent.
func TestBackoff(t *testing.T) {
	for try := 1; try <= 100; try++ {
		if d := backoff(try); d < firstPause/2 || d > longestPause || try > 6 && d < longestPause/2 {
			t.Errorf("%d: %v", try, d)
		}
	}
}

// TestRetriesEnd: refusals are returned at once. Retries end after the number of tries, at a
// longer pause than allowed, at the caller's deadline, and when a change may have happened.
func TestRetriesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		answers  []answer
		options  []Option
		patch    bool
		deadline time.Duration
		code     string
		requests int
	}{
		"refused":      {answers: []answer{{status: 409, body: `{"code":"sold_out","status":409}`}}, code: "sold_out", requests: 1},
		"internal":     {answers: []answer{{status: 500, body: `{"code":"internal"}`}}, code: "internal", requests: 1},
		"number":       {answers: []answer{{status: 503, body: `{"code":"overloaded"}`}, {status: 503, body: `{"code":"overloaded"}`}}, options: []Option{WithTries(2)}, code: "overloaded", requests: 2},
		"longer pause": {answers: []answer{{status: 429, body: `{"code":"rate_limited"}`, retryAfter: "3600"}}, code: "rate_limited", requests: 1},
		"deadline":     {answers: []answer{{status: 429, body: `{"code":"rate_limited"}`, retryAfter: "20"}}, deadline: 15 * time.Second, code: "rate_limited", requests: 1},
		"patch":        {answers: []answer{{}}, patch: true, requests: 1},
		"no problem":   {answers: []answer{{status: 404, body: `<html>`}}, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			client, s := client(t, c.answers, c.options...)
			ctx := t.Context()
			if c.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			_, err := client.ClaimWithResponse(ctx, nil, api.ClaimWish{TemplateId: "1"})
			if c.patch {
				r, _ := http.NewRequestWithContext(ctx, http.MethodPatch, "http://127.0.0.1", nil)
				_, again := retryable(r, errors.New("the connection broke"))
				if again {
					t.Error("a change that may have happened is sent again")
				}
				return
			}
			if err == nil || Code(err) != c.code || len(s.keys) != c.requests {
				t.Errorf("%d requests: %v", len(s.keys), err)
			}
		})
	}
}

// TestClock: answers narrow the difference down; it begins anew when a clock was set.
func TestClock(t *testing.T) {
	var c Clock
	base, ahead := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 90*time.Second+300*time.Millisecond
	see := func(sent time.Time, ahead time.Duration, more ...string) {
		h := http.Header{"Date": {sent.Add(ahead + 10*time.Millisecond).Format(http.TimeFormat)}}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		c.observe(sent, sent.Add(20*time.Millisecond), h)
	}
	if _, ok := c.Offset(); ok {
		t.Error("known without an answer")
	}
	for _, ms := range []time.Duration{0, 250, 500, 650, 800} {
		see(base.Add(ms*time.Millisecond), ahead)
	}
	if got, ok := c.Offset(); !ok || (got-ahead).Abs() > 150*time.Millisecond {
		t.Errorf("%v, want %v", got, ahead)
	}
	see(base, -5*time.Second)
	see(base, time.Hour, "Age", "3600")
	see(base, time.Hour, "Date", "nonsense")
	if got, _ := c.Offset(); (got + 5*time.Second).Abs() > time.Second {
		t.Errorf("%v after the clock was set back", got)
	}
}

// TestRetryAfter is read as seconds and as an instant; nonsense asks for no pause.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "-1": 0, "soon": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

func ExampleCode() {
	err := fmt.Errorf("claim: %w", &Problem{Status: 409, Code: "sold_out"})
	fmt.Println(Code(err))
	// Output: sold_out
}
