package program

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"dropbell/adapters/argon2"
	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/passkey"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/adapters/sheet"
	"dropbell/adapters/telemetry"
	"dropbell/adapters/totp"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/cart"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/coupon/wallet"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/draw"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/inbox"
	"dropbell/domain/message"
	"dropbell/domain/pass"
	"dropbell/domain/picture"
	"dropbell/domain/redeemcode"
	"dropbell/domain/reminder"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
	apidelivery "dropbell/web/api/delivery"
	"dropbell/web/cells"
	"dropbell/web/console"
	"dropbell/web/middleware"
	"dropbell/web/pictures"
	"dropbell/web/program/wiring"
	"dropbell/web/security"
)

// program holds all parts of a web process. build fills it from top to bottom: each part uses only
// parts above it.
type program struct {
	*app.App
	// home is the program of the cell with sessions and staff; nil = this one. others are the programs
	// of the further cells, of home alone, and places says where shops are.
	home   *program
	others []*program
	places *places

	security *security.Log
	monitor  *asynq.Monitor
	bus      *watermill.Bus
	budgets  *middleware.BudgetMetrics
	// workbooks bounds the XLSX files being read at a time to one.
	workbooks *sheet.Turns

	lookup       *lookup.Templates
	codeLookup   *lookup.Codes
	openings     *reminder.Openings // of links in messages about drops
	feedback     *deliverydb.Feedback
	reservations *dropsdb.Reservations
	entries      *dropsdb.Entries
	drawKeys     app.Draws
	claims       app.Claims
	accounts     gate.Accounts

	useCases     wiring.UseCases
	surroundings wiring.Surroundings
	channels     delivery.ChangingChannels
	providers    *provider.Service
	addresses    *seal.Box // seals those of chat groups
	claiming     *claim.Service
	waitlist     *waitlist.Service
	coupons      *coupon.Service
	cartOrders   *cart.Orders
	pictures     *picture.Service
	hooks        *hook.Service
	passes       *wallet.Service
	passKeys     pass.Keys // of passes for protected drops
	signs        *couponsdb.Signs
	// channelNames is nil without Live Activities.
	channelNames *lookup.Channels
	redeemer     *redeemcode.Redeemer
	staff        *staff.Service

	hub       *apidelivery.Hub
	console   *console.Console
	processes *app.Processes
	// limiters are shared with the other web processes.
	limiters map[string]*middleware.Limiter
	// lists are the operations of the API whose answers all cells have a part of.
	lists []cells.Operation

	// access is set once the first admin and the first key exist.
	access atomic.Bool
	// draining is set while the process gets ready to stop.
	draining atomic.Bool
}

// statements bounds every SQL statement of web. Pages and requests have shorter limits; work that
// takes longer belongs in jobs.
const statements = 30 * time.Second

// build connects adapters and use cases. Nothing is served yet.
func build(ctx context.Context, cfg config.Config, log *slog.Logger) (*program, error) {
	return buildWith(ctx, cfg, log, nil)
}

