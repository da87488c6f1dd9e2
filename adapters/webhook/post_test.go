package webhook_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"dropbell/adapters/webhook"
)

func poster(t *testing.T, timeout time.Duration, insecure bool) *webhook.Poster {
	t.Helper()
	p := webhook.NewPoster(timeout, insecure)
	t.Cleanup(func() { p.Close() })
	return p
}

// TestEachKeySigns: while a secret is rotated, receivers with either secret can verify the call
// with the specification's library. Receivers with another secret cannot.
func TestEachKeySigns(t *testing.T) {
	young, old := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	body := []byte(`{"type":"drop.opened"}`)
	var headers http.Header
	var got []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers = r.Header.Clone()
		got, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	if a := poster(t, 0, true).Post(t.Context(), server.URL, "msg_7", time.Now(), body, [][]byte{young, old}); !a.OK() || a.Status != 204 {
		t.Fatalf("%+v", a)
	}
	for _, c := range []struct {
		key  []byte
		want bool
	}{{young, true}, {old, true}, {bytes.Repeat([]byte{3}, 32), false}} {
		verifier, err := standardwebhooks.NewWebhook("whsec_" + base64.StdEncoding.EncodeToString(c.key))
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(got, headers); (err == nil) != c.want {
			t.Errorf("key %d: %v", c.key[0], err)
		}
	}
	if headers.Get("webhook-id") != "msg_7" || !bytes.Equal(got, body) || headers.Get("Content-Type") != "application/json" {
		t.Errorf("%v, %s", headers, got)
	}
}

// TestAddressesInside: loopback, private, link-local and metadata addresses are refused at the
// connection, whatever the name resolved to before.
func TestAddressesInside(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	p := poster(t, time.Second, false)
	for _, address := range []string{server.URL, "http://localhost" + port, "http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port, "http://0.0.0.0" + port,
		"http://2130706433" + port, "http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://[fd00:ec2::254]/", "http://100.100.100.200/"} {
		a := p.Post(t.Context(), address, "msg_1", time.Now(), []byte(`{}`), [][]byte{{1}})
		if a.OK() || a.Error == "" || a.Status != 0 {
			t.Errorf("%s: %+v", address, a)
		}
		if !strings.Contains(a.Error, "not public") && !strings.Contains(address, "2130706433") {
			t.Errorf("%s: %q", address, a.Error)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the server inside was called %d times", n)
	}
}

// TestProxiesAreNotUsed: a proxy would resolve names itself.
func TestProxiesAreNotUsed(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	if a := poster(t, 0, true).Post(t.Context(), server.URL, "msg_1", time.Now(), nil, nil); !a.OK() {
		t.Errorf("%+v", a)
	}
}

// TestHostileEndpoints: an endpoint gets a bounded time, and a bounded part of its answer is
// kept. A redirect is an answer.
func TestHostileEndpoints(t *testing.T) {
	var elsewhere atomic.Int64
	stop := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	mux.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) { <-stop })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/dribble", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "oh \xff no")
		_ = http.NewResponseController(w).Flush()
		<-stop
	})
	mux.HandleFunc("/later", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	mux.HandleFunc("/drop", func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(stop) })
	p := poster(t, 300*time.Millisecond, true)
	for path, want := range map[string]func(status int, text, response string, after time.Duration) bool{
		"/redirect": func(s int, _, _ string, _ time.Duration) bool { return s == 307 && elsewhere.Load() == 0 },
		"/slow":     func(s int, e, _ string, _ time.Duration) bool { return s == 0 && e == "timed out" },
		"/endless":  func(s int, _, r string, _ time.Duration) bool { return s == 200 && len(r) == 2<<10 },
		"/dribble":  func(s int, _, r string, _ time.Duration) bool { return s == 500 && r == "oh \uFFFD no" },
		"/later":    func(s int, _, _ string, a time.Duration) bool { return s == 429 && a == 2*time.Minute },
		"/drop":     func(s int, e, _ string, _ time.Duration) bool { return s == 0 && e != "" },
	} {
		a := p.Post(t.Context(), server.URL+path, "msg_1", time.Now(), []byte(`{}`), [][]byte{{1}})
		if !want(a.Status, a.Error, a.Response, a.RetryAfter) {
			t.Errorf("%s: status %d, error %q, %d bytes, after %v", path, a.Status, a.Error, len(a.Response), a.RetryAfter)
		}
	}
}
