package webpush

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/delivery"
)

const (
	// maxPayload is what fits one encrypted record of 4096 bytes (RFC 8291):
	// less the header (86), the tag (16) and the delimiter (1).
	maxPayload = 3993
	maxTitle   = 200  // runes
	maxURL     = 1500 // bytes; browsers show none of it, a longer one is broken
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

// payload encodes m, with the body cut as far as the record demands.
func payload(m delivery.Message) []byte {
	n := note{
		Title: cut(m.Content.Title, maxTitle),
		Body:  cut(m.Content.Text, maxPayload),
		Tag:   m.IdempotencyKey(),
	}
	if link := m.Link(); len(link) <= maxURL {
		n.URL = link
	}
	for {
		encoded := encode(n)
		if len(encoded) <= maxPayload {
			return encoded
		}
		runes := utf8.RuneCountInString(n.Body)
		if runes == 0 {
			n.Title = cut(n.Title, maxTitle/4) // control characters, six bytes each
			continue
		}
		// At most six bytes a rune are saved; cut in proportion, but get on.
		n.Body = cut(n.Body, min(runes-1, runes*maxPayload/len(encoded)))
	}
}

func encode(n note) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(n) // strings always have a JSON form
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// cut shortens s to at most n runes.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}

// topic makes push services replace an undelivered push by its repetition
// (RFC 8030, section 5.4: at most 32 characters of base64url).
func topic(m delivery.Message) string {
	sum := sha256.Sum256([]byte(m.IdempotencyKey()))
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
