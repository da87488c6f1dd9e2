package webpush_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"dropbell/domain/user"
)

// A browser is a subscription together with the keys that read its pushes.
type browser struct {
	key  *ecdh.PrivateKey
	auth []byte
	user.PushSubscription
}

func newBrowser(t testing.TB, endpoint string) browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := browser{key: key, auth: make([]byte, 16)}
	_, _ = rand.Read(b.auth)
	b.Endpoint = endpoint
	b.P256dh = base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
	b.Auth = base64.RawURLEncoding.EncodeToString(b.auth)
	return b
}

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
