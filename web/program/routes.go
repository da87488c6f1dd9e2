package program

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	accessdb "dropbell/adapters/postgres/access"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/telemetry"
	"dropbell/app"
	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// handler puts everything on one address: operations, API and console.
func (p *program) handler(ctx context.Context) (http.Handler, error) {
	p.budgets = middleware.NewBudgetMetrics(p.Registry)
	p.security = security.New(accessdb.NewAudit(p.DB), p.Log, app.Clock, p.Registry)
	apiHandler, err := p.api(ctx)
	if err != nil {
		return nil, err
	}
	p.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_inbox_streams", Help: "Connected inbox clients."},
			func() float64 { return float64(p.hub.Streams()) }))
	options := middleware.Options{Log: p.Log, Metrics: middleware.NewMetrics(p.Registry), TrustedProxies: p.Config.TrustedProxies,
		Encrypted: strings.HasPrefix(p.Config.PublicURL, "https://")}
	if p.Tracing != nil {
		options.Trace = p.Tracing.Request
	}
	r := chi.NewRouter()
	r.Use(middleware.All(options, &p.draining)...)
	r.MethodNotAllowed(apiHandler.MethodNotAllowed)
	r.Get("/livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	r.Get("/readyz", p.ready)
	if p.Config.MetricsAddr == "" {
		r.Method(http.MethodGet, "/metrics", nearby(p.Config.MetricsToken, telemetry.Metrics(p.Registry, p.Config.MetricsToken)))
	} else {
		r.Get("/metrics", http.NotFound)
	}
	r.Get("/.well-known/security.txt", p.securityText)
	r.Mount("/api/v1", apiHandler)
	r.Get("/openapi.json", apiHandler.ServeOpenAPI)
	r.Method(http.MethodGet, "/docs", apiHandler.Docs())
	r.Method(http.MethodGet, "/docs/*", apiHandler.Docs())
	p.mountLinks(r)
	p.console = p.newConsole()
	bound := middleware.Bound(middleware.NewBudget(staffInFlight, "console", p.budgets), isStream, busy)
	r.With(bound, middleware.Compress()).Mount("/", p.console)
	return r, nil
}

// staffInFlight is how many requests of staff, in the console and by the API
// each, are served at a time. They are counted apart from those of end users,
// of whom there are many more.
const staffInFlight = 256

// isStream reports whether the request of the console lasts as long as a page
// is open.
func isStream(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/live") }

func busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests are being served; try again", http.StatusServiceUnavailable)
}

func (p *program) api(ctx context.Context) (*api.API, error) {
	var tokens *pipeline.Tokens
	if p.Config.JWTSecret != "" || p.Config.JWKSURL != "" {
		var err error
		if tokens, err = pipeline.NewTokens(ctx, pipeline.TokenOptions{Secret: p.Config.JWTSecret, JWKSURL: p.Config.JWKSURL,
			Issuer: p.Config.JWTIssuer, Audience: p.Config.JWTAud, MaxAge: p.Config.JWTMaxAge, Now: app.Clock, Log: p.Log}); err != nil {
			return nil, err
		}
	}
	keys := workdb.NewIdempotency(p.DB)
	p.OnClose(func() error { keys.Close(); return nil })
	return api.New(api.Deps{
		Deps: pipeline.Deps{Keys: accessdb.NewStaff(p.DB), Tokens: tokens, Idempotency: keys, Security: p.security,
			Now: app.Clock, Log: p.Log, RequestTimeout: p.Config.RequestTimeout,
			Budget: middleware.NewBudget(p.Config.InFlight(), "users", p.budgets), StaffBudget: middleware.NewBudget(staffInFlight, "staff", p.budgets),
			UserLimit: p.Config.RatePerUser, KeyLimit: p.Config.RatePerKey, PublicURL: p.Config.PublicURL},
		Explainer: p.explainer, DeadLetters: p.deadLetters, Campaigns: p.campaignService(), Coupons: p.coupons(),
		Codes: p.codes, Redeemer: p.redeemer,
		Claims: p.claims.service, Ledgers: p.ledgers(), Stock: p.whereabouts(), Tallies: couponsdb.NewCouponTallies(p.DB),
		CouponAdmin: &coupon.Admin{Store: couponsdb.NewCouponSteps(p.DB)},
		Grants:      p.grants(),
		Reminders:   p.reminders, Inbox: p.inbox, Templates: p.templates, Users: p.users, Board: dropsdb.NewBoards(p.DB),
		Segments: p.segments(), Jobs: &job.Service{Store: workdb.NewJobs(p.DB)}, Uploads: workdb.NewUploads(p.DB),
		Shops: dropsdb.NewTemplates(p.DB), Hub: p.hub, Channels: p.channels,
	}), nil
}

// waitsFor is what this program waits for beside its stores.
func (p *program) waitsFor(databaseReady bool) (reasons []string) {
	if p.draining.Load() {
		reasons = append(reasons, "shutting down")
	}
	if databaseReady && !p.access.Load() {
		reasons = append(reasons, "the first admin and key are not set up yet")
	}
	return reasons
}

// ready answers /readyz.
func (p *program) ready(w http.ResponseWriter, r *http.Request) {
	p.Ready(p.bus.Health, p.waitsFor)(w, r)
}

// groupMetrics measures group commits.
func (p *program) groupMetrics() func(int, time.Duration) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_group_size",
		Help: "Reservations or cancellations committed by one statement.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_group_seconds",
		Help: "Time to commit one group.", Buckets: prometheus.ExponentialBuckets(.0005, 2, 14)})
	p.Registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}
