package jsonapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"dropbell/adapters/sender"
	"dropbell/adapters/sendertest"
	"dropbell/adapters/sms/jsonapi"
	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

const token = "t0ken-of-the-shop"

type call struct {
	Messages []struct {
		To             string `json:"to"`
		Text           string `json:"text"`
		IdempotencyKey string `json:"idempotency_key"`
	} `json:"messages"`
}

// A provider records calls and answers with answer, or accepts when that is nil.
type provider struct {
	answer http.HandlerFunc

	mu    sync.Mutex
	calls []call
	auth  []string
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c call
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	p.mu.Lock()
	p.calls = append(p.calls, c)
	p.auth = append(p.auth, r.Header.Get("Authorization"))
	p.mu.Unlock()
	if p.answer != nil {
		p.answer(w, r)
		return
	}
	_, _ = fmt.Fprintf(w, `{"results":[%s]}`, repeat(`{"status":"accepted"}`, len(c.Messages)))
}

func repeat(s string, n int) string {
	return strings.TrimSuffix(strings.Repeat(s+",", n), ",")
}

func start(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func newSender(t testing.TB, cfg jsonapi.Config) *jsonapi.Sender {
	t.Helper()
	s, err := jsonapi.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContract(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender {
			p := smstest.NewJSON()
			t.Cleanup(p.Close)
			return newSender(t, jsonapi.Config{URL: p.URL, Token: smstest.JSONToken})
		},
		Stalled: func(t *testing.T) delivery.Sender {
			stalled := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
			return newSender(t, jsonapi.Config{URL: start(t, &provider{answer: stalled})})
		},
		Unreachable: func(u *user.User) { u.Phone = "+1" },
	})
}

func TestRequest(t *testing.T) {
	p := new(provider)
	s := newSender(t, jsonapi.Config{URL: start(t, p), Token: token})
	messages := sendertest.Messages(delivery.SMS, 5)
	messages[0].To.Phone = "+86 138-0000-0001"
	messages[1].To.Phone = ""
	messages[2].To.Phone = "13800000001" // without a country code
	messages[3].To.Phone = "+86138'; DROP TABLE users"
	long := *messages[4].Content
	long.Text = strings.Repeat("券", 10_000) + "\xff"
	messages[4].Content = &long
	results := s.Send(t.Context(), messages)
	for i, status := range []delivery.Status{delivery.Delivered, delivery.Permanent, delivery.Permanent, delivery.Permanent, delivery.Delivered} {
		if results[i].Status != status {
			t.Errorf("message %d: got %+v, want status %d", i, results[i], status)
		}
	}

	if len(p.calls) != 1 || len(p.calls[0].Messages) != 2 || p.auth[0] != "Bearer "+token {
		t.Fatalf("got calls %+v with %q", p.calls, p.auth)
	}
	first, second := p.calls[0].Messages[0], p.calls[0].Messages[1]
	if first.To != "+8613800000001" || first.Text != messages[0].Content.Text || first.IdempotencyKey != messages[0].IdempotencyKey() {
		t.Errorf("got %+v", first)
	}
	if n := utf8.RuneCountInString(second.Text); n != 600 {
		t.Errorf("a long text was sent with %d runes", n)
	}
}

func TestNobodyToCall(t *testing.T) {
	p := new(provider)
	s := newSender(t, jsonapi.Config{URL: start(t, p)})
	messages := sendertest.Messages(delivery.SMS, 2)
	messages[0].To.Phone, messages[1].To.Phone = "", "12"
	for i, r := range s.Send(t.Context(), messages) {
		if r.Status != delivery.Permanent {
			t.Errorf("message %d: got %+v", i, r)
		}
	}
	if len(p.calls) != 0 {
		t.Error("the provider was called for nobody")
	}
}

func TestResultsPerMessage(t *testing.T) {
	p := &provider{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		_, _ = fmt.Fprint(w, `{"results":[{"status":"accepted"},{"status":"rejected","error":"+8613800000002 is barred by `+token+`"},`+
			`{"status":"throttled","error":"quota"},{"status":"sent?"}]}`)
	}}
	s := newSender(t, jsonapi.Config{URL: start(t, p), Token: token})
	got := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 4))
	for i, want := range []delivery.Result{
		{Status: delivery.Delivered},
		{Status: delivery.Permanent, Detail: "rejected: … is barred by …"},
		{Status: delivery.Throttled, After: 7 * time.Second, Detail: "throttled: quota"},
		{Status: delivery.Transient, Detail: "the provider answered an unknown status: sent?"},
	} {
		if got[i] != want {
			t.Errorf("message %d: got %+v, want %+v", i, got[i], want)
		}
	}
}

