// Package wallet serves Apple devices that have a pass: links to passes, and the calls by which
// devices register and ask for changes ("Adding a Web Service to Update Passes" of Apple's
// documentation). The token of a pass is the only proof of the caller's right; there is no session.
package wallet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	passes "dropbell/domain/coupon/wallet"
	"dropbell/domain/fault"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// Prefix is the path prefix of all addresses. Devices get the address of Prefix and append "/v1/…".
const Prefix = "/wallet"

// Type is the media type of passes.
const Type = "application/vnd.apple.pkpass"

const (
	// maxBody is the size of a call in bytes.
	maxBody = 64 << 10
	// maxInFlight bounds the calls that are served at a time; each signs at most one pass.
	maxInFlight = 64
	// maxMemory bounds the bodies of all calls together, in bytes.
	maxMemory = 16 << 20
	// perAddress is how many calls a minute an address may send: many phones share the address of a
	// carrier.
	perAddress = 1200
	// maxLogged is how many characters of a device's message are logged.
	maxLogged = 300
)

// Deps are the dependencies of the handler.
type Deps struct {
	Passes *passes.Service
	// PassType is the pass type identifier that devices name.
	PassType string
	// Budget bounds the calls that are served at a time; nil = [NewBudget] without
	// metrics.
	Budget *middleware.Budget
	Now    func() time.Time
	Log    *slog.Logger
}

// NewBudget returns the budget of calls; m may be nil.
func NewBudget(m *middleware.BudgetMetrics) *middleware.Budget {
	return middleware.NewBudget(maxInFlight, "wallet", m)
}

var (
	errNoRoute  = fault.New(fault.NotFound, "not_found", "there is nothing at this address; check the path")
	errMethod   = fault.New(fault.Invalid, "method_not_allowed", "this address does not take this method")
	errBody     = fault.New(fault.Invalid, "malformed_json", "the body is not the JSON that this call has")
	errLimited  = fault.New(fault.Throttled, "rate_limited", "too many calls from this address")
	errBusy     = fault.New(fault.Unavailable, "overloaded", "this cannot be answered right now; try again")
	errPushName = fault.New(fault.Invalid, "invalid_request", "a device's name and its push token have 1 to 200 characters")
)

type handler struct {
	Deps
	calls *middleware.Limiter
}

// New returns the handler for [Prefix].
func New(d Deps) http.Handler {
	h := &handler{Deps: d, calls: middleware.NewLimiter(perAddress)}
	if h.Budget == nil {
		h.Budget = NewBudget(nil)
	}
	mux := chi.NewMux()
	never := func(*http.Request) bool { return false }
	busy := func(w http.ResponseWriter, r *http.Request) { refuse(w, r, errBusy) }
	mux.Use(h.limit, middleware.NewReception(maxBody, maxMemory).Received(busy), middleware.Bound(h.Budget, never, busy))
	mux.NotFound(func(w http.ResponseWriter, r *http.Request) { refuse(w, r, errNoRoute) })
	mux.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { refuse(w, r, errMethod) })
	mux.Get("/passes/{link}", h.answering(h.linked))
	const registrations = "/v1/devices/{device}/registrations/{type}"
	mux.Post(registrations+"/{serial}", h.answering(h.register))
	mux.Delete(registrations+"/{serial}", h.answering(h.unregister))
	mux.Get(registrations, h.answering(h.updated))
	mux.Get("/v1/passes/{type}/{serial}", h.answering(h.current))
	mux.Post("/v1/log", h.answering(h.log))
	return mux
}

func (h *handler) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, r := middleware.Ensure(r)
		if d := h.calls.Allow(middleware.AddressKey('w', q.ClientIP(r)), h.Now()); !d.Allowed {
			refuse(w, r, &fault.RetryAfter{Err: errLimited, After: d.RetryAfter})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answering answers an error as a problem. An error that is no refusal by rule is answered with
// 503, so that the device tries again.
func (h *handler) answering(do func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		err := do(w, r)
		if err == nil {
			return
		}
		if _, ok := errors.AsType[*fault.Fault](err); !ok {
			h.Log.ErrorContext(r.Context(), "a wallet's call failed", "error", err)
			err = errBusy
		}
		refuse(w, r, err)
	}
}

// named returns the device, the serial number and the token of a call about a pass of
// this pass type.
func (h *handler) named(r *http.Request) (device, serial, token string, err error) {
	device, serial = chi.URLParam(r, "device"), chi.URLParam(r, "serial")
	if chi.URLParam(r, "type") != h.PassType {
		return "", "", "", passes.ErrUnknown
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "ApplePass ")
	if !ok {
		return "", "", "", passes.ErrToken
	}
	return device, serial, token, nil
}

