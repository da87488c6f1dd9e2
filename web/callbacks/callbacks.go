// Package callbacks receives the callbacks of providers that report on messages: POST
// /callbacks/{source}, or /callbacks/{source}/{provider} for a provider that staff have configured.
// The provider's signature is the only proof of a callback's origin; there is no session. A
// callback is answered with success after all its reports are stored durably, so that providers
// repeat a callback that was not stored.
package callbacks

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// Prefix is where providers call.
const Prefix = "/callbacks"

const (
	// maxBody is the greatest size of a call in bytes. The largest calls, of SendGrid, have at most
	// 768 KB.
	maxBody = 1 << 20
	// maxInFlight bounds the calls that are stored at a time, maxMemory the bodies of all
	// calls together, in bytes.
	maxInFlight = 64
	maxMemory   = 64 << 20
	// perAddress is how many calls a minute without a valid signature an address may send before
	// further calls are refused.
	perAddress = 60
	// perFetch is how many calls a minute an address may send for which a source must load a
	// certificate before it can check the signature.
	perFetch = 6
	// repeatAfter is the delay after which a provider is asked to repeat a call that was not
	// stored.
	repeatAfter = 30 * time.Second
	// storeFor bounds how long a call waits to be stored. Amazon SNS, the provider with the
	// shortest time limit, ends a call after 15 seconds.
	storeFor = 10 * time.Second
)

// A Source reads the calls of one provider and checks that it signed them.
type Source interface {
	// Name is the last part of the source's address, such as "ses".
	Name() string
	// Read returns the reports of a call. url is the address as the provider called it, with scheme
	// and host. It returns [feedback.ErrUnverified] for a call without a valid signature, and
	// [feedback.ErrUnreadable] for a signed call in another format. A call without reports is no
	// error.
	Read(header http.Header, url *url.URL, body []byte) (feedback.Call, error)
}

// An Answerer is a [Source] whose provider reads the answer of its call.
type Answerer interface {
	// Answer returns the content type and the body of the answer to a stored call. answers are the
	// texts for the replies in the call, in their order; "" = no answer.
	Answer(answers []string) (contentType string, body []byte)
}

// A Fetcher is a [Source] that may have to load a certificate before it can check a signature. Any
// stranger can make it do so.
type Fetcher interface {
	// Fetches reports whether reading the call begins with that.
	Fetches(body []byte) bool
}

// Replies processes the replies of users to messages.
type Replies interface {
	// Replies returns for each reply, in order, the text to send to its sender; "" = no text.
	// Replies that are processed again change nothing and have the same answers.
	Replies(ctx context.Context, replies []feedback.Reply) (answers []string, err error)
}

// Deps are the dependencies of the callbacks.
type Deps struct {
	// Sources are the configured sources; each name occurs once.
	Sources []Source
	// Provided returns the source with that name of a configured provider; nil = no such source.
	// Provided itself may be nil.
	Provided func(ctx context.Context, source string, provider int64) (Source, error)
	Reports  feedback.Taker
	// Replies may be nil if no source has any.
	Replies Replies
	// PublicURL is the address at which providers reach this program, up to the prefix; empty = the
	// address of the request.
	PublicURL string
	// Budget bounds the calls that are served at a time; nil = [NewBudget] without
	// metrics.
	Budget *middleware.Budget
	Now    func() time.Time
	Log    *slog.Logger
	// Answered is called after each call to a source with one of the results "taken", "unverified",
	// "unreadable", "too_large" and "unavailable"; may be nil.
	Answered func(source, result string)
}

// NewBudget returns the budget of calls; m may be nil.
func NewBudget(m *middleware.BudgetMetrics) *middleware.Budget {
	return middleware.NewBudget(maxInFlight, "callbacks", m)
}

var (
	errNoSource  = fault.New(fault.NotFound, "callback_source_unknown", "no provider of this name is configured")
	errMethod    = fault.New(fault.Invalid, "method_not_allowed", "callbacks are sent with POST")
	errTooLarge  = fault.New(fault.Invalid, "body_too_large", "a callback has 1 MiB at most")
	errLimited   = fault.New(fault.Throttled, "rate_limited", "too many callbacks without a valid signature")
	errNotStored = fault.New(fault.Unavailable, "overloaded", "this could not be stored now; repeat the call")
)

// Handler serves everything under [Prefix].
type Handler struct {
	Deps
	sources    map[string]Source
	unverified *middleware.Limiter
	fetches    *middleware.Limiter
	base       *url.URL
	mux        *chi.Mux
}

// New returns the handler.
func New(d Deps) *Handler {
	h := &Handler{Deps: d, sources: map[string]Source{}, unverified: middleware.NewLimiter(perAddress), fetches: middleware.NewLimiter(perFetch), mux: chi.NewMux()}
	for _, s := range d.Sources {
		h.sources[s.Name()] = s
	}
	if base, err := url.Parse(d.PublicURL); err == nil && base.Host != "" {
		h.base = base
	}
	if h.Budget == nil {
		h.Budget = NewBudget(nil)
	}
	never := func(*http.Request) bool { return false }
	busy := func(w http.ResponseWriter, r *http.Request) { h.refuse(w, r, errNotStored) }
	h.mux.Use(middleware.NewReception(maxBody, maxMemory).Received(busy), middleware.Bound(h.Budget, never, busy))
	h.mux.Post("/{source}", h.take)
	h.mux.Post("/{source}/{provider:[1-9][0-9]{0,17}}", h.take)
	h.mux.NotFound(func(w http.ResponseWriter, r *http.Request) { h.refuse(w, r, errNoSource) })
	h.mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", http.MethodPost)
		h.refuse(w, r, errMethod)
	})
	return h
}

