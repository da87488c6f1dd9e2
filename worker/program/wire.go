package program

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
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
	"dropbell/domain/staff/alert"
	"dropbell/domain/task"
	"dropbell/domain/user/verification"
	"dropbell/worker/audience"
	"dropbell/worker/campaigns"
	"dropbell/worker/coupons"
	workerdelivery "dropbell/worker/delivery"
	"dropbell/worker/drops"
	"dropbell/worker/senders"
	"dropbell/worker/shell"
	"dropbell/worker/work"
)

const (
	leaseFor   = 8 * time.Second  // a silent worker's batch is taken over after this
	cutLease   = 10 * time.Second // a silent process's cut of an audience is taken over after this
	sweepEvery = time.Second
	drainFor   = 10 * time.Second // shutdown waits this long for running batches
)

// program is everything a worker consists of.
type program struct {
	*app.App
	// home is the program of cell 0; nil = this one. others are the programs of the further cells, of
	// home alone.
	home   *program
	others []*program

	claims     app.Claims
	draws      app.Draws
	queue      *asynq.Queue
	bus        *watermill.Bus
	servers    *asynq.Servers
	processes  *app.Processes
	alone      *redis.Alone
	pacer      *redis.Pacer
	senders    *senders.Senders
	admission  *workerdelivery.Admission
	jobs       *job.Worker
	watcher    *alert.Watcher
	hookEvents *workdb.HookEvents
	relay      *work.Relay
	workbooks  *sheet.Turns // lets one XLSX file at a time be read

	metrics *metrics
	runner  shell.Runner
	roles   shell.Roles // the joined roles of all rooms
	census  *census
	life    context.Context // ends when shutdown begins
}

// build connects adapters and use cases, in the order of this file. It starts nothing.
func build(ctx context.Context, cfg config.Config, log *slog.Logger) (*program, error) {
	opened, err := app.Open(ctx, cfg, log, app.Options{Name: "worker"})
	p := &program{App: opened, metrics: newMetrics(opened.Registry), workbooks: sheet.NewTurns(50 * time.Second)}
	if err != nil {
		return p, err
	}
	p.runner = shell.Runner{Log: p.Log, Ask: p.DB.Ask, Known: func(name string) { p.metrics.failures.WithLabelValues(name) }, Failed: p.metrics.jobFailed}
	for _, wire := range []func() error{p.wireWires, p.wireRooms} {
		if err := wire(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// wireWires opens the queue, the bus and the servers of the queue's tasks.
func (p *program) wireWires() (err error) {
	if p.queue, err = asynq.NewQueue(p.Config.RedisURL, p.Log); err != nil {
		return err
	}
	p.OnClose(p.queue.Close)
	dead := p.Stores.DeadMessages
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
	p.servers, err = asynq.NewServers(asynq.ServersConfig{RedisURL: p.Config.RedisURL, Queues: p.queues(), Logger: p.Log,
		ShutdownTimeout: drainFor, Done: p.metrics.taskDone, Trace: p.Tracing.Task})
	return err
}

// wireRooms makes the use cases of each room, and joins what the rooms do with them.
func (p *program) wireRooms() error {
	templates, err := lookup.New(p.Stores.Templates, app.Clock)
	if err != nil {
		return err
	}
	p.claims = p.NewClaims(templates, postgres.Grouping{}, redisgate.Options{})
	if p.draws, err = app.NewDraws(p.Config); err != nil {
		return config.Mistake{Err: err}
	}
	couponDeps, err := p.coupons()
	if err != nil {
		return err
	}
	dropDeps, err := p.drops()
	if err != nil {
		return err
	}
	deliveryDeps, err := p.delivery()
	if err != nil {
		return err
	}
	workDeps, err := p.work()
	if err != nil {
		return err
	}
	p.roles = shell.Join(
		drops.Roles(dropDeps),
		campaigns.Roles(campaigns.Deps{Rows: p.Stores.Campaigns, Recipes: p.recipes(templates), Registry: p.Registry,
			Launcher: &campaign.Launcher{Store: p.Stores.Campaigns, Queue: p.queue, Now: app.Clock, LeaseFor: cutLease,
				DropPage: reminder.NewLinks(p.Config.LinkSecret).Page(p.Config.PublicURL)}}),
		coupons.Roles(couponDeps),
		workerdelivery.Roles(deliveryDeps),
		audience.Roles(audience.Deps{SMS: p.serves(delivery.SMS), Queue: p.queue,
			Codes: &verification.Sender{Store: p.Stores.Verifications, Keys: verification.NewKeys(p.Config.LinkSecret), SMS: p.senders.ByChannel[delivery.SMS], Admission: p.admission}}),
		work.Roles(workDeps),
	)
	p.watcher.Watches = p.roles.Watches
	p.census = newCensus(p.roles.Counts, p.Registry)
	for _, h := range p.roles.Handlers {
		p.bus.Handle(h.Group, h.Topic, h.Do, h.Options...)
		p.metrics.deadEvents.WithLabelValues(h.Group, h.Topic) // from 0, so that alerts see the first one
	}
	for _, t := range p.roles.Tasks {
		p.servers.Handle(t.Name, p.task(t))
	}
	p.servers.Handle(task.Recount, func(ctx context.Context, _ []byte) error { return each(ctx, p.roles.Recounts) })
	return nil
}

// task returns what does a task of a room.
func (p *program) task(t shell.Task) asynq.Handler {
	if !t.Turn {
		return t.Do
	}
	return func(ctx context.Context, payload []byte) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.life, cancel)()
		if err := t.Do(ctx, payload); err != nil && p.life.Err() == nil {
			return err
		}
		return nil
	}
}

// each does all, whatever fails.
func each(ctx context.Context, all []func(context.Context) error) (err error) {
	for _, do := range all {
		err = errors.Join(err, do(ctx))
	}
	return err
}

// startRoles starts the loops of this process's roles.
func (p *program) startRoles(start func(name string, loop func(context.Context) error)) {
	of := func(r shell.Role, name string, loop func(context.Context) error) {
		if r == "" || p.has(r) {
			start(name, loop)
		}
	}
	of(shell.House, "gauges", p.runner.Every(5*time.Second, "gauges", func(ctx context.Context) error { return each(ctx, p.roles.Gauges) }))
	of(shell.House, "census", p.runner.Every(5*time.Second, "census", p.takeCensus))
	if p.sends() {
		start("providers", p.runner.Every(time.Second, "providers", p.senders.Refresh))
	}
	of(shell.Delivery, "provider calls", p.runner.Every(5*time.Second, "provider calls", p.senders.RecordCalls))
	for _, l := range p.roles.Loops {
		loop := l.Run
		if loop == nil {
			loop = p.runner.Every(l.Every, l.Name, l.Do)
		}
		of(l.Role, l.Name, loop)
	}
	var sweeps []shell.Sweep
	for _, s := range p.roles.Sweeps {
		if p.has(s.Role) {
			sweeps = append(sweeps, s)
		}
	}
	if len(sweeps) > 0 {
		start("sweeps", p.runner.Sweeps(sweepEvery, sweeps, sweepsWait))
	}
	if len(p.queues()) > 0 {
		start("task servers", p.serveTasks)
	}
}
