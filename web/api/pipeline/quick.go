package pipeline

import (
	"encoding/json"
	"net/http"

	"dropbell/web/middleware"
)

var JSONType = []string{"application/json"}

// plainJSON reports whether the Content-Type is a form that the quick way accepts; the general way
// judges all other forms.
func plainJSON(h http.Header) bool {
	kinds := h["Content-Type"]
	return len(kinds) == 1 && (kinds[0] == "application/json" || kinds[0] == "application/json; charset=utf-8")
}

// quickly handles a quick request from its admission to its answer.
func (pl *Pipeline) quickly(w http.ResponseWriter, r *http.Request, t Traits, next http.HandlerFunc) {
	b := bodies.Get().(*body)
	defer b.free()
	if t.Detached && r.ContentLength != 0 { // without a body its client is watched already
		middleware.Unwatched(r.Context())
	}
	if err := b.read(w, r); err != nil {
		pl.Problem(r.Context(), err).Write(w)
		return
	}
	r, cancel := pl.timed(r, t)
	defer cancel()
	if len(r.Header[IdempotencyHeader]) > 0 && !t.OwnKeys {
		pl.quicklyOnce(w, r, t, b.buf.Bytes(), next)
		return
	}
	if t.Quick(w, r, b.buf.Bytes()) {
		return
	}
	if err := t.judge(r, b.buf.Bytes()); err != nil {
		pl.Problem(r.Context(), err).Write(w)
		return
	}
	next(w, r)
}

// quicklyOnce is quickly for a request with an idempotency key.
func (pl *Pipeline) quicklyOnce(w http.ResponseWriter, r *http.Request, t Traits, body []byte, next http.HandlerFunc) {
	if t.Once != nil && pl.decide(w, r, t, body) {
		return
	}
	if err := t.judge(r, body); err != nil {
		pl.Problem(r.Context(), err).Write(w)
		return
	}
	pl.once(w, r, t, body, func(w http.ResponseWriter, r *http.Request) {
		if !t.Quick(w, r, body) {
			next(w, r)
		}
	})
}

// AppendText appends s as [json.Marshal] does. It leaves text with unusual characters to
// json.Marshal.
func AppendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // no text fails
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