func TestStatusOfTheWholeCall(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		code   int
		after  string
		status delivery.Status
		pause  time.Duration
	}{
		{429, "", delivery.Throttled, 0},
		{429, "3", delivery.Throttled, 3 * time.Second},
		{429, "Fri, 20 Nov 2026 12:00:09 GMT", delivery.Throttled, 9 * time.Second},
		{503, "2", delivery.Throttled, 2 * time.Second},
		{503, "", delivery.Transient, 0},
		{500, "", delivery.Transient, 0},
		{401, "", delivery.Transient, 0},
		{403, "", delivery.Transient, 0},
		{404, "", delivery.Transient, 0},
		{302, "", delivery.Transient, 0},
		{400, "", delivery.Permanent, 0},
		{422, "", delivery.Permanent, 0},
	} {
		t.Run(fmt.Sprint(c.code, c.after), func(t *testing.T) {
			s := newSender(t, jsonapi.Config{
				Options: sender.Options{Now: func() time.Time { return now }},
				URL: start(t, &provider{answer: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
					if c.after != "" {
						w.Header().Set("Retry-After", c.after)
					}
					w.WriteHeader(c.code)
				}}),
			})
			results := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 2))
			for i, r := range results {
				if r.Status != c.status || r.After != c.pause || !strings.Contains(r.Detail, fmt.Sprint(c.code)) {
					t.Errorf("message %d: got %+v", i, r)
				}
			}
		})
	}
}

func TestUnusableAnswers(t *testing.T) {
	write := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	}
	for name, answer := range map[string]http.HandlerFunc{
		"not json":         write("<html>"),
		"empty":            write(""),
		"too few results":  write(`{"results":[{"status":"accepted"}]}`),
		"too many results": write(`{"results":[` + repeat(`{"status":"accepted"}`, 3) + `]}`),
		"no results":       write(`{}`),
		"wrong type":       write(`{"results":[1,2]}`),
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"results":[%s],"pad":"`, repeat(`{"status":"accepted"}`, 2))
			for range 3 << 10 {
				if _, err := w.Write([]byte(strings.Repeat("x", 1<<10))); err != nil {
					return
				}
			}
			_, _ = w.Write([]byte(`"}`))
		},
		"hangs inside the answer": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"results":[`))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSender(t, jsonapi.Config{URL: start(t, &provider{answer: answer}), Options: sender.Options{Timeout: 300 * time.Millisecond}})
			for i, r := range s.Send(t.Context(), sendertest.Messages(delivery.SMS, 2)) {
				if r.Status != delivery.Transient || r.Detail == "" {
					t.Errorf("message %d: got %+v", i, r)
				}
			}
		})
	}
}

func TestProviderIsDown(t *testing.T) {
	server := httptest.NewServer(new(provider))
	server.Close()
	s := newSender(t, jsonapi.Config{URL: server.URL, Token: token})
	r := s.Send(t.Context(), sendertest.Messages(delivery.SMS, 1))[0]
	if r.Status != delivery.Transient || r.Detail != "connection refused" {
		t.Errorf("got %+v", r)
	}
}

func TestNewNamesTheMistake(t *testing.T) {
	for _, cfg := range []jsonapi.Config{
		{}, {URL: "provider.example"}, {URL: "ftp://provider.example"}, {URL: "http://"},
		{URL: "https://provider.example/%zz", Token: token}, {URL: "https://provider.example", Token: token + "\n"},
	} {
		_, err := jsonapi.New(cfg)
		if err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%q: got error %v", cfg.URL, err)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	s := newSender(b, jsonapi.Config{URL: start(b, new(provider))})
	messages := sendertest.Messages(delivery.SMS, 100)
	for i := 0; i < b.N; i += len(messages) {
		s.Send(b.Context(), messages[:min(len(messages), b.N-i)])
	}
}
