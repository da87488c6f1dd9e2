package webpush

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	pushing "dropbell/adapters/push"
	"dropbell/domain/delivery"
)

const (
	// maxPayload is what fits one encrypted record of 4096 bytes (RFC 8291):
	// less the header (86), the tag (16) and the delimiter (1).
	maxPayload = 3993
	// unhurried is how long a push that has no opening may wait for its browser.
	unhurried = 12 * time.Hour
)

// note is what the service worker in the browser receives.
type note struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Tag   string `json:"tag"`
	URL   string `json:"url,omitempty"`
}

// payload encodes m, with the text cut as far as the record demands.
func payload(m delivery.Message) []byte {
	n := note{Tag: m.IdempotencyKey()}
	if link := m.Link(); len(link) <= pushing.MaxURL {
		n.URL = link
	}
	return pushing.Fit(maxPayload, m.Content.Title, m.Content.Text, func(title, body string) []byte {
		n.Title, n.Body = title, body
		return encode(n)
	})
}

func encode(n note) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(n) // strings always have a JSON form
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// topic makes push services replace an undelivered push by its repetition
// (RFC 8030, section 5.4: at most 32 characters of base64url).
func topic(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// ttl is how many seconds the push is worth keeping: until the opening, or the
// campaign's end.
func ttl(s *delivery.Subject, now time.Time) int {
	if s.Kind == delivery.KindCampaign && !s.EndsAt.IsZero() {
		return int(max(s.EndsAt.Sub(now), 0) / time.Second)
	}
	if s.OpensAt.IsZero() {
		return int(unhurried / time.Second)
	}
	return int(max(s.OpensAt.Sub(now), 0) / time.Second)
}