// buildWith builds the program of a cell whose sessions and staff are home's; nil = its own.
func buildWith(ctx context.Context, cfg config.Config, log *slog.Logger, home *program) (*program, error) {
	opened, err := app.Open(ctx, cfg, log, app.Options{Name: "web", Statements: statements, Replica: true})
	p := &program{App: opened, home: home, hub: &apidelivery.Hub{}, workbooks: sheet.NewTurns(10 * time.Second)}
	if err != nil {
		return p, err
	}
	if home != nil {
		p.Stores.Sessions = home.Stores.Sessions
	}
	for _, wire := range []func() error{p.wireStores, p.wireUseCases, p.wireWallet, p.wireLive, p.wireStaff, p.wireEvents} {
		if err := wire(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// wireStores opens the parts that hold connections, groups or caches of this process.
func (p *program) wireStores() (err error) {
	p.budgets = middleware.NewBudgetMetrics(p.Registry)
	p.security = security.New(p.Stores.Audit, p.Log, app.Clock, p.Registry)
	if p.monitor, err = asynq.NewMonitor(p.Config.RedisURL, "/monitor/queues"); err != nil {
		return err
	}
	p.OnClose(p.monitor.Close)
	if p.lookup, err = lookup.New(p.Stores.Templates, app.Clock); err != nil {
		return err
	}
	if p.codeLookup, err = lookup.NewCodes(p.Stores.Codes); err != nil {
		return err
	}
	p.reservations = dropsdb.NewReservations(p.DB, postgres.Grouping{Observe: p.groupMetrics(), Timeout: p.Config.RequestTimeout})
	p.OnClose(func() error { p.reservations.Close(); return nil })
	p.entries = dropsdb.NewEntries(p.DB, postgres.Grouping{Timeout: p.Config.RequestTimeout})
	p.OnClose(func() error { p.entries.Close(); return nil })
	if p.drawKeys, err = app.NewDraws(p.Config); err != nil {
		return config.Mistake{Err: err}
	}
	p.startOpenings()
	p.startFeedback()
	p.wireListed()
	p.claims = p.NewClaims(p.lookup, postgres.Grouping{Observe: p.claimGroupMetrics(), Timeout: p.Config.RequestTimeout},
		redisgate.Options{Observe: p.gateGroupMetrics()})
	p.accounts = gate.Accounts{Plans: p.Stores.Gates, Shards: redisgate.NewShards(p.Redis)}
	return nil
}

// newInbox returns the store of inboxes, whose texts have tracked links.
func (p *program) newInbox(texts message.Source) inbox.Store {
	store := deliverydb.NewInbox(p.DB, postgres.Grouping{Timeout: p.Config.RequestTimeout})
	p.OnClose(func() error { store.Close(); return nil })
	store.Texts, store.Track, store.TrackDrop = texts, p.campaignLinks().Addresses(p.Config.PublicURL), p.dropLinks().InMessages(p.Config.PublicURL)
	store.DrawPage = draw.Page(p.Config.PublicURL)
	return store
}

// wireUseCases makes the use cases of users and staff, by subject.
func (p *program) wireUseCases() error {
	codeKeys, err := redeemcode.ParseKeys(p.Config.CodeKeys)
	if err != nil {
		return err
	}
	p.channels.Replace(app.Configured(p.Config) | p.provided())
	if p.providers, err = p.newProviders(); err != nil {
		return err
	}
	if p.hooks, err = p.newHooks(); err != nil {
		return err
	}
	if p.pictures, err = p.newPictures(); err != nil {
		return err
	}
	texts, err := lookup.NewBooks(p.Stores.Messages)
	if err != nil {
		return err
	}
	p.passKeys = pass.NewKeys(p.Config.PassSecret)
	p.startSigns()
	p.surroundings = wiring.Surroundings{NoPasses: !p.passKeys.Enabled(), Stores: p.Stores, Now: app.Clock, Templates: refreshingStore{p.telling(p.Stores.Templates), p.lookup}, Lookup: p.lookup,
		Reservations: p.reservations, Texts: texts, Tables: p.tables(), Channels: &p.channels, Lock: redis.NewLock(p.Redis),
		Inbox:       p.newInbox(texts),
		QuietCounts: (&lookup.WaitingCounts{Count: p.Stores.Campaigns.Waiting}).Of, Stock: p.accounts, CodeKeys: codeKeys, Forecaster: p.Forecaster(),
		LinkSecret: p.Config.LinkSecret, Erased: p.Erased.Has, Draws: p.drawKeys.Check(), LocalPush: p.Config.PushPrivate, Links: p.linkCaller(), Quiet: p.Config.RehearsalQuiet,
		DropPage: p.dropLinks().Page(p.Config.PublicURL)}
	p.useCases = wiring.NewUseCases(p.surroundings)

	// Claims pass the prefilter, which answers from memory only if the gate would have to
	// give the same answer.
	answered, fromMemory := p.claimMetrics()
	prefilter := &claim.Prefilter{Gate: p.claims.Durable, Others: p.claims.Others(), Templates: p.lookup, Record: p.claims.Durable, Now: app.Clock,
		Answered: func(error) { fromMemory.Inc() },
		Admit: func(t *template.Template, by user.ID, text string) error {
			return p.passKeys.Admit(t, by, text, app.Clock())
		}}
	doors := claim.Doors{Gate: prefilter, Templates: p.lookup, Members: p.useCases.DoorMembers, Now: app.Clock, Refused: p.signs.RefusedAt}
	p.claiming = &claim.Service{Gate: count(p.claims.Living(doors), answered), Finders: []claim.Finder{p.claims.Durable, p.claims.Gate}, Owned: p.claims.Durable,
		Random: rand.Uint64, Waits: p.waits}
	p.waitlist = p.newWaitlist()
	payments := couponsdb.NewPayments(p.DB, postgres.Grouping{Observe: p.paymentGroupMetrics(), Timeout: p.Config.RequestTimeout})
	p.OnClose(func() error { payments.Close(); return nil })
	stored := p.couponStepMetrics()
	p.cartOrders = &cart.Orders{Store: payments, LockFor: p.Config.LockFor, Stored: stored}
	p.coupons = &coupon.Service{Store: payments, LockFor: p.Config.LockFor, Stored: stored}
	p.redeemer = &redeemcode.Redeemer{Keys: codeKeys, Batches: p.codeLookup, Marks: redis.NewCodeMarks(p.Redis), Uses: p.Stores.Codes,
		// The prefilter is not in front of the gate for codes: a used code gets another answer than
		// a sold-out drop.
		Gate:     count(p.claims.All(), answered),
		NewID:    func(templateID int64) claim.ID { return claim.NewID(rand.Uint64(), templateID) },
		Answered: p.redemptionMetrics(), Failed: p.marksFailed()}
	return nil
}

// accessCodes binds access codes. The user's door is found anew afterwards.
func (p *program) accessCodes() *redeemcode.Access {
	return &redeemcode.Access{Codes: p.redeemer, Store: p.Stores.Codes, Templates: p.lookup, Bound: p.useCases.DoorMembers.Forget}
}

// wireStaff makes the use cases around staff, passwords and second factors.
func (p *program) wireStaff() error {
	codes, err := totp.New(p.Config.SecondFactorKeys...)
	if err != nil {
		return err
	}
	members := p.Stores.Staff
	if p.home != nil {
		members = p.home.Stores.Staff
	}
	p.staff = &staff.Service{Store: members, Passwords: argon2.New(2), Codes: codes, Passkeys: passkey.Passkeys{},
		FixedPolicy: staff.Policy(p.Config.SecondFactor), PasswordsOff: p.Config.PasswordsOff, Now: app.Clock}
	return nil
}

// wireEvents keeps this process's caches and its connected clients up to date. A missed event costs
// a second of staleness, or one read of the inbox.
func (p *program) wireEvents() (err error) {
	p.bus, err = watermill.NewBus(watermill.BusConfig{RedisURL: p.Config.RedisURL, Logger: p.Log, Consumer: "web-" + uuid.NewString(),
		Trace: p.Tracing.Event})
	if err != nil {
		return err
	}
	p.OnClose(p.bus.Close)
	p.bus.Listen("gate", event.GateRefilled, app.Decoded(func(_ context.Context, _ string, e event.Gate) error {
		p.claims.Gate.Forget(e.TemplateID)
		return nil
	}))
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateChanged,
		event.TemplateClosed, event.TemplateCancelled} {
		p.bus.Listen("template-cache", topic, app.Decoded(func(_ context.Context, _ string, e event.Template) error {
			p.lookup.Forget(e.TemplateID)
			return nil
		}))
	}
	p.bus.Listen("code-cache", event.CodesChanged, app.Decoded(func(_ context.Context, _ string, e event.Codes) error {
		p.codeLookup.Forget(e.BatchID)
		return nil
	}))
	p.bus.Listen("sold-out", event.CouponsIssued, app.Decoded(p.soldOut))
	p.bus.Listen("inbox-push", event.BatchFinished, app.Decoded(func(ctx context.Context, _ string, e event.Batch) error {
		f := inbox.Finished{BatchID: e.BatchID, Channel: delivery.Channel(e.Channel), Kind: delivery.Kind(e.Kind), From: user.ID(e.FromUser), To: user.ID(e.ToUser)}
		return p.useCases.Inbox.Push(ctx, f, p.hub)
	}))
	return nil
}

// handler puts everything on one address: operations, API and console.
func (p *program) handler(ctx context.Context) (http.Handler, error) {
	apiHandler, err := p.newAPI(ctx)
	if err != nil {
		return nil, err
	}
	p.limiters, p.lists = apiHandler.Limiters(), apiHandler.Lists()
	p.processes = p.NewProcesses("web", 0, "api")
	p.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_inbox_streams", Help: "Connected inbox clients."},
			func() float64 { return float64(p.hub.Streams()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dropbell_cell_silent", Help: "1 while no request reaches this cell."}, p.silent))
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
	p.mountShop(r, apiHandler)
	r.Get("/openapi.json", apiHandler.ServeOpenAPI)
	p.mountLinks(r)
	p.mountWallet(r)
	r.Handle(picture.Prefix+"/*", pictures.Handler{Files: p.pictures.Files, Log: p.Log})
	if err := p.mountCallbacks(r); err != nil {
		return nil, err
	}
	p.console = p.newConsole(apiHandler)
	bound := middleware.Bound(middleware.NewBudget(staffInFlight, "console", p.budgets), isStream, busy)
	r.With(receivedForms(), bound, middleware.Compress()).Mount("/", p.console)
	return r, nil
}
