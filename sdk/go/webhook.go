package dropbell

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// tolerance is how far the timestamp of a webhook may be from now.
	tolerance = 5 * time.Minute
	// largestEvent bounds the body of a webhook; the largest has 500 items.
	largestEvent = 4 << 20
)

// ErrSignature means that a webhook was not signed by Dropbell with one of the secrets, or was
// signed too long ago. Answer such a webhook with 401 and do nothing.
var ErrSignature = errors.New("dropbell: the webhook's signature or timestamp is wrong")

// Event is the content of a webhook.
type Event struct {
	// ID is the same whenever the event is sent; skip ids that were processed before.
	ID        string    `json:"-"`
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	// Subject is the object of the event, such as coupon/17. Of two events with the same
	// subject, the later event has the greater Sequence.
	Subject  string          `json:"subject"`
	Sequence int64           `json:"sequence"`
	Data     json.RawMessage `json:"data"`
}

// Webhooks verifies webhooks (Standard Webhooks).
type Webhooks struct {
	keys [][]byte
	now  func() time.Time
}

// NewWebhooks returns a verifier that accepts signatures with any of the secrets (whsec_…).
// There are two secrets while a secret is rotated.
func NewWebhooks(secrets ...string) (*Webhooks, error) {
	w := &Webhooks{now: time.Now}
	for _, s := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
		if err != nil || len(key) == 0 {
			return nil, errors.New("dropbell: a secret is whsec_ followed by base64")
		}
		w.keys = append(w.keys, key)
	}
	if len(w.keys) == 0 {
		return nil, errors.New("dropbell: a secret is required")
	}
	return w, nil
}

// Verify returns the event of a request with this body and header. It returns [ErrSignature] for
// a wrong signature, and another error if the body is not an event.
func (w *Webhooks) Verify(body []byte, h http.Header) (Event, error) {
	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || id == "" || w.now().Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return Event{}, ErrSignature
	}
	if !w.signed(id+"."+stamp+".", body, h.Get("webhook-signature")) {
		return Event{}, ErrSignature
	}
	e := Event{ID: id}
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("dropbell: the webhook is no event: %w", err)
	}
	return e, nil
}

func (w *Webhooks) signed(head string, body []byte, signatures string) bool {
	for _, key := range w.keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(head))
		mac.Write(body)
		want := mac.Sum(nil)
		for signature := range strings.FieldsSeq(signatures) {
			version, value, _ := strings.Cut(signature, ",")
			given, err := base64.StdEncoding.DecodeString(value)
			if version == "v1" && err == nil && hmac.Equal(given, want) {
				return true
			}
		}
	}
	return false
}

// Handler answers webhooks: 204 after do has stored the event, 401 for a wrong signature, and
// 500 if do fails. After a 500 Dropbell sends the event again. An event may come more than once.
func (w *Webhooks) Handler(do func(context.Context, Event) error) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, largestEvent))
		if err != nil {
			http.Error(out, "the body cannot be read", http.StatusBadRequest)
			return
		}
		e, err := w.Verify(body, r.Header)
		switch {
		case errors.Is(err, ErrSignature):
			http.Error(out, "wrong signature", http.StatusUnauthorized)
		case err != nil:
			http.Error(out, "not an event", http.StatusBadRequest)
		case do(r.Context(), e) != nil:
			http.Error(out, "the event could not be stored", http.StatusInternalServerError)
		default:
			out.WriteHeader(http.StatusNoContent)
		}
	})
}
