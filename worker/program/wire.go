package program

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/asynq"
	"dropbell/adapters/config"
	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/adapters/sheet"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/alert"
	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/reminder"
	"dropbell/domain/seal"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/verification"
	"dropbell/worker/coupons"
	workerdelivery "dropbell/worker/delivery"
	"dropbell/worker/senders"
	"dropbell/worker/shell"
)

const (
	leaseFor       = 8 * time.Second  // a silent worker's batch is taken over after this
	watchEvery     = 10 * time.Second // the watchdog's period
	sweepEvery     = time.Second
	relayIdle      = 50 * time.Millisecond
	relayRestAfter = 5 * time.Second // for this long
	houseEvery     = 10 * time.Minute
	drainFor       = 10 * time.Second // shutdown waits this long for running batches
	// firingShare is how many database connections there are for each slot or group
	// of slots that is cut at a time: two of them read, and as many are left.
	firingShare = 4
)

// program is everything a worker consists of.
type program struct {
	*app.App
	claims     app.Claims
	queue      *asynq.Queue
	bus        *watermill.Bus
	servers    *asynq.Servers
	timers     *reminder.Timers
	template   *template.Service
	announcer  *reminder.Announcer
	campaigns  campaignsdb.Campaigns
	launcher   *campaign.Launcher
	jobs       *job.Worker
	outbox     workdb.Outbox
	metrics    *metrics
	figures    figures
	census     *census
	balances   alert.Memo
	addresses  workdb.Alerts // with those of chat groups
	codes      *verification.Sender
	notifier   *alert.Notifier // nil without keys for push
	hooks      *hooks
	activities *activities
	processes  *app.Processes
	alone      *redis.Alone
	senders    *senders.Senders
	admission  *workerdelivery.Admission
	pacer      *redis.Pacer
	workbooks  *sheet.Turns    // lets one XLSX file at a time be read
	life       context.Context // ends when shutdown begins
	roles      shell.Roles     // what the rooms do
	runner     shell.Runner
}

