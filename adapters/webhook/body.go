package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"

	"dropbell/domain/delivery"
)

// compose returns the body for messages, in a buffer with room for size bytes, and the id of the
// call. The id is the same whenever the same deliveries are sent together again.
func compose(messages []delivery.Message, size int64) (body []byte, id string) {
	var said shared
	keys := sha256.New()
	body = append(make([]byte, 0, size), `{"messages":[`...)
	for i := range messages {
		m := &messages[i]
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"user_id":"`...)
		body = strconv.AppendInt(body, int64(m.To.ID), 10)
		body = append(body, said.common(m)...)
		key := len(body)
		body = m.AppendIdempotencyKey(body)
		body = append(body, '\n') // each key is a line of what the id is made of
		keys.Write(body[key:])
		body = append(body[:len(body)-1], `"}`...)
	}
	body = append(body, `]}`...)
	return body, "msg_" + base64.RawURLEncoding.EncodeToString(keys.Sum(nil)[:18])
}

// shared caches the parts that messages of one call have in common, so that each part is encoded
// once: a few languages and time zones. If a call has more different parts than the cache, the
// parts beyond it are encoded again and again.
type shared struct {
	parts [8]struct {
		subject *delivery.Subject
		content *delivery.Content
		json    []byte
	}
	n int
}

func (s *shared) common(m *delivery.Message) []byte {
	for i := range s.n {
		if p := &s.parts[i]; p.subject == m.Subject && p.content == m.Content {
			return p.json
		}
	}
	s.n = min(s.n+1, len(s.parts))
	p := &s.parts[s.n-1]
	p.subject, p.content, p.json = m.Subject, m.Content, appendCommon(p.json[:0], m)
	return p.json
}

// appendCommon writes everything between the user's id and the key.
func appendCommon(b []byte, m *delivery.Message) []byte {
	b = append(b, `","template_id":"`...)
	b = strconv.AppendInt(b, m.Subject.TemplateID, 10)
	b = append(b, `","kind":`...)
	b = appendJSON(b, string(m.Subject.Kind))
	b = append(b, `,"slot":`...)
	b = strconv.AppendInt(b, int64(m.Subject.Slot), 10)
	b = append(b, `,"title":`...)
	b = appendJSON(b, m.Content.Title)
	b = append(b, `,"text":`...)
	b = appendJSON(b, m.Content.Text)
	return append(b, `,"idempotency_key":"`...)
}

// appendJSON appends s as a JSON string. Most strings of a call are keys and ids, which need no
// escaping; quoting them directly takes a tenth of the time.
func appendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			encoded, _ := json.Marshal(s) // a string always has a JSON form
			return append(b, encoded...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
