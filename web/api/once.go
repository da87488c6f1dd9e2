package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/web/middleware"
)

const (
	idempotencyHeader = "Idempotency-Key"
	replayedHeader    = "Idempotency-Replayed"
	// attemptLock must outlast any request, so that no two attempts overlap.
	attemptLock = 4 * requestTimeout
)

// attempt says which try of a request with an idempotency key this is.
type attempt struct {
	request postgres.IdempotencyRequest
	again   bool
}

type attemptKey struct{}

// Recovering reports whether an earlier attempt at this very request began
// and never got its answer stored: it may have had its effect, and a refusal
// that only says so is to be answered like the success it was.
func Recovering(ctx context.Context) bool {
	a, _ := ctx.Value(attemptKey{}).(attempt)
	return a.again
}

// requestKey names the request for stores that make creation repeatable;
// empty without an idempotency key.
func requestKey(ctx context.Context) string {
	a, ok := ctx.Value(attemptKey{}).(attempt)
	if !ok {
		return ""
	}
	h := sha256.Sum256([]byte(a.request.Actor + "\n" + a.request.Key))
	return "api:" + base64.RawURLEncoding.EncodeToString(h[:])
}

// once answers a request that carries an idempotency key: from memory if it
// was answered before, else by carrying it out and keeping the answer.
func (a *API) once(w http.ResponseWriter, r *http.Request, body []byte, next http.HandlerFunc) {
	key := r.Header.Get(idempotencyHeader)
	if !printable(key) {
		a.problem(r.Context(), refused("header."+idempotencyHeader, badKey)).write(w)
		return
	}
	q := postgres.IdempotencyRequest{Actor: callerOf(r.Context()).scope(), Key: key, Hash: fingerprint(r, body)}
	found, err := a.Idempotency.Begin(r.Context(), q, attemptLock)
	switch {
	case err != nil:
		a.problem(r.Context(), err).write(w)
	case found.Conflict:
		a.problem(r.Context(), errKeyConflict).write(w)
	case found.Busy:
		a.problem(r.Context(), errKeyInProgress).write(w)
	case found.Answered:
		replay(w, found)
	default:
		a.carryOut(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, attempt{q, found.Again})), next)
	}
}

const badKey = "must be 1 to 255 printable ASCII characters"

func printable(key string) bool {
	if key == "" || len(key) > 255 {
		return false
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return false
		}
	}
	return true
}

// fingerprint tells requests apart that share a key by mistake.
func fingerprint(r *http.Request, body []byte) []byte {
	h := sha256.New()
	for _, s := range []string{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("If-Match")} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	h.Write(body)
	return h.Sum(nil)
}

func replay(w http.ResponseWriter, found postgres.Recorded) {
	h := w.Header()
	for name, values := range found.Header {
		h[name] = values
	}
	h.Set(replayedHeader, "true")
	w.WriteHeader(found.Status)
	_, _ = w.Write(found.Body) // the client may be gone
}

// carryOut runs the request and stores the answer before sending it. An
// answer that says "later" is not kept; neither is one cut short by a panic.
func (a *API) carryOut(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
	q := r.Context().Value(attemptKey{}).(attempt).request
	rec := &recording{header: http.Header{}, status: http.StatusOK}
	ended := false
	defer func() {
		if !ended {
			a.end(r, func(ctx context.Context) error { return a.Idempotency.Fail(ctx, q) })
		}
	}()
	next(rec, r)
	ended = true
	a.end(r, func(ctx context.Context) error {
		if rec.status >= 500 || rec.status == http.StatusTooManyRequests {
			return a.Idempotency.Fail(ctx, q)
		}
		return a.Idempotency.Finish(ctx, q, postgres.Recorded{Status: rec.status, Header: rec.header, Body: rec.body.Bytes()})
	})
	h := w.Header()
	for name, values := range rec.header {
		h[name] = values
	}
	w.WriteHeader(rec.status)
	_, _ = w.Write(rec.body.Bytes()) // the client may be gone
}

// end outlives a client that has hung up. If it fails, the answer goes out all
// the same: the change is made, and a repetition recovers it.
func (a *API) end(r *http.Request, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
	defer cancel()
	if err := do(ctx); err != nil {
		a.log.WarnContext(ctx, "cannot store the outcome of an idempotent request",
			"request_id", middleware.From(r.Context()).ID, "err", err)
	}
}

// recording keeps an answer instead of sending it.
type recording struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is part of [http.ResponseWriter].
func (r *recording) Header() http.Header { return r.header }

// WriteHeader is part of [http.ResponseWriter].
func (r *recording) WriteHeader(status int) { r.status = status }

// Write is part of [http.ResponseWriter].
func (r *recording) Write(b []byte) (int, error) { return r.body.Write(b) }
