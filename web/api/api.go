// Package api is the public JSON API under /api/v1: what end users, the
// shop's services and automation call. It reads requests, calls one use case
// and writes the answer; it decides nothing.
package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"dropbell/adapters/postgres"
	"dropbell/domain/campaign"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/reminder"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// Shops keeps the shops that templates belong to.
type Shops interface {
	// ChangeShop creates the shop or changes its name and time zone, and says
	// in the entry what it was before and is now.
	ChangeShop(ctx context.Context, shop template.Shop, e staff.Entry) error
	Shops(ctx context.Context) ([]template.Shop, error)
}

// Ledgers accounts for stock.
type Ledgers interface {
	// Ledger recounts the template's coupons.
	Ledger(ctx context.Context, templateID int64) (claim.Ledger, error)
}

// Tallies knows what became of coupons.
type Tallies interface {
	// Tally returns what has become of the template's coupons, as far as events
	// have arrived.
	Tally(ctx context.Context, templateID int64) (coupon.Tally, error)
}

// Keys keeps service keys.
type Keys interface {
	// Key returns the key whose secret has this hash, or [staff.ErrKeyNotFound].
	Key(ctx context.Context, hash []byte) (staff.Key, error)
	// TouchKey records that the key was used now.
	TouchKey(ctx context.Context, id int64) error
}

// Uploads keeps files that jobs read; see [postgres.Uploads].
type Uploads interface {
	SaveUpload(ctx context.Context, name string, r io.Reader, limit int64, by staff.Actor) (job.Upload, error)
	// RemoveUpload removes a file that was refused.
	RemoveUpload(ctx context.Context, id int64) error
}

// Idempotency keeps answers by key; see [postgres.Idempotency].
type Idempotency interface {
	Begin(ctx context.Context, r postgres.IdempotencyRequest, lease time.Duration) (postgres.Recorded, error)
	Renew(ctx context.Context, r postgres.IdempotencyRequest, lease time.Duration) error
	Finish(ctx context.Context, r postgres.IdempotencyRequest, a postgres.Recorded) error
	Fail(ctx context.Context, r postgres.IdempotencyRequest) error
}

// Deps is everything the API needs. All fields are required but those that
// say otherwise.
type Deps struct {
	Reminders   *reminder.Service
	Inbox       *inbox.Service
	Templates   *template.Service
	Users       *user.Service
	Segments    *segment.Service
	Jobs        *job.Service
	Uploads     Uploads
	Board       reminder.BoardStore
	Explainer   *reminder.Explainer
	Coupons     *coupon.Service
	CouponDesk  *coupon.Desk
	Grants      *coupon.Grants
	DeadLetters *delivery.DeadLetters
	Campaigns   *campaign.Service
	Codes       *redeemcode.Service
	Redeemer    *redeemcode.Redeemer
	Claims      *claim.Service
	Ledgers     Ledgers
	// Stock tells where coupons are.
	Stock       gate.Accounts
	Tallies     Tallies
	Shops       Shops
	Keys        Keys
	Tokens      *Tokens // nil = no end user tokens are accepted
	Idempotency Idempotency
	Hub         *Hub
	Channels    delivery.ChannelSet
	Now         func() time.Time
	Log         *slog.Logger // nil = slog.Default()
	// UserLimit and KeyLimit are requests per minute and caller, 0 = any
	// number. Callers without credentials are counted by address, like users.
	UserLimit int
	KeyLimit  int
	// RequestTimeout is how long an end user waits at most; 0 = 2 s.
	RequestTimeout time.Duration
	// Budget bounds the requests of end users and payment that are served at a
	// time, StaffBudget those of staff; nil = without bound.
	Budget, StaffBudget *middleware.Budget
	// Security is told of refusals, of changes of access and of what service keys
	// change in the name of users; nil = of nothing.
	Security *security.Log
	// PublicURL is the address at which clients reach this server, such as
	// https://drops.example.com; empty = whatever they used.
	PublicURL string
}

// API serves everything under /api/v1. Mount it on a chi router there.
type API struct {
	Deps
	mux    *chi.Mux
	huma   huma.API
	log    *slog.Logger
	keys   *keyring
	users  *middleware.Limiter
	keyed  *middleware.Limiter
	failed *middleware.Limiter
	// guesses are redeem codes that were made up or mistyped.
	guesses, guessesFrom *middleware.Limiter

	spec []byte
}

// Limits of every request but streams.
const (
	maxBody     = 1 << 20
	bodyTimeout = 10 * time.Second
	// failuresPerMinute bounds guessing keys and tokens, per address.
	failuresPerMinute = 60
)

// New returns the API.
func New(d Deps) *API {
	a := &API{Deps: d, mux: chi.NewMux(), log: d.Log,
		users: middleware.NewLimiter(d.UserLimit), keyed: middleware.NewLimiter(d.KeyLimit),
		failed: middleware.NewLimiter(failuresPerMinute), guesses: middleware.NewLimiter(guessesPerUser),
		guessesFrom: middleware.NewLimiter(guessesPerAddress)}
	if a.log == nil {
		a.log = slog.Default()
	}
	a.keys = newKeyring(d.Keys, d.Now, a.log)
	a.mux.Use(a.head)
	a.mux.NotFound(a.NotFound)
	a.mux.MethodNotAllowed(a.MethodNotAllowed)
	a.huma = huma.NewAPI(config(d.PublicURL), adapter{a})
	a.reservationRoutes()
	a.templateRoutes()
	a.inboxRoutes()
	a.preferenceRoutes()
	a.adminTemplateRoutes()
	a.adminUserRoutes()
	a.eraseRoute()
	a.segmentRoutes()
	a.jobRoutes()
	a.adminShopRoutes()
	a.explainRoutes()
	a.couponRoutes()
	a.adminCouponRoutes()
	a.deadLetterRoutes()
	a.adminCampaignRoutes()
	a.adminCodeRoutes()
	a.redemptionRoutes()
	a.claimRoutes()
	a.finishDocument()
	return a
}

// ServeHTTP answers a request below the mount point.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// head serves HEAD like GET. The middleware of chi asks the root router, which
// takes every method of what is mounted.
func (a *API) head(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rc := chi.RouteContext(r.Context()); r.Method == http.MethodHead && rc != nil {
			rc.RouteMethod = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// NotFound answers requests for addresses that do not exist; for root routers
// as well.
func (a *API) NotFound(w http.ResponseWriter, r *http.Request) {
	_, r = middleware.Ensure(r)
	a.problem(r.Context(), errNoRoute).write(w)
}

// MethodNotAllowed answers requests with a method that an address does not
// take; for root routers as well.
func (a *API) MethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	_, r = middleware.Ensure(r)
	path := r.URL.Path
	if rc := chi.RouteContext(r.Context()); rc != nil && rc.RoutePath != "" {
		path = rc.RoutePath
	}
	// Root routers ask for unknown methods before they find what is mounted.
	path = strings.TrimPrefix(path, "/api/v1")
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if a.mux.Match(chi.NewRouteContext(), m, path) {
			allowed = append(allowed, m)
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	a.problem(r.Context(), errMethod).write(w)
}

// register adds an operation whose errors are turned into problems.
func register[I, O any](a *API, op huma.Operation, do func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return out, nil
	})
}
