// Package pipeline is the part of the JSON API that all requests pass: authentication and
// authorization, limits, deadlines, idempotency keys, strict JSON, problem details, and the OpenAPI
// document that is made from the operations. It does not import the resources: they register with
// the pipeline.
package pipeline

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/staff"
	"dropbell/web/cells"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// Keys keeps service keys.
type Keys interface {
	// Key returns the key whose secret has this hash, or [staff.ErrKeyNotFound].
	Key(ctx context.Context, hash []byte) (staff.Key, error)
	// TouchKey records that the key was used now.
	TouchKey(ctx context.Context, id int64) error
}

// Idempotency keeps answers by key; see [workdb.Idempotency].
type Idempotency interface {
	Begin(ctx context.Context, r workdb.IdempotencyRequest, lease time.Duration) (workdb.Recorded, error)
	Renew(ctx context.Context, r workdb.IdempotencyRequest, lease time.Duration) error
	Finish(ctx context.Context, r workdb.IdempotencyRequest, a workdb.Recorded) error
	Fail(ctx context.Context, r workdb.IdempotencyRequest) error
}

// Deps are the dependencies of every request, whatever its subject. All fields are required unless
// their comment says otherwise.
type Deps struct {
	Keys        Keys
	Tokens      *Tokens // nil = no end user tokens are accepted
	Idempotency Idempotency
	Now         func() time.Time
	Log         *slog.Logger // nil = slog.Default()
	// Rehearsed says that the resources are those of a rehearsal: they are served to keys of rehearsals, and to no other key.
	Rehearsed bool
	// UserLimit and KeyLimit are requests per minute and caller, 0 = any
	// number. Callers without credentials are counted by address, like users.
	UserLimit int
	KeyLimit  int
	// RequestTimeout is how long an end user waits at most; 0 = 2 s.
	RequestTimeout time.Duration
	// Budget bounds how many requests of end users and payment are served at a time, StaffBudget
	// how many of staff; nil = no bound.
	Budget, StaffBudget *middleware.Budget
	// Security logs refusals, changes of access and changes by service keys in
	// the name of users; nil = no log.
	Security *security.Log
	// PublicURL is the address at which clients reach this server, such as
	// https://drops.example.com; empty = the address that the client used.
	PublicURL string
}

// Pipeline serves operations. [New] makes it, [Register] adds an operation,
// and [Pipeline.Finish] is called after the last one.
type Pipeline struct {
	deps   Deps
	mux    *chi.Mux
	huma   huma.API
	log    *slog.Logger
	keys   *keyring
	users  *middleware.Limiter
	keyed  *middleware.Limiter
	failed *middleware.Limiter
	// limiters are limits of single operations, by name.
	limiters map[string]*middleware.Limiter
	// deciding are the requests whose key is being stored together with their change.
	deciding decisions
	// The logs of refusals that hit many requests at a time: in an overload, or while a dependency
	// is down.
	unavailable, unstored digest

	// forReading are changes of the document for its readers.
	forReading []func(*huma.OpenAPI)
	spec       func() []byte
	lists      []cells.Operation
}

// Limiters returns the limiters of requests per caller, for [middleware.Share]. Their names are the
// same in every process.
func (pl *Pipeline) Limiters() map[string]*middleware.Limiter {
	list := map[string]*middleware.Limiter{"users": pl.users, "keys": pl.keyed, "failures": pl.failed, "unknown-keys": pl.keys.tries}
	maps.Copy(list, pl.limiters)
	return list
}

// Limiter returns a limiter of perMinute requests for an operation. [Pipeline.Limiters] lists it
// under its name.
func (pl *Pipeline) Limiter(name string, perMinute int) *middleware.Limiter {
	pl.limiters[name] = middleware.NewLimiter(perMinute)
	return pl.limiters[name]
}

// Now returns the instant by the clock of the dependencies.
func (pl *Pipeline) Now() time.Time { return pl.deps.Now() }

// PublicURL returns the address at which clients reach this server; empty = the address that the
// client used.
func (pl *Pipeline) PublicURL() string { return pl.deps.PublicURL }

// Limits of every request but streams.
const (
	maxBody     = 1 << 20
	bodyTimeout = 10 * time.Second
	// failuresPerMinute bounds guessing keys and tokens, per address.
	failuresPerMinute = 60
)

// New returns a pipeline without operations.
func New(d Deps) *Pipeline {
	pl := &Pipeline{deps: d, mux: chi.NewMux(), log: d.Log,
		users: middleware.NewLimiter(d.UserLimit), keyed: middleware.NewLimiter(d.KeyLimit),
		failed: middleware.NewLimiter(failuresPerMinute), limiters: map[string]*middleware.Limiter{}}
	if pl.log == nil {
		pl.log = slog.Default()
	}
	pl.unavailable = digest{log: pl.log, message: "dependency unavailable"}
	pl.unstored = digest{log: pl.log, message: "cannot store the outcome of an idempotent request"}
	pl.keys = newKeyring(d.Keys, d.Now, pl.log)
	pl.mux.Use(pl.head)
	pl.mux.NotFound(pl.NotFound)
	pl.mux.MethodNotAllowed(pl.MethodNotAllowed)
	pl.huma = huma.NewAPI(config(d.PublicURL), adapter{pl})
	return pl
}

// ServeHTTP answers a request below the mount point.
func (pl *Pipeline) ServeHTTP(w http.ResponseWriter, r *http.Request) { pl.mux.ServeHTTP(w, r) }

// head serves HEAD like GET. chi's own middleware asks the root router, which accepts every method
// for a mounted handler.
func (pl *Pipeline) head(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rc := chi.RouteContext(r.Context()); r.Method == http.MethodHead && rc != nil {
			rc.RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// NotFound answers requests for addresses that do not exist. Root routers use it too.
func (pl *Pipeline) NotFound(w http.ResponseWriter, r *http.Request) {
	_, r = middleware.Ensure(r)
	pl.Problem(r.Context(), errNoRoute).Write(w)
}

// MethodNotAllowed answers requests whose method the address does not accept. Root routers use it
// too.
func (pl *Pipeline) MethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	_, r = middleware.Ensure(r)
	path := r.URL.Path
	if rc := chi.RouteContext(r.Context()); rc != nil && rc.RoutePath != "" {
		path = rc.RoutePath
	}
	// A root router checks the method before it finds the mounted handler.
	path = strings.TrimPrefix(path, "/api/v1")
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if pl.mux.Match(chi.NewRouteContext(), m, path) {
			allowed = append(allowed, m)
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	pl.Problem(r.Context(), errMethod).Write(w)
}

// Register adds the operation of a route. Errors of do are turned into problems.
func Register[I, O any](pl *Pipeline, r Route, do func(context.Context, *I) (*O, error)) {
	pl.list(r, reflect.TypeFor[I](), reflect.TypeFor[O]())
	huma.Register(pl.huma, pl.operation(r), func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, pl.Problem(ctx, err)
		}
		return out, nil
	})
}

// Schemas returns the schemas of the document.
func (pl *Pipeline) Schemas() huma.Registry { return pl.huma.OpenAPI().Components.Schemas }

// Routes returns the routes of the operations.
func (pl *Pipeline) Routes() chi.Routes { return pl.mux }
