package wallettest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// A Push is one push that was accepted.
type Push struct {
	Token  string
	Header http.Header
	Body   string
}

// APNs imitates Apple's push service as far as passes use it: HTTP/2 without TLS, or
// with TLS and the certificate of the pass type.
type APNs struct {
	URL, Topic string
	Server     *httptest.Server

	mu      sync.Mutex
	pushes  []Push
	answers map[string]answer
}

type answer struct {
	status int
	reason string
}

// NewAPNs starts an imitation without TLS; close it with Close.
func NewAPNs(topic string) *APNs {
	a := newAPNs(topic)
	a.Server.Config.Protocols = new(http.Protocols)
	a.Server.Config.Protocols.SetUnencryptedHTTP2(true)
	a.Server.Start()
	a.URL = a.Server.URL
	return a
}

func newAPNs(topic string) *APNs {
	a := &APNs{Topic: topic, answers: map[string]answer{}}
	a.Server = httptest.NewUnstartedServer(a)
	return a
}

// Close stops it.
func (a *APNs) Close() { a.Server.Close() }

// Answer makes pushes to the token be answered so, 0 = accepted; "" is every token.
func (a *APNs) Answer(token string, status int, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[token] = answer{status, reason}
}

// Pushes returns the tokens of accepted pushes, in order.
func (a *APNs) Pushes() (tokens []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.pushes {
		tokens = append(tokens, p.Token)
	}
	return tokens
}

// All returns the accepted pushes.
func (a *APNs) All() []Push {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.pushes)
}

// ServeHTTP is part of [http.Handler].
func (a *APNs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	refuse := func(status int, reason string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"reason": reason})
	}
	token, ok := strings.CutPrefix(r.URL.Path, "/3/device/")
	switch {
	case !ok || r.ProtoMajor != 2:
		refuse(http.StatusNotFound, "BadPath")
		return
	case r.Method != http.MethodPost:
		refuse(http.StatusMethodNotAllowed, "MethodNotAllowed")
		return
	case r.Header.Get("apns-topic") != a.Topic:
		refuse(http.StatusBadRequest, "DeviceTokenNotForTopic")
		return
	case r.Header.Get("apns-push-type") == "background" && r.Header.Get("apns-priority") != "5":
		refuse(http.StatusBadRequest, "BadPriority")
		return
	case !json.Valid(body):
		refuse(http.StatusBadRequest, "PayloadEmpty")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	said, found := a.answers[token]
	if !found {
		said = a.answers[""]
	}
	if said.status != 0 {
		refuse(said.status, said.reason)
		return
	}
	a.pushes = append(a.pushes, Push{token, r.Header.Clone(), string(body)})
}
