package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"dropbell/domain/delivery"
)

// A payload is one call's body in a buffer that returns to its pool when
// nobody can read from it any more. The transport may still read the body
// after the call has returned, so every reader holds a reference.
type payload struct {
	pool *sync.Pool
	data []byte
	keys []byte // of all messages, a line each
	refs atomic.Int32
}

// maxKept bounds the buffers that are kept, in bytes; a campaign with a very
// long text must not pin its size for ever.
const maxKept = 1 << 20

func newPayload(pool *sync.Pool) *payload {
	p, ok := pool.Get().(*payload)
	if !ok {
		p = &payload{pool: pool}
	}
	p.data, p.keys = p.data[:0], p.keys[:0]
	p.refs.Store(1)
	return p
}

func (p *payload) release() {
	if p.refs.Add(-1) == 0 && cap(p.data) <= maxKept {
		p.pool.Put(p)
	}
}

// open returns a body for one attempt.
func (p *payload) open() io.ReadCloser {
	p.refs.Add(1)
	return &reader{payload: p, rest: *bytes.NewReader(p.data)}
}

// A reader is locked because the transport may close a body while it reads it.
type reader struct {
	mu      sync.Mutex
	payload *payload
	rest    bytes.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.payload == nil {
		return 0, io.ErrClosedPipe
	}
	return r.rest.Read(b)
}

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.payload != nil {
		r.payload.release()
		r.payload = nil
		r.rest.Reset(nil)
	}
	return nil
}

// fill writes the body for messages and returns the id of the call, which is
// the same whenever the same deliveries are sent together again.
func (p *payload) fill(messages []delivery.Message) (id string) {
	var said shared
	p.data = append(p.data, `{"messages":[`...)
	for i := range messages {
		m := &messages[i]
		if i > 0 {
			p.data = append(p.data, ',')
		}
		p.data = append(p.data, `{"user_id":"`...)
		p.data = strconv.AppendInt(p.data, int64(m.To.ID), 10)
		p.data = append(p.data, said.common(m)...)
		key := len(p.data)
		p.data = m.AppendIdempotencyKey(p.data)
		p.keys = append(append(p.keys, p.data[key:]...), '\n')
		p.data = append(p.data, `"}`...)
	}
	p.data = append(p.data, `]}`...)
	sum := sha256.Sum256(p.keys)
	return "msg_" + base64.RawURLEncoding.EncodeToString(sum[:18])
}

// shared are the parts that messages of one call have in common, so that each
// is encoded once: a few languages and zones. A call that says more than fits
// encodes the last part over and over.
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

// appendJSON appends s as a JSON string. Keys and ids, which are most of the
// calls, need no escaping, and quoting them plainly takes a tenth of the time.
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
