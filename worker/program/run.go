package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/adapters/sheet"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

const (
	leaseFor   = 8 * time.Second  // a silent worker's batch is taken over after this
	watchEvery = 10 * time.Second // the watchdog's period
	sweepEvery = time.Second
	relayIdle  = 50 * time.Millisecond
	houseEvery = 10 * time.Minute
	drainFor   = 10 * time.Second // shutdown waits this long for running batches
)

// program is everything a worker consists of.
type program struct {
	*app.App
	claims      app.Claims
	queue       *asynq.Queue
	bus         *watermill.Bus
	servers     *asynq.Servers
	timers      *reminder.Timers
	delivery    *delivery.Service
	template    *template.Service
	announcer   *reminder.Announcer
	launcher    *campaign.Launcher
	deadLetters *delivery.DeadLetters
	couponLife  *coupons
	jobs        *job.Worker
	gate        *gateWork
	outbox      workdb.Outbox
	metrics     *metrics
	census      *census
	tester      *delivery.Tester
	providers   *providerCalls
	workbooks   *sheet.Turns    // lets one XLSX file at a time be read
	life        context.Context // ends when shutdown begins
}

// run works until ctx ends, then finishes what is in hand and returns.
func run(ctx context.Context, getenv func(string) string, out io.Writer) error {
	cfg, log, err := app.Load("worker", getenv, out)
	if err != nil {
		return err
	}
	p, err := build(ctx, cfg, log)
	if err != nil {
		return errors.Join(err, p.Close())
	}
	defer func() { _ = p.Close() }()
	return p.serve(ctx)
}

// build connects adapters and use cases. Nothing runs yet.
func build(ctx context.Context, cfg config.Config, log *slog.Logger) (*program, error) {
	stores, err := app.Open(ctx, cfg, log, app.Options{Name: "worker"})
	p := &program{App: stores, metrics: newMetrics(stores.Registry), providers: &providerCalls{}, workbooks: sheet.NewTurns(50 * time.Second)}
	if err != nil {
		return p, err
	}
	if p.queue, err = asynq.NewQueue(cfg.RedisURL, log); err != nil {
		return p, err
	}
	p.OnClose(p.queue.Close)
	senders, closers, err := newSenders(cfg, p.subscriptionGone)
	p.OnClose(closers...)
	if err != nil {
		return p, err
	}
	if err := p.useCases(p.observed(senders)); err != nil {
		return p, err
	}
	if err := p.wireBus(); err != nil {
		return p, err
	}
	return p, p.wireTasks()
}

func (p *program) useCases(senders map[delivery.Channel]delivery.Sender) (err error) {
	p.outbox = workdb.NewOutbox(p.DB)
	p.census = newCensus(p)
	p.wireCockpit(senders)
	p.deadLetters = &delivery.DeadLetters{Store: deliverydb.NewDeadLetters(p.DB)}
	p.template = &template.Service{Store: dropsdb.NewTemplates(p.DB), Now: app.Clock}
	templates, err := lookup.New(dropsdb.NewTemplates(p.DB), app.Clock)
	if err != nil {
		return err
	}
	p.claims = p.NewClaims(templates, postgres.Grouping{}, redisgate.Options{})
	if p.gate, err = p.newGateWork("worker-" + uuid.NewString()); err != nil {
		return err
	}
	p.jobs = p.newJobs()
	p.couponLife = p.newCoupons()
	p.timers = &reminder.Timers{Store: dropsdb.NewSlots(p.DB, deliverydb.NewBatches(p.DB)), Queue: p.queue, Now: app.Clock,
		LeaseFor: 10 * time.Second, WatchEvery: watchEvery}
	p.announcer = &reminder.Announcer{Store: dropsdb.NewAnnouncements(p.DB), Queue: p.queue, Now: app.Clock, LeaseFor: 10 * time.Second}
	batches := deliverydb.NewGroupedBatches(p.DB)
	p.OnClose(func() error { batches.Close(); return nil })
	p.delivery = &delivery.Service{
		Store: batches, Queue: p.queue, Senders: senders, Parallel: parallelCalls(p.Config),
		Admission: newAdmission(p.DB, p.Redis, p.Log),
		Policy:    delivery.DefaultPolicy(), LeaseFor: leaseFor, Random: rand.Float64, Now: app.Clock,
		Crashed: p.senderCrashed, Observe: p.metrics.delivered, OptOutURL: p.optOutURL(), LinkURL: p.linkURL(), Guards: p.guards(),
	}
	return nil
}