// build connects adapters and use cases, from top to bottom of this file. Nothing
// runs yet.
func build(ctx context.Context, cfg config.Config, log *slog.Logger) (*program, error) {
	opened, err := app.Open(ctx, cfg, log, app.Options{Name: "worker"})
	p := &program{App: opened, metrics: newMetrics(opened.Registry), workbooks: sheet.NewTurns(50 * time.Second)}
	if err != nil {
		return p, err
	}
	p.runner = shell.Runner{Log: p.Log, Ask: p.DB.Ask, Known: func(name string) { p.metrics.failures.WithLabelValues(name) }, Failed: p.metrics.jobFailed}
	for _, wire := range []func() error{p.wireWires, p.wireUseCases, p.wireEvents, p.wireTasks} {
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

// wireUseCases makes what this worker does, by subject, except delivering.
func (p *program) wireUseCases() error {
	templates, err := lookup.New(p.Stores.Templates, app.Clock)
	if err != nil {
		return err
	}
	// Work.
	p.outbox = p.Stores.Outbox
	p.outbox.Summed = slices.Sorted(maps.Keys(sums))

	// Drops.
	p.template = &template.Service{Store: p.Stores.Templates, Now: app.Clock}
	p.timers = &reminder.Timers{Store: p.Stores.Slots, Queue: p.queue, Now: app.Clock,
		LeaseFor: 10 * time.Second, WatchEvery: watchEvery, Firings: p.Config.DBConns / firingShare}
	p.announcer = &reminder.Announcer{Store: p.Stores.Announcements, Queue: p.queue, Now: app.Clock, LeaseFor: 10 * time.Second}

	// Campaigns.
	p.campaigns = p.Stores.Campaigns
	p.launcher = &campaign.Launcher{Store: p.campaigns, Wire: rangeWire{p.bus}, Queue: p.queue, Now: app.Clock, LeaseFor: cutLease}

	// Coupons.
	p.claims = p.NewClaims(templates, postgres.Grouping{}, redisgate.Options{})
	couponWork, err := p.coupons()
	if err != nil {
		return err
	}

	// Events for the servers of shops.
	if p.hooks, err = p.newHooks(); err != nil {
		return err
	}

	// Live Activities on iPhones.
	if p.activities, err = p.newActivities(); err != nil {
		return err
	}

	// Jobs of all subjects, and the census of all.
	p.jobs = &job.Worker{Store: p.Stores.Jobs, Queue: p.queue, Runners: p.runners(), LeaseFor: jobLease, Turn: jobTurn,
		Now: app.Clock, Random: rand.Float64, Failed: p.jobSetBack}
	p.figures = newFigures(p)
	// Delivery.
	deliveryWork, err := p.delivery()
	if err != nil {
		return err
	}
	box, err := seal.New(alert.SealPurpose, p.Config.ProvidersKeys...)
	if err != nil {
		return err
	}
	p.addresses = workdb.NewAlerts(p.DB, box)
	p.codes = &verification.Sender{Store: p.Stores.Verifications, Keys: verification.NewKeys(p.Config.LinkSecret), SMS: p.senders.ByChannel[delivery.SMS], Admission: p.admission}
	if p.notifier, err = p.newNotifier(); err != nil {
		return err
	}
	p.roles = shell.Join(coupons.Roles(couponWork), workerdelivery.Roles(deliveryWork))
	p.census = newCensus(p)
	return nil
}

// runners work off the jobs, by kind.
func (p *program) runners() map[string]job.Runner {
	codeKeys, _ := redeemcode.ParseKeys(p.Config.CodeKeys) // config has checked them
	segments, grants, tables := p.Stores.Segments, p.Stores.Grants, p.tables(sheet.Limits{})
	importer := &user.Importer{Store: p.Stores.Users, Tables: tables, Now: app.Clock}
	return map[string]job.Runner{
		template.BulkKind:   &template.Bulks{Templates: p.template},
		segment.CountJob:    &segment.Counter{Store: segments, Now: app.Clock},
		segment.ListJob:     &segment.Filler{Store: segments, Tables: tables, Now: app.Clock},
		user.CheckJob:       importer,
		user.ImportJob:      importer,
		redeemcode.JobKind:  &redeemcode.Generator{Store: p.Stores.Codes, Keys: codeKeys},
		coupon.GrantKind:    &coupon.Granter{Store: grants, Lists: coupons.Lists{Tables: p.tables(sheet.Limits{Rows: 2 * coupon.MaxGrants})}, Gate: p.claims.All(), Random: rand.Uint64},
		coupon.TakeBackKind: &coupon.TakeBacker{Store: grants, Desk: &coupon.Admin{Store: p.Stores.CouponSteps}},
	}
}

// wireEvents turns facts into work. Every handler is idempotent: events
// arrive at least once, and in no particular order.
func (p *program) wireEvents() error {
	// Drops.
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateClosed, event.TemplateCancelled} {
		p.bus.Handle("timers", topic, app.Decoded(func(ctx context.Context, _ string, e event.Template) error {
			return p.timers.Schedule(ctx, e.TemplateID)
		}))
	}
	p.bus.Handle("announcements", event.AnnouncementCreated, app.Decoded(func(ctx context.Context, _ string, e event.Announcement) error {
		return p.queue.Enqueue(ctx, task.Announce(e.AnnouncementID))
	}))
	counters := p.Stores.Counters
	p.bus.Handle("bookings", event.ReservationsChanged, app.Decoded(counters.Count), watermill.Parallel(2))

	// Campaigns.
	p.bus.Handle("campaigns", event.CampaignPublished, app.Decoded(func(ctx context.Context, _ string, e event.Campaign) error {
		return p.launcher.Schedule(ctx, e)
	}))
	p.bus.Handle("campaigns", event.CampaignStarted, app.Decoded(func(ctx context.Context, _ string, e event.Campaign) error {
		return p.launcher.Cut(ctx, e.CampaignID)
	}), watermill.Timeout(cutFor), watermill.Parallel(2))
	p.bus.Handle("campaigns", event.CampaignRangesCut, app.Decoded(func(ctx context.Context, _ string, r event.CampaignRanges) error {
		return p.launcher.Batches(ctx, r)
	}), watermill.Timeout(time.Minute), watermill.Parallel(rangeHandlers))
	p.bus.Handle("campaigns", event.CampaignChanged, app.Decoded(p.campaignChanged))

	// Events for the servers of shops.
	p.hooks.listen(p.bus)
	p.activities.listen(p.bus)

	for _, h := range p.roles.Handlers {
		p.bus.Handle(h.Group, h.Topic, h.Do, h.Options...)
	}

	// Delivery and jobs.
	p.listenPhones()
	p.bus.Handle("jobs", event.JobCreated, app.Decoded(func(ctx context.Context, _ string, e event.Job) error {
		return p.queue.Enqueue(ctx, task.RunJob(e.JobID))
	}))
	return nil
}

// wireTasks names what does each task of the queues.
func (p *program) wireTasks() error {
	p.servers.Handle(task.FireSlot, slotTask(p.timers.Fire))
	p.servers.Handle(task.Watch, slotTask(func(ctx context.Context, id int64) error { return p.timers.Watch(ctx, id) }))
	p.servers.Handle(task.WatchMany, shell.Decoded(p.watchTask))
	p.servers.Handle(task.Announcing, shell.Decoded(func(ctx context.Context, a task.AnnouncementPayload) error {
		return p.announcer.Cut(ctx, a.AnnouncementID)
	}))
	p.servers.Handle(task.SendCode, shell.Decoded(p.codeTask))
	p.servers.Handle(task.StartCampaign, campaignTask(p.launcher.Start))
	p.servers.Handle(task.CutCampaign, campaignTask(p.launcher.Cut))
	p.servers.Handle(task.WorkJob, shell.Decoded(p.jobTask))
	p.servers.Handle(task.SendHooks, shell.Decoded(p.hookTask))
	p.servers.Handle(task.TellLiveActivities, shell.Decoded(p.liveTask))
	for _, t := range p.roles.Tasks {
		p.servers.Handle(t.Name, p.task(t))
	}
	p.servers.Handle(task.CleanUp, func(ctx context.Context, _ []byte) error { return p.cleanUp(ctx) })
	p.servers.Handle(task.Recount, func(ctx context.Context, _ []byte) error {
		return errors.Join(p.figures.recount(ctx), each(ctx, p.roles.Recounts))
	})
	return nil
}

// startRoles starts the loops of this process's roles.
func (p *program) startRoles(start func(name string, loop func(context.Context) error)) {
	of := func(r shell.Role, name string, loop func(context.Context) error) {
		if p.has(r) {
			start(name, loop)
		}
	}
	watcher := p.newWatcher()
	of(shell.Events, "event bus", p.bus.Run)
	of(shell.Events, "outbox relay", p.relay)
	of(shell.House, "housekeeping", p.runner.Every(houseEvery, "housekeeping", p.scheduleHouse))
	of(shell.House, "gauges", p.runner.Every(5*time.Second, "gauges", p.gauge))
	of(shell.House, "census", p.runner.Every(5*time.Second, "census", p.takeCensus))
	of(shell.House, "alerts", p.runner.Every(alertsEvery, "alerts", watcher.Look))
	of(shell.House, "campaign results", p.runner.Every(resultsEvery, "campaign results", p.countResults))
	if p.sends() {
		start("providers", p.runner.Every(time.Second, "providers", p.senders.Refresh))
	}
	of(shell.Delivery, "provider calls", p.runner.Every(5*time.Second, "provider calls", p.senders.RecordCalls))
	for _, l := range p.roles.Loops {
		of(l.Role, l.Name, p.runner.Every(l.Every, l.Name, l.Do))
	}
	if list := p.sweeps(watcher); len(list) > 0 {
		start("sweeps", p.runner.Sweeps(sweepEvery, list, sweepsWait))
	}
	if len(p.queues()) > 0 {
		start("task servers", p.serveTasks)
	}
}

// tables reads uploaded files, one workbook at a time.
func (p *program) tables(l sheet.Limits) sheet.Tables {
	return sheet.Tables{Open: p.Stores.Uploads.OpenUpload, Limits: l, Turns: p.workbooks}
}
