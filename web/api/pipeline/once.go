package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"sync"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/staff"
	"dropbell/web/middleware"
)

const (
	IdempotencyHeader = "Idempotency-Key"
	ReplayedHeader    = "Idempotency-Replayed"
	// attemptLease is how long an attempt may go without renewing its lease. After that its process
	// is taken for dead, and a repetition of the request takes over. A live attempt renews the
	// lease.
	attemptLease = 5 * time.Second
	renewEvery   = attemptLease / 4
)

// attempt says which try of a request with an idempotency key this is.
type attempt struct {
	request workdb.IdempotencyRequest
	again   bool
}

type attemptKey struct{}

// Recovering reports whether an earlier attempt at the same request began and its answer was never
// stored. That attempt may have had its effect, so a refusal that only states this effect is to be
// answered as the success.
func Recovering(ctx context.Context) bool {
	a, _ := ctx.Value(attemptKey{}).(attempt)
	return a.again
}

// RequestKey returns the key of the request for stores that make creation idempotent; empty without
// an idempotency key.
func RequestKey(ctx context.Context) string {
	a, ok := ctx.Value(attemptKey{}).(attempt)
	if !ok {
		return ""
	}
	h := sha256.Sum256([]byte(a.request.Actor + "\n" + a.request.Key))
	return "api:" + base64.RawURLEncoding.EncodeToString(h[:])
}

// Once is an operation that stores the idempotency key of its request in the
// transaction that carries the request out.
type Once interface {
	// Decide carries the request out and stores q and the decision in one transaction. It reports
	// whether it has answered. If not, nothing was stored, and the request goes the general way,
	// which handles repetitions, refusals and attempts that died.
	Decide(w http.ResponseWriter, r *http.Request, body []byte, q workdb.IdempotencyRequest) bool
	// Repeat answers a repetition from the values that Decide has stored.
	Repeat(w http.ResponseWriter, r *http.Request, body []byte, known []byte, found []int64)
}

// keyed returns the request under its key; ok is false for a key that is none.
func keyed(r *http.Request, body []byte) (q workdb.IdempotencyRequest, ok bool) {
	key := r.Header.Get(IdempotencyHeader)
	if !Printable(key) {
		return q, false
	}
	return workdb.IdempotencyRequest{Actor: CallerOf(r.Context()).scope(), Key: key, Hash: fingerprint(r, body)}, true
}

// decide calls [Once.Decide], unless a request with this key is being decided by
// this process.
func (pl *Pipeline) decide(w http.ResponseWriter, r *http.Request, t Traits, body []byte) (answered bool) {
	q, ok := keyed(r, body)
	if !ok {
		return false
	}
	other, entered := pl.deciding.enter(q)
	if !entered {
		err := errKeyInProgress
		if other {
			err = errKeyConflict
		}
		pl.Problem(r.Context(), err).Write(w)
		return true
	}
	defer pl.deciding.leave(q)
	return t.Once.Decide(w, r, body, q)
}

// decisions are the requests that [Once.Decide] is carrying out, by key. Their number is bounded by
// the number of requests served at a time.
type decisions struct {
	mu  sync.Mutex
	all map[decisionKey][]byte // hashes
}

type decisionKey struct{ actor, key string }

// enter adds q unless a request with its key is there. If one is there, other reports whether that
// request differs from q.
func (d *decisions) enter(q workdb.IdempotencyRequest) (other, entered bool) {
	k := decisionKey{q.Actor, q.Key}
	d.mu.Lock()
	defer d.mu.Unlock()
	if hash, found := d.all[k]; found {
		return !bytes.Equal(hash, q.Hash), false
	}
	if d.all == nil {
		d.all = map[decisionKey][]byte{}
	}
	d.all[k] = q.Hash
	return false, true
}

func (d *decisions) leave(q workdb.IdempotencyRequest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, decisionKey{q.Actor, q.Key})
}

// once answers a request that carries an idempotency key. A repetition gets the cached answer;
// otherwise the request is carried out and its answer is kept.
func (pl *Pipeline) once(w http.ResponseWriter, r *http.Request, t Traits, body []byte, next http.HandlerFunc) {
	q, ok := keyed(r, body)
	if !ok {
		pl.Problem(r.Context(), Refused("header."+IdempotencyHeader, BadKey)).Write(w)
		return
	}
	found, err := pl.deps.Idempotency.Begin(r.Context(), q, attemptLease)
	q.Attempt = found.Attempt
	switch {
	case err != nil:
		pl.Problem(r.Context(), err).Write(w)
	case found.Conflict:
		pl.Problem(r.Context(), errKeyConflict).Write(w)
	case found.Busy:
		pl.Problem(r.Context(), errKeyInProgress).Write(w)
	case found.Found != nil:
		// The hash is that of a request to this operation.
		w.Header().Set(ReplayedHeader, "true")
		t.Once.Repeat(w, r, body, found.Known, found.Found)
	case found.Answered:
		replay(w, found)
	default:
		pl.carryOut(w, r.WithContext(context.WithValue(r.Context(), attemptKey{}, attempt{q, found.Again})), t, next)
	}
}

