package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/web/middleware"
)

// drip opens a connection and sends a form byte by byte. It returns how long the server accepted
// the bytes.
func drip(t *testing.T, address, path string) time.Duration {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100000\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		r := bufio.NewReader(conn)
		if answer, err := http.ReadResponse(r, nil); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
		}
		_, _ = io.Copy(io.Discard, r) // until the server hangs up
	}()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for range every.C {
		select {
		case <-cut:
			return time.Since(begun)
		default:
		}
		if _, err := conn.Write([]byte("a")); err != nil || time.Since(begun) > 30*time.Second {
			return time.Since(begun)
		}
	}
	return 0
}

// served returns a server of h with the connections of a web process.
func served(h http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(h)
	server.Listener = middleware.Connections(server.Listener)
	server.Start()
	return server
}

// A form that is sent byte by byte is cut off, whether its handler reads it or refuses it unread. A
// request whose body came in time is answered, however long the answer takes. The client of an
// upload has time as long as it keeps sending.
func TestDrippedForms(t *testing.T) {
	const timeout = 500 * time.Millisecond
	r := chi.NewMux()
	r.Use(middleware.Bodies(timeout))
	r.Use(middleware.All(middleware.Options{Log: slog.New(slog.DiscardHandler)}, new(atomic.Bool))[2:]...)
	r.Post("/form", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err == nil {
			t.Error("a form of which most is missing was read")
		}
		http.Error(w, "too slow", http.StatusRequestTimeout)
	})
	r.Post("/refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	r.Post("/long", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		select {
		case <-time.After(3 * timeout):
		case <-r.Context().Done():
			t.Error("the request was ended while it was answered")
		}
	})
	server := served(r)
	defer server.Close()
	for _, path := range []string{"/form", "/refused"} {
		if took := drip(t, server.Listener.Addr().String(), path); took > 20*time.Second {
			t.Errorf("%s: the connection was open for %s", path, took)
		}
	}
	answer, err := http.Post(server.URL+"/long", "text/plain", strings.NewReader("all of it"))
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v %v", answer, err)
	}
	answer.Body.Close()
}

// TestPatientBodies: a body sent in time, bit by bit, is read to its end.
func TestPatientBodies(t *testing.T) {
	const timeout = 300 * time.Millisecond
	site := middleware.Bodies(timeout)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		middleware.Patient(w, r)
		text, err := io.ReadAll(r.Body)
		if err != nil || len(text) != 10 {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	}))
	server := served(site)
	defer server.Close()
	body, feed := io.Pipe()
	go func() {
		tick := time.NewTicker(timeout / 5)
		defer tick.Stop()
		for range 10 {
			<-tick.C
			_, _ = feed.Write([]byte("x"))
		}
		feed.Close()
	}()
	answer, err := http.Post(server.URL, "text/plain", body)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v %v", answer, err)
	}
	answer.Body.Close()
}

// TestEncryptedOnly: the answer tells browsers to use https alone if clients reach this server by
// https, and not otherwise.
func TestEncryptedOnly(t *testing.T) {
	for encrypted, want := range map[bool]string{true: "max-age=31536000", false: ""} {
		w := httptest.NewRecorder()
		middleware.Requests(middleware.Options{Log: slog.New(slog.DiscardHandler), Encrypted: encrypted})(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if got := w.Header().Get("Strict-Transport-Security"); got != want {
			t.Errorf("%v: %q", encrypted, got)
		}
	}
}