func validName(s string) bool {
	n := utf8.RuneCountInString(s)
	return n > 0 && n <= passes.MaxName && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

func body(w http.ResponseWriter, r *http.Request, into any) error {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || json.Unmarshal(raw, into) != nil {
		return errBody
	}
	return nil
}

// register answers 201 to a new device and 200 to a registered device.
func (h *handler) register(w http.ResponseWriter, r *http.Request) error {
	device, serial, token, err := h.named(r)
	if err != nil {
		return err
	}
	var in struct {
		PushToken string `json:"pushToken"`
	}
	if err := body(w, r, &in); err != nil {
		return err
	}
	if !validName(device) || !validName(in.PushToken) {
		return errPushName
	}
	added, err := h.Passes.Register(r.Context(), device, serial, token, in.PushToken)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if added {
		status = http.StatusCreated
	}
	w.WriteHeader(status)
	return nil
}

func (h *handler) unregister(w http.ResponseWriter, r *http.Request) error {
	device, serial, token, err := h.named(r)
	if err != nil {
		return err
	}
	if !validName(device) {
		return errPushName
	}
	if err := h.Passes.Unregister(r.Context(), device, serial, token); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// updated lists the device's passes that have changed, or answers 204 without a change. Devices
// send no token here; Apple keeps their identifier secret.
func (h *handler) updated(w http.ResponseWriter, r *http.Request) error {
	device := chi.URLParam(r, "device")
	if chi.URLParam(r, "type") != h.PassType || !validName(device) {
		return passes.ErrUnknown
	}
	serials, next, err := h.Passes.Updated(r.Context(), device, r.URL.Query().Get("passesUpdatedSince"))
	if err != nil {
		return err
	}
	if len(serials) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{"serialNumbers": serials, "lastUpdated": next})
}

func (h *handler) current(w http.ResponseWriter, r *http.Request) error {
	_, serial, token, err := h.named(r)
	if err != nil {
		return err
	}
	file, err := h.Passes.Current(r.Context(), serial, token)
	if err != nil {
		return err
	}
	return serve(w, r, file)
}

func (h *handler) linked(w http.ResponseWriter, r *http.Request) error {
	token, ok := strings.CutSuffix(chi.URLParam(r, "link"), ".pkpass")
	if !ok {
		return passes.ErrUnknown
	}
	file, err := h.Passes.Linked(r.Context(), token)
	if err != nil {
		return err
	}
	return serve(w, r, file)
}

// ETag identifies the content of the pass. It is weak: two signatures of one pass differ.
func ETag(file passes.File) string {
	sum := sha256.Sum256(file.Described())
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}

// Unchanged reports whether the caller already has the file, by its If-None-Match, or without that
// header by its If-Modified-Since (RFC 9110, section 13.2.2).
func Unchanged(file passes.File, ifNoneMatch, ifModifiedSince string) bool {
	if ifNoneMatch != "" {
		for tag := range strings.SplitSeq(ifNoneMatch, ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || "W/"+strings.TrimPrefix(tag, "W/") == ETag(file) {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(ifModifiedSince)
	return err == nil && !file.Pass.Modified.After(since)
}

func serve(w http.ResponseWriter, r *http.Request, file passes.File) error {
	header := w.Header()
	header.Set("Cache-Control", "private, no-cache")
	header.Set("ETag", ETag(file))
	header.Set("Last-Modified", file.Pass.Modified.UTC().Format(http.TimeFormat))
	if Unchanged(file, r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	raw, err := file.Bundle()
	if err != nil {
		return err
	}
	header.Set("Content-Type", Type)
	header.Set("Content-Disposition", `attachment; filename="coupon.pkpass"`)
	_, _ = w.Write(raw) // an error means that the device has gone
	return nil
}

// log accepts the reports of devices about their calls. Any caller can send a report, and it may
// contain addresses, so it is logged at LOG_LEVEL=debug only, one line per call.
func (h *handler) log(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Logs []string `json:"logs"`
	}
	if err := body(w, r, &in); err != nil {
		return err
	}
	if len(in.Logs) > 0 {
		first := []rune(in.Logs[0])
		h.Log.DebugContext(r.Context(), "a device reports about passes", "messages", len(in.Logs), "first", string(first[:min(len(first), maxLogged)]))
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// refuse answers with a problem (RFC 9457).
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		f = errBusy
	}
	status := map[fault.Kind]int{fault.Unauthenticated: http.StatusUnauthorized, fault.Throttled: http.StatusTooManyRequests, fault.Conflict: http.StatusConflict,
		fault.NotFound: http.StatusNotFound, fault.Unavailable: http.StatusServiceUnavailable, fault.Invalid: http.StatusBadRequest}[f.Kind]
	switch later, again := errors.AsType[*fault.RetryAfter](err); {
	case f == errMethod:
		status = http.StatusMethodNotAllowed
	case again:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(later.After.Seconds()))))
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	w.Header().Set("Cache-Control", "no-store")
	problem := &pipeline.Problem{Type: "/docs#code-" + f.Code, Title: http.StatusText(status), Status: status, Detail: f.Text, Code: f.Code}
	q, _ := middleware.Ensure(r)
	problem.About(q.ID)
	problem.Write(w)
}
