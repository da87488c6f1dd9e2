package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"dropbell/musttest"
	"dropbell/web/middleware"
)

// sendFrom opens a connection from the local address and sends the text.
func sendFrom(t *testing.T, local, to, text string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	c, err := d.DialContext(t.Context(), "tcp", to)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

func statusOf(t *testing.T, c net.Conn) int {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	musttest.OK(t, err)
	defer res.Body.Close()
	return res.StatusCode
}

// TestSlowBodiesTakeNoPlace: clients that send nothing of their bodies, as many as the budget has
// places and more, block no other client, neither of other addresses nor of their own.
func TestSlowBodiesTakeNoPlace(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	begun := make(chan struct{}, 1000)
	read := middleware.NewReception(100, 1000).Received(refuse)(middleware.Bound(middleware.NewBudget(4, "x", nil), func(*http.Request) bool { return false }, refuse)(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err == nil && string(body) != "ready" {
				t.Errorf("%q %v", body, err)
			}
		})))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { begun <- struct{}{}; read.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	to := strings.TrimPrefix(server.URL, "http://")
	slow := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"
	var first net.Conn
	for i := range 70 {
		c := sendFrom(t, "127.0.0.2", to, slow)
		if i == 0 {
			first = c
		}
		<-begun
	}
	if got := statusOf(t, first); got != http.StatusServiceUnavailable { // 70 are more than the share of an address
		t.Errorf("the slowest was answered %d", got)
	}
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		if got := statusOf(t, sendFrom(t, from, to, slow+"ready")); got != http.StatusOK {
			t.Errorf("a body from %s that comes at once: %d", from, got)
		}
		<-begun
	}
}

// TestBodiesTogetherHaveALimit: their memory is bounded, and given back.
func TestBodiesTogetherHaveALimit(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	hold, held := make(chan struct{}), make(chan struct{}, 10)
	h := middleware.NewReception(100, 250).Received(refuse)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held <- struct{}{}
		if r.URL.Path == "/hold" {
			<-hold
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, len(body))
	}))
	ask := func(path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
		return w
	}
	ended := make(chan int, 2)
	for range 2 {
		go func() { ended <- ask("/hold", strings.Repeat("x", 100)).Code }()
		<-held
	}
	if w := ask("/", strings.Repeat("x", 100)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("beyond the memory: %d", w.Code)
	}
	if w := ask("/", strings.Repeat("x", 500)); w.Code != http.StatusOK || w.Body.String() != "500" {
		t.Errorf("a body that is not read ahead: %d %s", w.Code, w.Body)
	}
	close(hold)
	for range 2 {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("held: %d", code)
		}
	}
	if w := ask("/", strings.Repeat("x", 100)); w.Code != http.StatusOK || w.Body.String() != "100" {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}

// TestLargeBodiesHaveAShare: requests whose body is not read ahead are few per address.
func TestLargeBodiesHaveAShare(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
	hold, held, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := middleware.NewReception(10, 100).Received(refuse)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { held <- struct{}{}; <-hold }))
	for range 32 {
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 50))))
			ended <- struct{}{}
		}()
		<-held
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 50))))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("the 33rd of an address: %d", w.Code)
	}
	close(hold)
	for range 32 {
		<-ended
	}
}
