package pipeline

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"dropbell/domain/fault"
	"dropbell/web/middleware"
)

// Traits are the properties of an operation that the pipeline needs.
type Traits struct {
	Access Access
	// Reads is set for staff operations that change nothing, or not always, although their method
	// is not GET. Read-only keys may call them.
	Reads bool
	// Stream is set for operations that read or write for longer than a
	// request may take; they handle body and deadlines themselves.
	Stream bool
	// Hot operations are logged only when they fail.
	Hot bool
	// Detached operations go on when their client hangs up.
	Detached bool
	// Quick, if set, is tried before the general way; it reports whether it
	// has answered.
	Quick func(w http.ResponseWriter, r *http.Request, body []byte) bool
	// Once, if set, makes repetitions safe at less cost than [Idempotency] does.
	Once Once
	// json is set for operations with a JSON body, needsBody if the body is required, bodiless for
	// operations without a body. The adapter derives them from the operation.
	json, needsBody, bodiless bool
	// OwnKeys is set for operations that handle repetitions themselves.
	OwnKeys bool
	// Secret, if set, is the refusal that a repetition gets if the answer contains a secret. Such
	// an answer is not stored.
	Secret *fault.Fault
	// Guard, if set, is called before anything is stored for the request, even its idempotency key.
	// It reports whether it has answered.
	Guard func(w http.ResponseWriter, r *http.Request, body []byte) bool
}

const traitsKey = "traits"

// adapter puts the pipeline in front of every operation.
type adapter struct{ *Pipeline }

// Handle is part of [huma.Adapter].
func (pl adapter) Handle(op *huma.Operation, next func(huma.Context)) {
	t, _ := op.Metadata[traitsKey].(Traits)
	t.json = op.RequestBody != nil && op.RequestBody.Content["application/json"] != nil
	t.needsBody = t.json && op.RequestBody.Required
	t.bodiless = op.RequestBody == nil
	name := op.Method + " " + op.Path
	route := new(middleware.Route)
	pl.mux.MethodFunc(op.Method, op.Path, func(w http.ResponseWriter, r *http.Request) {
		q, r := middleware.Ensure(r)
		q.Hot, q.Stream, q.Route = t.Hot, t.Stream, route
		defer pl.rescue(w, r)
		if !t.Stream {
			budget := pl.budget(t)
			if !budget.Enter() {
				pl.Problem(r.Context(), errTooMany).Write(w)
				return
			}
			defer budget.Leave()
		}
		if t.Access == ForStaff || t.Access == ForPayment {
			var told func()
			r, told = pl.fromStaff(q, r)
			defer told()
		}
		err := pl.admit(w, r, t.Access)
		if err == nil {
			err = t.permits(r)
		}
		if err == nil {
			err = plain(r)
		}
		if err != nil {
			pl.noteRefusal(r, name, err)
			pl.Problem(r.Context(), err).Write(w)
			return
		}
		pl.noteActing(r, name)
		h := w.Header()
		h["Cache-Control"] = noStore
		if t.Stream {
			if r.Method != http.MethodHead { // which has no use for what may take long
				next(humachi.NewContext(op, r, w))
			}
			return
		}
		if t.Quick != nil && r.URL.RawQuery == "" && (plainJSON(r.Header) || t.bodiless && r.ContentLength == 0) {
			pl.quickly(w, r, t, func(w http.ResponseWriter, r *http.Request) {
				next(humachi.NewContext(op, r, w))
			})
			return
		}
		pl.serve(w, r, t, func(w http.ResponseWriter, r *http.Request) {
			next(humachi.NewContext(op, r, w))
		})
	})
}

// single are headers of which a second value would be ignored.
var single = []string{IdempotencyHeader, "Authorization", "X-User-Id", "If-Match"}

// repeated is the only query parameter that may occur more than once.
const repeated = "reminder"

// plain refuses a body that would not be decoded, and a query or headers of which a part would be
// ignored.
func plain(r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return ErrMediaType.Because("send the body without Content-Encoding")
	}
	for _, name := range single {
		if len(r.Header[name]) > 1 {
			return Refused("header."+name, "is given %d times", len(r.Header[name]))
		}
	}
	if r.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Refused("query", "cannot be read: write special characters as %%xx")
	}
	e := &fault.Fields{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch list := values[name]; {
		case len(list) > 1 && name != repeated:
			e.Add("query."+name, "rule.api", "is given %d times", len(list))
		case slices.ContainsFunc(list, func(v string) bool { return !utf8.ValidString(v) || strings.ContainsRune(v, 0) }):
			e.Add("query."+name, "rule.api", "must be UTF-8 text without U+0000")
		}
	}
	return e.Err()
}

var noStore = []string{"no-store"}