func (p *program) wireBus() (err error) {
	dead := workdb.NewDeadMessages(p.DB)
	p.bus, err = watermill.NewBus(watermill.BusConfig{
		RedisURL: p.Config.RedisURL, Logger: p.Log, Consumer: "worker-" + uuid.NewString(),
		DeadMessage: func(ctx context.Context, m watermill.DeadMessage) error {
			return dead.Keep(ctx, staff.DeadMessage{MessageID: m.ID, Topic: m.Topic, Handler: m.Handler, Reason: m.Reason, Payload: m.Payload})
		},
		Metrics: watermill.Metrics{Handled: p.metrics.handled, Dead: p.metrics.deadMessage},
		Trace:   p.Tracing.Event,
	})
	if err != nil {
		return err
	}
	p.OnClose(p.bus.Close)
	p.handleEvents()
	return nil
}

// serve runs every loop until ctx ends or one of them fails for good.
func (p *program) serve(ctx context.Context) error {
	if warning, err := p.queue.CheckRedis(ctx); err != nil {
		p.Log.Warn(redis.Trouble(err)+"; going on, the database keeps what is due", "error", err)
	} else if warning != "" {
		p.Log.Warn(warning)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.life = ctx
	var loops sync.WaitGroup
	start := func(name string, loop func(context.Context) error) {
		loops.Go(func() {
			if err := loop(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	start("operations server", p.serveHTTP)
	if !p.awaitSchema(ctx) {
		loops.Wait()
		return causeOf(ctx)
	}
	p.startRoles(start)
	p.Log.Info("worker is running", "channels", p.channelNames(), "roles", p.Config.WorkerRoles)
	loops.Wait()
	if err := causeOf(ctx); err != nil {
		return err
	}
	p.Log.Info("worker has stopped")
	return nil
}

// causeOf returns why ctx ended, nil if somebody wanted that.
func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// serveTasks starts the queue's servers as soon as Redis answers and drains
// them at the end.
func (p *program) serveTasks(ctx context.Context) error {
	for {
		err := p.servers.Start()
		if err == nil {
			break
		}
		p.Log.Warn("task servers cannot start yet", "error", err)
		if !sleep(ctx, time.Second) {
			return nil
		}
	}
	<-ctx.Done()
	p.servers.Shutdown()
	return nil
}

// every returns a loop that runs job at once and then each period. Its
// failures are logged, at most one line per kind of trouble and minute.
func (p *program) every(period time.Duration, name string, job func(context.Context) error) func(context.Context) error {
	p.metrics.failures.WithLabelValues(name) // from 0, so that alerts see the first one
	return func(ctx context.Context) error {
		var lastText string
		var lastAt time.Time
		for {
			if err := job(ctx); err != nil && ctx.Err() == nil {
				p.metrics.jobFailed(name)
				if err.Error() != lastText || time.Since(lastAt) > time.Minute {
					p.Log.Error("job failed", "job", name, "error", err)
					lastText, lastAt = err.Error(), time.Now()
				}
			}
			if !sleep(ctx, period) {
				return nil
			}
		}
	}
}

// sleep returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *program) channelNames() []string {
	var names []string
	for _, c := range delivery.AllChannels() {
		if p.delivery.Senders[c] != nil && p.serves(c) {
			names = append(names, c.String())
		}
	}
	return names
}
