package program

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/app"
	"dropbell/domain/cart"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/staff"
	"dropbell/web/api"
	"dropbell/web/api/coupons"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
)

// worlds serves requests with keys of rehearsals from the world of the last rehearsal that is there: its claims, coupons and orders.
// Such a key reaches nothing else. All other requests are served by api.
type worlds struct {
	*program
	api *api.API

	mu      sync.Mutex
	current *served
}

// served is a world with the API on it.
type served struct {
	world *app.World
	api   *api.API
	close []func()
}

// rehearsedPaths are the resources of a rehearsal, by the beginnings of their paths.
var rehearsedPaths = []string{"/claims", "/coupons", "/orders"}

// rehearsed reports whether the path below the API is one of a rehearsal. Passes of wallets and reviews are not.
func rehearsed(path string) bool {
	path = strings.TrimPrefix(path, apiBase)
	part := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if len(part) > 2 && slices.Contains([]string{"pass", "pass.pkpass", "review", "appeal"}, part[2]) {
		return false
	}
	return slices.Contains(rehearsedPaths, "/"+part[0])
}

func (w *worlds) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	_, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !staff.IsTestSecret(strings.TrimSpace(secret)) {
		w.api.ServeHTTP(out, r)
		return
	}
	if !rehearsed(r.URL.Path) {
		w.api.NotFound(out, r)
		return
	}
	s, err := w.open(r.Context())
	if err != nil {
		w.Log.Warn("the world of a rehearsal cannot be opened", "error", err)
	}
	if s == nil {
		w.api.NotFound(out, r)
		return
	}
	s.api.ServeHTTP(out, r)
}

// open returns the world of the last rehearsal; nil = there is none.
func (w *worlds) open(ctx context.Context) (*served, error) {
	r, ok, err := w.Stores.Rehearsals.Open(ctx, nil)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil && (!ok || w.current.world.ID != r.ID) {
		w.current.end()
		w.current = nil
	}
	if !ok || w.current != nil {
		return w.current, nil
	}
	world, err := app.OpenWorld(ctx, w.Config, w.Log, r.ID)
	if err != nil {
		return nil, err
	}
	if w.current, err = w.serve(world); err != nil {
		world.Close()
	}
	return w.current, err
}

// serve makes the API of a world.
func (w *worlds) serve(world *app.World) (*served, error) {
	templates, err := lookup.New(world.Stores.Templates, app.Clock)
	if err != nil {
		return nil, err
	}
	claims, err := world.Claims(w.Redis, postgres.Grouping{Timeout: w.Config.RequestTimeout})
	if err != nil {
		return nil, err
	}
	payments := couponsdb.NewPayments(world.DB, postgres.Grouping{Timeout: w.Config.RequestTimeout})
	keys := workdb.NewIdempotency(world.DB)
	carts := couponsdb.NewCarts(world.DB, postgres.Grouping{Timeout: w.Config.RequestTimeout})
	stores := world.Stores
	return &served{world: world, close: []func(){keys.Close, carts.Close, payments.Close, claims.Durable.Close, world.Close},
		api: api.New(api.Deps{
			Deps: pipeline.Deps{Keys: w.Stores.Staff, Idempotency: keys, Now: app.Clock, Log: w.Log, RequestTimeout: w.Config.RequestTimeout, Rehearsed: true,
				Budget: middleware.NewBudget(rehearsedInFlight, "rehearsals", nil), KeyLimit: w.Config.RatePerKey, PublicURL: w.Config.PublicURL},
			Coupons: coupons.Deps{Claims: &claim.Service{Gate: claims.Doors, Finders: []claim.Finder{claims.Durable, claims.Redis}, Owned: claims.Durable, Random: rand.Uint64},
				Coupons: &coupon.Service{Store: payments, LockFor: w.Config.LockFor}, CouponAdmin: &coupon.Admin{Store: stores.CouponSteps}, Orders: &coupon.Orders{Store: stores.Orders, Now: app.Clock},
				Carts: &cart.Service{Store: carts, Templates: templates}, CartOrders: &cart.Orders{Store: payments, LockFor: w.Config.LockFor}},
		})}, nil
}

// rehearsedInFlight is how many requests of rehearsals are served at a time.
const rehearsedInFlight = 64

func (s *served) end() {
	for _, end := range s.close {
		end()
	}
}

// Close closes the world that is open.
func (w *worlds) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil {
		w.current.end()
		w.current = nil
	}
	return nil
}