// admit identifies the caller and refuses a caller above the rate limit.
func (pl *Pipeline) admit(w http.ResponseWriter, r *http.Request, needed Access) error {
	q := middleware.From(r.Context())
	c, err := pl.authenticate(r, needed)
	if c != nil {
		q.Principal, q.Actor = c, c.kind()
	}
	if err != nil {
		return pl.countFailure(q, r, err)
	}
	limiter, key := pl.users, middleware.LimitKey{Kind: 'u', Low: uint64(c.User)}
	switch {
	case c.Key != nil:
		limiter, key = pl.keyed, middleware.LimitKey{Kind: 'k', Low: uint64(c.Key.ID)}
	case c.User == 0:
		key = middleware.AddressKey('a', q.ClientIP(r))
	}
	if limiter.Unlimited() {
		return nil
	}
	return limited(w, limiter.Allow(key, pl.deps.Now()))
}

// limited writes the headers of draft-ietf-httpapi-ratelimit-headers-06.
func limited(w http.ResponseWriter, d middleware.Decision) error {
	h := w.Header()
	values := [3]string{strconv.Itoa(d.Limit), strconv.Itoa(d.Remaining), strconv.Itoa(seconds(d.Reset))}
	h["Ratelimit-Limit"] = values[0:1:1]
	h["Ratelimit-Remaining"] = values[1:2:2]
	h["Ratelimit-Reset"] = values[2:3:3]
	if d.Allowed {
		return nil
	}
	return RetryLater(ErrRateLimited, d.RetryAfter)
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// serve reads the body before other middleware does, so that errors in the body are answered in the
// API's form. Repeated requests are answered from memory.
func (pl *Pipeline) serve(w http.ResponseWriter, r *http.Request, t Traits, next http.HandlerFunc) {
	switch r.Method {
	case http.MethodDelete:
		if err := bodiless(w, r); err != nil {
			pl.Problem(r.Context(), err).Write(w)
			return
		}
		fallthrough
	case http.MethodGet, http.MethodHead:
		r, cancel := pl.timed(r, t)
		defer cancel()
		next(w, r)
		return
	}
	b := bodies.Get().(*body)
	defer b.free()
	if err := b.read(w, r); err != nil {
		pl.Problem(r.Context(), err).Write(w)
		return
	}
	r, cancel := pl.timed(r, t)
	defer cancel()
	if err := t.judge(r, b.buf.Bytes()); err != nil {
		pl.Problem(r.Context(), err).Write(w)
		return
	}
	if t.Guard != nil && t.Guard(w, r, b.buf.Bytes()) {
		return
	}
	if keys := r.Header[IdempotencyHeader]; len(keys) > 0 && r.Method == http.MethodPost && !t.OwnKeys {
		pl.once(w, r, t, b.buf.Bytes(), next)
		return
	}
	next(w, r)
}

// bodiless refuses a DELETE with content in its body: the content would be ignored, and more
// deleted than was meant. An empty object is accepted.
func bodiless(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	// Not every writer has deadlines, and none is needed then.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	text, err := io.ReadAll(io.LimitReader(r.Body, 64))
	if err == nil && len(text) < 64 && saysNothing(text) {
		return nil
	}
	return errBody()
}

func saysNothing(body []byte) bool {
	said := string(bytes.TrimSpace(body))
	return said == "" || said == "{}"
}

func errBody() error {
	return Refused("body", "this takes no body; say in the address and its query what is meant")
}

// body is a request's body in memory that is used again.
type body struct {
	buf bytes.Buffer
	rd  bytes.Reader
}

var bodies = sync.Pool{New: func() any { return new(body) }}

func (b *body) free() {
	if b.buf.Cap() <= 64<<10 {
		b.buf.Reset()
		bodies.Put(b)
	}
}

// Read is part of [io.ReadCloser].
func (b *body) Read(p []byte) (int, error) { return b.rd.Read(p) }

// Close is part of [io.ReadCloser].
func (b *body) Close() error { return nil }

// read replaces r.Body by the bytes read from it. It returns errTooLarge, ErrTimeout or
// ErrMalformed.
func (b *body) read(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > maxBody {
		return errTooLarge
	}
	if r.ContentLength != 0 && !middleware.BodyTimed(r) {
		// Not every writer has deadlines, and none is needed then.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
	err := b.fill(r)
	switch {
	case b.buf.Len() > maxBody:
		return errTooLarge
	case IsTimeout(err):
		return ErrTimeout
	case err != nil:
		return ErrMalformed.Because("the body could not be read to its end; send it again")
	case !utf8.Valid(b.buf.Bytes()):
		return ErrMalformed.Because("the body is not valid UTF-8; correct it and send it again")
	}
	b.rd.Reset(b.buf.Bytes())
	r.Body = b
	return nil
}

// fill reads the body to its end, or to one byte above the limit.
func (b *body) fill(r *http.Request) error {
	from := io.Reader(r.Body)
	if r.ContentLength < 0 {
		from = io.LimitReader(r.Body, maxBody+1)
	}
	_, err := b.buf.ReadFrom(from)
	return err
}

func IsTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// rescue turns a panic into a problem, unless an answer has begun.
func (pl *Pipeline) rescue(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	q := middleware.From(r.Context())
	if q.Answered() {
		panic(p) // too late for another answer; the middleware cuts the connection
	}
	pl.log.ErrorContext(r.Context(), "handler panicked", "request_id", q.ID, "panic", p, "stack", string(debug.Stack()))
	newProblem(errInternal, q.ID).Write(w)
}
