package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"dropbell/adapters/postgres"
	"dropbell/adapters/postgres/access"
	"dropbell/adapters/redis"
	"dropbell/adapters/telemetry"
	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/reminder"
	"dropbell/migrations"
	"dropbell/web/api"
	"dropbell/web/console"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// handler puts everything on one address: operations, API and console.
func (p *program) handler(ctx context.Context) (http.Handler, error) {
	p.budgets = middleware.NewBudgetMetrics(p.registry)
	p.security = security.New(access.NewAudit(p.db), p.log, clock, p.registry)
	apiHandler, err := p.api(ctx)
	if err != nil {
		return nil, err
	}
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_inbox_streams", Help: "Connected inbox clients."},
			func() float64 { return float64(p.hub.Streams()) }))
	p.poolMetrics()
	options := middleware.Options{Log: p.log, Metrics: middleware.NewMetrics(p.registry), TrustedProxies: p.cfg.TrustedProxies,
		Encrypted: strings.HasPrefix(p.cfg.PublicURL, "https://")}
	if p.tracing != nil {
		options.Trace = p.tracing.Request
	}
	r := chi.NewRouter()
	r.Use(middleware.All(options, &p.draining)...)
	r.MethodNotAllowed(apiHandler.MethodNotAllowed)
	r.Get("/livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	r.Get("/readyz", p.ready)
	if p.cfg.MetricsAddr == "" {
		r.Method(http.MethodGet, "/metrics", nearby(p.cfg.MetricsToken, telemetry.Metrics(p.registry, p.cfg.MetricsToken)))
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

// Sign-in is slowed down after a handful of attempts per network. Passwords of
// one account can be guessed at less than 170 times a day from one network, and
// less than 1,600 times from all together.
const (
	signInBurst  = 5
	signInEvery  = 10 * time.Second
	guessesBurst = 20
	guessesEvery = 10 * time.Minute
	allBurst     = 100
	allEvery     = time.Minute
)

func (p *program) newConsole() *console.Console {
	deps := console.Deps{
		Staff: p.staff, Templates: p.templates, Reminders: p.reminders, Board: postgres.NewBoards(p.db),
		Users: postgres.NewUsers(p.db), Audit: access.NewAudit(p.db), Shops: postgres.NewTemplates(p.db),
		Settings: postgres.NewChannels(p.db), DeadMessages: postgres.NewDeadMessages(p.db), Channels: p.channels,
		Sessions: access.NewSessions(p.db), Throttle: console.NewThrottle(signInBurst, signInEvery, clock),
		Guesses: console.NewThrottle(guessesBurst, guessesEvery, clock), AllGuesses: console.NewThrottle(allBurst, allEvery, clock),
		DeadLetters: p.deadLetters, Explainer: p.explainer, Campaigns: p.campaignService(),
		Codes:         p.codes,
		Forecaster:    &reminder.Forecaster{Store: postgres.NewForecasts(p.db), Now: clock},
		Announcements: &reminder.Announcements{Store: postgres.NewAnnouncements(p.db), Now: clock},
		Sales:         postgres.NewLedgers(p.db),
		Receipts:      &reminder.Receipts{Store: postgres.NewBoards(p.db)},
		Stock:         p.whereabouts(), Paces: redis.NewShelves(p.redis),
		Jobs: &job.Service{Store: postgres.NewJobs(p.db)}, Uploads: postgres.NewUploads(p.db),
		Ledger:  &delivery.Ledger{Store: postgres.NewLedger(p.db)},
		Coupons: &coupon.Desk{Store: postgres.NewCouponSteps(p.db)}, Notices: postgres.NewNotices(p.db),
		Tallies: postgres.NewCouponTallies(p.db), Grants: p.grants(),
		Security: p.security,
		Monitor:  p.monitor.Handler, PublicURL: p.cfg.PublicURL, DefaultZone: time.UTC, Now: clock, Log: p.log,
	}
	p.wireCockpit(&deps)
	p.wireLists(&deps)
	p.wireSingleSignOn(&deps)
	deps.People, deps.Segments, deps.Tables = p.users, p.segments(), p.tables()
	deps.Letters = &campaign.Letters{Store: postgres.NewCampaigns(p.db)}
	return console.New(deps)
}

func (p *program) api(ctx context.Context) (*api.API, error) {
	var tokens *api.Tokens
	if p.cfg.JWTSecret != "" || p.cfg.JWKSURL != "" {
		var err error
		if tokens, err = api.NewTokens(ctx, api.TokenOptions{Secret: p.cfg.JWTSecret, JWKSURL: p.cfg.JWKSURL,
			Issuer: p.cfg.JWTIssuer, Audience: p.cfg.JWTAud, MaxAge: p.cfg.JWTMaxAge, Now: clock, Log: p.log}); err != nil {
			return nil, err
		}
	}
	keys := postgres.NewIdempotency(p.db)
	p.closers = append(p.closers, func() error { keys.Close(); return nil })
	return api.New(api.Deps{
		Explainer: p.explainer, DeadLetters: p.deadLetters, Campaigns: p.campaignService(), Coupons: p.coupons(),
		Codes: p.codes, Redeemer: p.redeemer, Security: p.security,
		Claims: p.claims.service, Ledgers: p.ledgers(), Stock: p.whereabouts(), Tallies: postgres.NewCouponTallies(p.db),
		CouponDesk: &coupon.Desk{Store: postgres.NewCouponSteps(p.db)},
		Grants:     p.grants(),
		Reminders:  p.reminders, Templates: p.templates, Users: p.users, Board: postgres.NewBoards(p.db),
		Segments: p.segments(), Jobs: &job.Service{Store: postgres.NewJobs(p.db)}, Uploads: postgres.NewUploads(p.db),
		Shops: postgres.NewTemplates(p.db), Keys: access.NewStaff(p.db), Tokens: tokens,
		Idempotency: keys, Hub: p.hub, Channels: p.channels, Now: clock, Log: p.log,
		RequestTimeout: p.cfg.RequestTimeout, Budget: middleware.NewBudget(p.cfg.InFlight(), "users", p.budgets),
		StaffBudget: middleware.NewBudget(staffInFlight, "staff", p.budgets),
		UserLimit:   p.cfg.RatePerUser, KeyLimit: p.cfg.RatePerKey, PublicURL: p.cfg.PublicURL,
	}), nil
}

// ready says which dependency fails, if one does.
func (p *program) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	failed := ""
	if p.draining.Load() {
		failed += "shutting down\n"
	}
	if p.db.Ping(ctx) != nil {
		failed += "postgresql does not answer\n"
	} else if err := p.schemaReady(ctx); err != nil {
		failed += err.Error() + "\n"
	} else if !p.access.Load() {
		failed += "the first admin and key are not set up yet\n"
	}
	if err := p.redis.Ping(ctx).Err(); err != nil {
		failed += redis.Trouble(err) + "\n"
	} else if err := p.bus.Health(); err != nil {
		failed += "event bus: " + err.Error() + "\n"
	}
	if failed != "" {
		http.Error(w, failed, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// schemaReady returns an error while the database lacks migrations that this
// program needs.
func (p *program) schemaReady(ctx context.Context) error {
	latest, err := migrations.Latest()
	if err != nil {
		return err
	}
	return p.db.Ready(ctx, latest)
}

// groupMetrics measures group commits.
func (p *program) groupMetrics() func(int, time.Duration) {
	size := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_group_size",
		Help: "Reservations or cancellations committed by one statement.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "dropbell_group_seconds",
		Help: "Time to commit one group.", Buckets: prometheus.ExponentialBuckets(.0005, 2, 14)})
	p.registry.MustRegister(size, took)
	return func(n int, d time.Duration) {
		size.Observe(float64(n))
		took.Observe(d.Seconds())
	}
}

// poolMetrics shows how many database connections are in use.
func (p *program) poolMetrics() {
	p.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_db_connections", Help: "Database connections in use."},
			func() float64 { used, _ := p.db.Stat(); return float64(used) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_db_connections_limit", Help: "Database connections there can be."},
			func() float64 { _, limit := p.db.Stat(); return float64(limit) }))
}
