package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/adapters/sheet"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/redeemcode"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/api"
	"dropbell/web/console"
	"dropbell/web/middleware"
	"dropbell/web/security"
)

// program is everything a web process consists of.
type program struct {
	*app.App
	security     *security.Log
	bus          *watermill.Bus
	monitor      *asynq.Monitor
	reservations *dropsdb.Reservations
	claims       claimServices
	lookup       *lookup.Templates
	templates    *template.Service
	reminders    *reminder.Service
	inbox        *inbox.Service
	explainer    *reminder.Explainer
	deadLetters  *delivery.DeadLetters
	users        *user.Service
	staff        *staff.Service
	channels     delivery.ChannelSet
	codes        *redeemcode.Service
	codeLookup   *lookup.Codes
	redeemer     *redeemcode.Redeemer
	hub          *api.Hub
	budgets      *middleware.BudgetMetrics
	console      *console.Console
	// workbooks lets one XLSX file at a time be read.
	workbooks *sheet.Turns
	// access is set once the first admin and the first key exist.
	access atomic.Bool
	// draining is set while the process gets ready to stop.
	draining atomic.Bool
}

// run serves until ctx ends, then finishes the requests in hand and returns.
func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, log, err := app.Load("web", getenv, out)
	if err != nil {
		return err
	}
	warn(cfg, log)
	p, err := build(ctx, cfg, log)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	defer func() { _ = p.Close() }()
	return p.serve(ctx)
}

// statements bounds every statement of web: pages and requests are answered
// long before, and what takes longer is work for jobs.
const statements = 30 * time.Second

// build connects adapters and use cases. Nothing is served yet.
func build(ctx context.Context, cfg config.Config, log *slog.Logger) (*program, error) {
	stores, err := app.Open(ctx, cfg, log, app.Options{Name: "web", Statements: statements})
	p := &program{App: stores, hub: &api.Hub{}, workbooks: sheet.NewTurns(10 * time.Second)}
	if err != nil {
		return p, err
	}
	if p.monitor, err = asynq.NewMonitor(cfg.RedisURL, "/monitor/queues"); err != nil {
		return p, err
	}
	p.OnClose(p.monitor.Close)
	p.reservations = dropsdb.NewReservations(p.DB, postgres.Grouping{Observe: p.groupMetrics(), Timeout: cfg.RequestTimeout})
	p.OnClose(func() error { p.reservations.Close(); return nil })
	if err := p.useCases(); err != nil {
		return p, err
	}
	return p, p.wireBus()
}

// keeper saves templates and makes this process see the change at once;
// others learn of it from the event.
type keeper struct {
	template.Store
	cache *lookup.Templates
}

func (k keeper) Insert(ctx context.Context, c template.Change) (template.Template, error) {
	t, err := k.Store.Insert(ctx, c)
	if err == nil {
		k.cache.Forget(t.ID)
	}
	return t, err
}

func (k keeper) Save(ctx context.Context, c template.Change) (template.Template, error) {
	defer k.cache.Forget(c.Template.ID)
	return k.Store.Save(ctx, c)
}

func (p *program) useCases() (err error) {
	store := dropsdb.NewTemplates(p.DB)
	if err := p.wireClaims(); err != nil {
		return err
	}
	p.channels = configured(p.Config)
	p.templates = &template.Service{Store: keeper{p.telling(store), p.lookup}, Now: app.Clock}
	p.reminders = &reminder.Service{Store: p.reservations, Templates: p.lookup, Channels: p.channels, Now: app.Clock}
	p.inbox = &inbox.Service{Store: deliverydb.Inbox{DB: p.DB, Track: p.campaignLinks().Addresses(p.Config.PublicURL)}}
	p.explainer = &reminder.Explainer{Store: p.reservations, Coupons: couponsdb.NewCouponSteps(p.DB), Reminders: p.reminders}
	p.deadLetters = &delivery.DeadLetters{Store: deliverydb.NewDeadLetters(p.DB)}
	p.users = &user.Service{Store: audiencedb.NewUsers(p.DB)}
	if err := p.wireStaff(); err != nil {
		return err
	}
	return p.wireCodes()
}

