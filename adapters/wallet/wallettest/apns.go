package wallettest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"dropbell/adapters/sender/providertest"
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
	providertest.Fake[Push, answer]
	Topic string
}

type answer struct {
	status int
	reason string
}

// NewAPNs starts an imitation without TLS; close it with Close.
func NewAPNs(topic string) *APNs {
	a := &APNs{Topic: topic}
	a.StartHTTP2(a)
	return a
}

// Answer makes pushes to the token be answered so, 0 = accepted; "" is every token.
func (a *APNs) Answer(token string, status int, reason string) { a.Fail(token, answer{status, reason}) }

// Pushes returns the tokens of accepted pushes, in order.
func (a *APNs) Pushes() (tokens []string) {
	for _, p := range a.All() {
		tokens = append(tokens, p.Token)
	}
	return tokens
}

// All returns the accepted pushes.
func (a *APNs) All() []Push { return a.Accepted() }

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
	if said, _ := a.Fault(token); said.status != 0 {
		refuse(said.status, said.reason)
		return
	}
	a.Accept(func(int) Push { return Push{token, r.Header.Clone(), string(body)} })
}