const BadKey = "must be 1 to 255 printable ASCII characters"

func Printable(key string) bool {
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

// fingerprint differs for different requests that share a key by mistake.
func fingerprint(r *http.Request, body []byte) []byte {
	var room [512]byte // for all but large bodies
	all := room[:0]
	for _, s := range [...]string{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("If-Match")} {
		all = append(append(all, s...), 0)
	}
	h := sha256.Sum256(append(all, body...))
	return h[:]
}

func replay(w http.ResponseWriter, found workdb.Recorded) {
	h := w.Header()
	for name, values := range found.Header {
		h[name] = values
	}
	h.Set(ReplayedHeader, "true")
	w.WriteHeader(found.Status)
	_, _ = w.Write(found.Body) // the client may be gone
}

// carryOut runs the request and stores the answer before sending it. An answer that asks to retry
// later is not stored, nor is an answer cut short by a panic. If another attempt took over because
// this attempt was taken for dead, the answer of the other attempt is valid, and this client is
// told to repeat the request.
func (pl *Pipeline) carryOut(w http.ResponseWriter, r *http.Request, t Traits, next http.HandlerFunc) {
	q := r.Context().Value(attemptKey{}).(attempt).request
	rec := &recording{header: http.Header{}, status: http.StatusOK}
	r, settle := pl.hold(r, q)
	ended := false
	defer func() {
		settle()
		if !ended {
			_ = pl.end(r, func(ctx context.Context) error { return pl.deps.Idempotency.Fail(ctx, q) })
		}
	}()
	next(rec, r)
	ended = true
	err := pl.end(r, func(ctx context.Context) error {
		if rec.status >= 500 || rec.status == http.StatusTooManyRequests {
			return pl.deps.Idempotency.Fail(ctx, q)
		}
		kept := rec
		if t.Secret != nil && rec.status < 300 {
			kept = &recording{header: http.Header{}, status: http.StatusOK}
			pl.Problem(r.Context(), t.Secret).Write(kept)
		}
		return pl.deps.Idempotency.Finish(ctx, q, workdb.Recorded{Status: kept.status, Header: kept.header, Body: kept.body.Bytes()})
	})
	if errors.Is(err, workdb.ErrAttemptLost) {
		pl.Problem(r.Context(), errKeyInProgress).Write(w)
		return
	}
	h := w.Header()
	for name, values := range rec.header {
		h[name] = values
	}
	w.WriteHeader(rec.status)
	_, _ = w.Write(rec.body.Bytes()) // the client may be gone
}

// hold renews the attempt's lease until settle is called, and cancels the request if the lease is
// lost all the same. Few requests last long enough for a renewal, so hold uses a timer instead of a
// goroutine.
func (pl *Pipeline) hold(r *http.Request, q workdb.IdempotencyRequest) (held *http.Request, settle func()) {
	ctx, cancel := context.WithCancel(r.Context())
	timer := time.AfterFunc(renewEvery, func() {
		tick := time.NewTicker(renewEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			// A renewal that fails for another reason may work the next time.
			if err := pl.deps.Idempotency.Renew(ctx, q, attemptLease); errors.Is(err, workdb.ErrAttemptLost) {
				cancel()
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return r.WithContext(ctx), func() { timer.Stop(); cancel() }
}

// end runs do even if the client has hung up. If do fails, the answer is sent all the same: the
// change is made, and a repetition recovers it.
func (pl *Pipeline) end(r *http.Request, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), pl.endTimeout(r.Context()))
	defer cancel()
	err := do(ctx)
	if err != nil {
		pl.unstored.warn(ctx, "request_id", middleware.From(r.Context()).ID, "err", err)
	}
	return err
}

// endTimeout is how long the client's answer waits for the outcome to be stored.
func (pl *Pipeline) endTimeout(ctx context.Context) time.Duration {
	if c := CallerOf(ctx); c.Key != nil && c.Key.Has(staff.ScopeAdmin) {
		return 5 * time.Second
	}
	return pl.callTimeout()
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
