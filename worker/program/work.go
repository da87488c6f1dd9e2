package program

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/chat"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/push/webpush"
	"dropbell/adapters/redis"
	"dropbell/adapters/sheet"
	"dropbell/adapters/webhook"
	"dropbell/app"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/event/hook"
	"dropbell/domain/job"
	"dropbell/domain/message"
	"dropbell/domain/redeemcode"
	"dropbell/domain/seal"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/worker/work"
)

const (
	jobLease = 8 * time.Second  // a silent worker's job is taken over after this
	jobTurn  = 30 * time.Second // then another job has its turn
)

// work makes what carries the work of the other rooms.
func (p *program) work() (work.Deps, error) {
	d := work.Deps{
		Jobs:    &job.Worker{Store: p.Stores.Jobs, Queue: p.queue, Runners: p.runners(), LeaseFor: jobLease, Turn: jobTurn, Now: app.Clock, Random: rand.Float64},
		JobRows: p.Stores.Jobs, Cells: p.Stores.Cells, Figures: p.Stores.Figures(),
		House: work.House{Housekeeping: p.Stores.Housekeeping, Keep: workdb.Retention{Delivery: p.Config.RetainFor, Audit: p.Config.RetainAudit, Coupons: p.Config.RetainCoupons, Operations: p.Config.RetainOperations(),
			Idempotency: workdb.IdempotencyKeyLife, Events: 7 * 24 * time.Hour, Jobs: 30 * 24 * time.Hour, Uploads: 7 * 24 * time.Hour, Hooks: p.Config.RetainHooks}},
		Queue: p.queue, Registry: p.Registry, Log: p.Log,
	}
	box, err := seal.New(alert.SealPurpose, p.Config.ProvidersKeys...)
	if err != nil {
		return d, err
	}
	addresses := workdb.NewAlerts(p.DB, box)
	d.Seal = addresses.SealStored
	if d.Notifier, err = p.notifier(); err != nil {
		return d, err
	}
	if d.Hooks, err = p.hooks(); err != nil {
		return d, err
	}
	p.relay = work.NewRelay(p.Stores.Outbox, p.bus, redis.NewLeader(p.Redis, "relay", uuid.NewString()), d.Hooks, p.runner, p.Registry)
	p.jobs, p.watcher = d.Jobs, p.newWatcher(addresses)
	d.Relay, d.Watcher = p.relay, p.watcher
	mails := work.AlertSender{Mail: p.senders.ByChannel[delivery.Email]}
	d.Passwords = &staff.PasswordMailer{Store: p.Stores.Staff, Send: mails.SendPasswordMail, PublicURL: p.Config.PublicURL, Now: app.Clock, Off: p.Config.PasswordsOff}
	return d, nil
}

// hooks makes what tells the servers of shops.
func (p *program) hooks() (*work.Hooks, error) {
	box, err := seal.New(hook.SealPurpose, p.Config.EventsKeys...)
	if err != nil {
		return nil, err
	}
	p.hookEvents = workdb.NewHookEvents(p.DB)
	p.OnClose(func() error { p.hookEvents.Close(); return nil })
	poster := webhook.NewPoster(0, p.Config.EventsInsecure)
	p.OnClose(poster.Close)
	sending := &hook.Deliverer{Store: p.Stores.Hooks, Poster: poster, Box: box, Now: app.Clock}
	return work.NewHooks(p.hookEvents, p.Stores.Hooks, sending, p.queue, p.Registry, p.Log), nil
}

// newWatcher returns what tells staff of what needs attention.
func (p *program) newWatcher(addresses workdb.Alerts) *alert.Watcher {
	groups := chat.New(chat.Config{AllowPrivate: p.Config.AlertsPrivate, Now: app.Clock})
	p.OnClose(groups.Close)
	return &alert.Watcher{Store: addresses, Sender: work.AlertSender{Groups: groups, Mail: p.senders.ByChannel[delivery.Email]}, PublicURL: strings.TrimSuffix(p.Config.PublicURL, "/")}
}

// notifier returns the notifier that pushes alerts to members of staff in their browsers. It is
// nil if push is not configured.
func (p *program) notifier() (*alert.Notifier, error) {
	cfg := p.Config
	if cfg.VAPIDPublicKey == "" {
		return nil, nil
	}
	browsers, err := webpush.New(webpush.Config{PublicKey: cfg.VAPIDPublicKey, PrivateKey: cfg.VAPIDPrivateKey, Subject: cfg.VAPIDSubject})
	if err != nil {
		return nil, err
	}
	p.OnClose(browsers.Close)
	return &alert.Notifier{Store: p.Stores.Alerts, Pusher: work.AlertPusher{Browsers: browsers}}, nil
}

// runners work off the jobs, by kind.
func (p *program) runners() map[string]job.Runner {
	codeKeys, _ := redeemcode.ParseKeys(p.Config.CodeKeys) // config has checked them
	segments, grants, tables := p.Stores.Segments, p.Stores.Grants, p.tables(sheet.Limits{})
	importer := &user.Importer{Store: p.Stores.Users, Tables: tables, Now: app.Clock}
	templates := &template.Service{Store: p.Stores.Templates, Now: app.Clock, Texts: message.Stored{Store: p.Stores.Messages}, Draws: p.draws.Check()}
	templates.Ready = (&door.Service{Store: p.Stores.Templates, Templates: templates, Members: p.Stores.Doors, Segments: segments, Now: app.Clock}).Ready
	return map[string]job.Runner{
		template.BulkKind:   &template.Bulks{Templates: templates},
		segment.CountJob:    &segment.Counter{Store: segments, Now: app.Clock},
		segment.ListJob:     &segment.Filler{Store: segments, Tables: tables, Now: app.Clock},
		user.CheckJob:       importer,
		user.ImportJob:      importer,
		redeemcode.JobKind:  &redeemcode.Generator{Store: p.Stores.Codes, Keys: codeKeys},
		coupon.GrantKind:    &coupon.Granter{Admin: &coupon.Admin{Store: p.Stores.CouponSteps}, Store: grants, Lists: sheet.Lists{Tables: p.tables(sheet.Limits{Rows: 2 * coupon.MaxGrants})}, Gate: p.claims.All(), Random: rand.Uint64},
		coupon.TakeBackKind: &coupon.TakeBacker{Store: grants, Desk: &coupon.Admin{Store: p.Stores.CouponSteps}},
	}
}

// tables reads uploaded files, one workbook at a time.
func (p *program) tables(l sheet.Limits) sheet.Tables {
	return sheet.Tables{Open: p.Stores.Uploads.OpenUpload, Limits: l, Turns: p.workbooks}
}