// ServeHTTP answers a request below the mount point.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// take answers one call. A source that panics over a call has not read it.
func (h *Handler) take(w http.ResponseWriter, r *http.Request) {
	s, err := h.source(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			h.note(s, "too_large")
			h.refuse(w, r, errTooLarge)
		} else {
			h.refuse(w, r, feedback.ErrUnreadable) // it ended early
		}
		return
	}
	call, err := h.read(s, r, body)
	if err != nil {
		h.note(s, resultOf(err))
		h.refuse(w, r, err)
		return
	}
	answers, err := h.store(r.Context(), call)
	if err != nil {
		h.note(s, "unavailable")
		h.refuse(w, r, err)
		return
	}
	h.note(s, "taken")
	answer(w, s, answers)
}

// source returns the source that the address names, or [errNoSource].
func (h *Handler) source(r *http.Request) (s Source, err error) {
	name, of := chi.URLParam(r, "source"), chi.URLParam(r, "provider")
	if of == "" {
		s = h.sources[name]
	} else if id, bad := strconv.ParseInt(of, 10, 64); bad == nil && h.Provided != nil {
		s, err = h.Provided(r.Context(), name, id)
	}
	if s == nil && err == nil {
		err = errNoSource
	}
	return s, err
}

// read has the source check and read a call. Calls without a valid signature count against their
// address. Calls with a valid signature never count: strangers may call through the same provider
// and so from the same addresses.
func (h *Handler) read(s Source, r *http.Request, body []byte) (call feedback.Call, err error) {
	defer func() {
		if p := recover(); p != nil {
			h.Log.ErrorContext(r.Context(), "callback could not be read", "source", s.Name(), "panic", p)
			err = feedback.ErrUnreadable
		}
	}()
	if f, ok := s.(Fetcher); ok && f.Fetches(body) {
		if err := h.allowed(h.fetches, r); err != nil {
			return call, err
		}
	}
	call, err = s.Read(r.Header, h.address(r), body)
	if errors.Is(err, feedback.ErrUnverified) {
		if err := h.allowed(h.unverified, r); err != nil {
			return call, err
		}
	}
	return call, err
}

// allowed counts the call for its address and returns [errLimited] above the limit.
func (h *Handler) allowed(limit *middleware.Limiter, r *http.Request) error {
	q, r := middleware.Ensure(r)
	if d := limit.Allow(middleware.AddressKey('c', q.ClientIP(r)), h.Now()); !d.Allowed {
		return &fault.RetryAfter{Err: errLimited, After: d.RetryAfter}
	}
	return nil
}

// address returns the URL that the provider called; some providers sign it.
func (h *Handler) address(r *http.Request) *url.URL {
	u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	if h.base != nil {
		u.Scheme, u.Host, u.Path = h.base.Scheme, h.base.Host, h.base.JoinPath(r.URL.Path).Path
	}
	return &u
}

// store returns after the whole call is stored. A report or reply that is stored twice changes
// nothing, so an error halfway does no harm.
func (h *Handler) store(ctx context.Context, call feedback.Call) (answers []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeFor)
	defer cancel()
	if len(call.Reports) > 0 {
		if err := h.Reports.Take(ctx, call.Reports); err != nil {
			return nil, err
		}
	}
	if len(call.Replies) > 0 && h.Replies != nil {
		return h.Replies.Replies(ctx, call.Replies)
	}
	return nil, nil
}

// answer answers a stored call with success.
func answer(w http.ResponseWriter, s Source, answers []string) {
	w.Header().Set("Cache-Control", "no-store")
	a, ok := s.(Answerer)
	if !ok {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	contentType, body := a.Answer(answers)
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body) // an error means that the provider has gone; it repeats the call
}

func (h *Handler) note(s Source, result string) {
	if h.Answered != nil {
		h.Answered(s.Name(), result)
	}
}

// resultOf is the result of a call that its source refused.
func resultOf(err error) string {
	switch fault.KindOf(err) {
	case fault.Unauthenticated, fault.Throttled:
		return "unverified"
	case fault.Invalid:
		return "unreadable"
	}
	return "unavailable"
}

// refuse answers with a problem. An error that is no refusal by rule is answered with 503, so that
// the provider repeats the call: after a 500 some providers give up.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		// The provider has hung up, or will. It must not receive the 200 that the server writes for
		// a handler that did not answer.
		err = errNotStored
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok || f.Kind == fault.Unavailable {
		if f != errNotStored {
			h.Log.WarnContext(r.Context(), "callback was not stored; its provider is asked to repeat it", "error", err)
		}
		f = errNotStored
	}
	status := map[fault.Kind]int{fault.Unauthenticated: http.StatusUnauthorized, fault.Throttled: http.StatusTooManyRequests,
		fault.NotFound: http.StatusNotFound, fault.Unavailable: http.StatusServiceUnavailable}[f.Kind]
	switch {
	case f == errTooLarge:
		status = http.StatusRequestEntityTooLarge
	case f == errMethod:
		status = http.StatusMethodNotAllowed
	case status == 0:
		status = http.StatusUnprocessableEntity
	}
	if later, ok := errors.AsType[*fault.RetryAfter](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(later.After.Seconds()))))
	} else if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(int(repeatAfter.Seconds())))
	}
	problem := &pipeline.Problem{Type: "/docs#code-" + f.Code, Title: http.StatusText(status), Status: status, Detail: f.Text, Code: f.Code}
	q, _ := middleware.Ensure(r)
	problem.About(q.ID)
	problem.Write(w)
}
