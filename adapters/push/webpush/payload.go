package webpush

import (
	"crypto/sha256"
	"encoding/base64"

	pushing "dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
)

// maxPayload is the most bytes of text in one encrypted record (RFC 8291): 4096 bytes without
// the header (86), the tag (16) and the delimiter (1).
const maxPayload = 3993

// note is the payload for the service worker in the browser.
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
		return sender.JSON(n)
	})
}

// topic returns the header Topic, by which a push service replaces an undelivered push by its
// repetition (RFC 8030, section 5.4: at most 32 characters of base64url).
func topic(key string) string {
	sum := sha256.Sum256([]byte(key))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}