// configured returns the channels that the workers have senders for.
func configured(cfg config.Config) delivery.ChannelSet {
	set := delivery.ChannelSetOf(delivery.App)
	for c, address := range map[delivery.Channel]string{delivery.Email: cfg.SMTPURL, delivery.SMS: cfg.SMSURL,
		delivery.WebPush: cfg.VAPIDPublicKey, delivery.Webhook: cfg.WebhookURL} {
		if address != "" {
			set |= delivery.ChannelSetOf(c)
		}
	}
	return set
}

func (p *program) wireBus() (err error) {
	p.bus, err = watermill.NewBus(watermill.BusConfig{RedisURL: p.Config.RedisURL, Logger: p.Log, Consumer: "web-" + uuid.NewString(),
		Trace: p.Tracing.Event})
	if err != nil {
		return err
	}
	p.OnClose(p.bus.Close)
	p.listen()
	return nil
}

// serve listens at once and becomes ready when the database answers.
func (p *program) serve(ctx context.Context) error {
	handler, err := p.handler(ctx)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", p.Config.HTTPAddr)
	if err != nil {
		return fmt.Errorf("HTTP_ADDR: %w", err)
	}
	stopMetrics, err := p.serveMetrics()
	if err != nil {
		_ = listener.Close()
		return err
	}
	defer stopMetrics()
	server := middleware.Server(handler, p.Log)
	background, stop := context.WithCancel(ctx)
	defer stop()
	var loops sync.WaitGroup
	loops.Go(func() { _ = p.bus.Run(background) })
	loops.Go(func() { p.security.Run(background) })
	loops.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		p.firstAccess(background, tick.C)
	})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		p.shutdown(server)
	}()
	loops.Go(func() {
		if err := p.Redis.Ping(background).Err(); err != nil && background.Err() == nil {
			p.Log.Warn("web is not ready: " + redis.Trouble(err))
		}
	})
	p.Log.Info("web is listening", "address", listener.Addr().String())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	stop()
	loops.Wait()
	p.Log.Info("web has stopped")
	return nil
}

// lameDuck is how long a stopping process goes on serving: long enough for
// load balancers to see that it is no longer ready, and for clients to be told
// to close their connections. Closing them under a client that is just
// sending would drop its request.
const lameDuck = time.Second

// shutdown ends streams, which would never end by themselves, and waits for
// the requests in hand.
func (p *program) shutdown(server *http.Server) {
	p.draining.Store(true)
	time.Sleep(lameDuck)
	p.hub.Close()
	p.console.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		p.Log.Warn("some requests did not finish in time", "error", err)
		_ = server.Close()
	}
}

// firstAccess creates the first admin and the first key as soon as the
// database answers and has its migrations. It looks whenever again says so;
// what it waits for is logged once.
func (p *program) firstAccess(ctx context.Context, again <-chan time.Time) {
	told := ""
	for {
		err := p.ensureAccess(ctx)
		p.access.Store(err == nil)
		if err == nil || ctx.Err() != nil {
			return
		}
		if err.Error() != told {
			told = err.Error()
			p.Log.Warn("web is not ready: it waits for its database", "error", err)
		}
		select {
		case <-again:
		case <-ctx.Done():
			return
		}
	}
}

func (p *program) ensureAccess(ctx context.Context) error {
	if err := p.SchemaReady(ctx); err != nil {
		return err
	}
	if p.Config.AdminEmail != "" {
		if _, err := p.staff.EnsureFirstAdmin(ctx, p.Config.AdminEmail, p.Config.AdminPassword); err != nil {
			return err
		}
	}
	if p.Config.AdminAPIKey == "" {
		return nil
	}
	_, err := p.staff.EnsureKey(ctx, p.Config.AdminAPIKey, "ADMIN_API_KEY", staff.Scopes())
	return err
}
