// Package middleware holds the handling that every request passes through, whatever its subject: an
// id, one log line, metrics, recovery from panics, the client's address and protective headers.
package middleware

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	chimw "github.com/go-chi/chi/v5/middleware"
)

// RequestIDHeader contains the id by which an answer is found in the log.
const RequestIDHeader = "X-Request-Id"

// Options configure [Requests].
type Options struct {
	Log     *slog.Logger // nil = slog.Default()
	Metrics *Metrics     // nil = nothing is measured
	// TrustedProxies are the CIDR prefixes of proxies whose X-Forwarded-For is trusted. Without
	// prefixes the client is the peer of the connection.
	TrustedProxies []string
	// Encrypted is set if clients reach this server by https. Answers then require https from now
	// on (HSTS).
	Encrypted bool
	// Panicked answers a request whose handler panicked before it answered; nil = a plain 500.
	Panicked http.HandlerFunc
	// Trace, if set, may change the context of a request. done is called at the request's end.
	Trace func(*http.Request) (_ context.Context, done func(method, route string, status int))
}

// A Request holds the properties of one request beyond HTTP. It belongs to the goroutine that
// serves the request.
type Request struct {
	ID string
	// Principal is the authenticated caller.
	Principal any
	// Actor says in the log line the kind of the caller, never its identity.
	Actor string
	// Hot is set for requests of which successes are logged at debug level only: at tens of
	// thousands a second the log would cost more than the request.
	Hot bool
	// Stream is set for requests that last as long as the client stays; their duration is not
	// measured.
	Stream bool
	// Route, if set, remembers the pattern of the request's route.
	Route *Route

	start  time.Time
	status int
	bytes  int64
	w      http.ResponseWriter
	ip     func(http.Handler) http.Handler
	asked  bool       // for client
	client netip.Addr // see [Request.ClientIP]
	traced func(method, route string, status int)
}

type requestKey struct{}

// From returns the request of ctx, or nil outside [Requests].
func From(ctx context.Context) *Request {
	q, _ := ctx.Value(requestKey{}).(*Request)
	return q
}

// Status returns the status that was answered, 0 = there is no answer yet.
func (q *Request) Status() int { return q.status }

// Ensure returns the request's values and r. If r has not passed [Requests], it returns new values
// and an r that contains them.
func Ensure(r *http.Request) (*Request, *http.Request) {
	if q := From(r.Context()); q != nil {
		return q, r
	}
	q := &Request{ID: newID(), start: time.Now(), ip: chimw.ClientIPFromRemoteAddr}
	return q, r.WithContext(context.WithValue(r.Context(), requestKey{}, q))
}

// ClientIP returns the address of the client behind trusted proxies. It is invalid if the proxies
// sent an invalid address.
func (q *Request) ClientIP(r *http.Request) netip.Addr {
	if !q.asked {
		q.ip(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			q.client = chimw.GetClientIPAddr(r.Context())
		})).ServeHTTP(nil, r)
		q.asked = true
	}
	return q.client
}

// Requests returns the outermost middleware; use it on the root chi router,
// whose route patterns it reports.
func Requests(o Options) func(http.Handler) http.Handler {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Panicked == nil {
		o.Panicked = func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	}
	ip := chimw.ClientIPFromRemoteAddr
	if len(o.TrustedProxies) > 0 {
		ip = chimw.ClientIPFromXFF(o.TrustedProxies...)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := &Request{ID: inboundID(r), start: time.Now(), w: w, ip: ip}
			ctx := r.Context()
			if o.Trace != nil {
				ctx, q.traced = o.Trace(r)
			}
			r = r.WithContext(context.WithValue(ctx, requestKey{}, q))
			protect(w.Header(), r.URL, q.ID)
			if o.Encrypted {
				w.Header()["Strict-Transport-Security"] = encryptedOnly
			}
			defer o.finish(q, r)
			defer o.rescue(q, r)
			next.ServeHTTP(q, r)
		})
	}
}

// rescue turns a panic into an answer. If a part of the answer was already sent, rescue closes the
// connection, so that the client does not take the part for the whole.
func (o *Options) rescue(q *Request, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	o.Log.ErrorContext(r.Context(), "handler panicked", "request_id", q.ID, "panic", p, "stack", string(debug.Stack()))
	if q.status != 0 {
		panic(http.ErrAbortHandler)
	}
	o.Panicked(q, r)
}

// finish logs the one line of the request. The line contains neither path nor query nor address,
// which are personal data.
func (o *Options) finish(q *Request, r *http.Request) {
	took, route := time.Since(q.start), q.Route.pattern(r)
	if q.status == 0 {
		q.status = http.StatusOK
	}
	if !q.Stream {
		o.Metrics.observe(r.Method, route, q.status, took)
	}
	if q.traced != nil {
		q.traced(knownMethod(r.Method), route, q.status)
	}
	level := slog.LevelInfo
	if q.Hot && q.status < 300 {
		level = slog.LevelDebug
	}
	if !o.Log.Enabled(r.Context(), level) {
		return
	}
	o.Log.LogAttrs(r.Context(), level, "request", slog.String("request_id", q.ID), slog.String("method", knownMethod(r.Method)),
		slog.String("route", route), slog.Int("status", q.status), slog.Int64("bytes", q.bytes),
		slog.Float64("ms", float64(took.Microseconds())/1000), slog.String("actor", q.Actor))
}

// A Route caches the pattern of a route, which chi otherwise puts together for every request. It
// belongs to a handler that is mounted in one place.
type Route struct{ known atomic.Pointer[string] }

// pattern returns the route pattern of r, "none" if no route was found.
func (k *Route) pattern(r *http.Request) string {
	if k == nil {
		return routeOf(r)
	}
	if p := k.known.Load(); p != nil {
		return *p
	}
	p := routeOf(r)
	k.known.Store(&p)
	return p
}

func routeOf(r *http.Request) string {
	if rc := chi.RouteContext(r.Context()); rc != nil {
		if p := rc.RoutePattern(); p != "" {
			return p
		}
	}
	return "none"
}

// inboundID keeps an id that a proxy gave if it is harmless in a log.
func inboundID(r *http.Request) string {
	id := r.Header.Get(RequestIDHeader)
	if id == "" || len(id) > 64 {
		return newID()
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return newID()
		}
	}
	return id
}

// newID needs to be unique, not secret.
func newID() string {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], rand.Uint64())
	return hex.EncodeToString(b[:])
}
