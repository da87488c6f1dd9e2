package webpush_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A service is a push service: the path's first element is the status to answer.
type service struct {
	*httptest.Server

	mu     sync.Mutex
	pushes []arrival
}

type arrival struct {
	header http.Header
	body   []byte
}

func start(t testing.TB, handler http.HandlerFunc) *service {
	t.Helper()
	s := new(service)
	if handler == nil {
		handler = s.answer
	}
	s.Server = httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func (s *service) answer(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, r.ContentLength)
	_, _ = io.ReadFull(r.Body, body)
	s.mu.Lock()
	s.pushes = append(s.pushes, arrival{r.Header.Clone(), body})
	s.mu.Unlock()
	code, err := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	if err != nil {
		code = http.StatusTeapot
	}
	if after := r.URL.Query().Get("after"); after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(code)
}
