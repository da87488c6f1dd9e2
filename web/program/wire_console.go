package program

import (
	"context"
	"time"

	"dropbell/adapters/oidc"
	accessdb "dropbell/adapters/postgres/access"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console"
	"dropbell/web/console/access"
	"dropbell/web/console/audience"
	"dropbell/web/console/campaigns"
	"dropbell/web/console/coupons"
	consoledelivery "dropbell/web/console/delivery"
	"dropbell/web/console/drops"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
	"dropbell/web/console/work"
)

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

// newConsole gives each subject of the console what its pages stand on.
func (p *program) newConsole() *console.Console {
	templates, audit, channels := dropsdb.NewTemplates(p.DB), accessdb.NewAudit(p.DB), deliverydb.NewChannels(p.DB)
	boards, users, campaignStore := dropsdb.NewBoards(p.DB), audiencedb.NewUsers(p.DB), campaignsdb.NewCampaigns(p.DB, audiencedb.NewSegments(p.DB))
	tallies, deadMessages := couponsdb.NewCouponTallies(p.DB), workdb.NewDeadMessages(p.DB)
	jobs, desk, campaignService := &job.Service{Store: workdb.NewJobs(p.DB)}, &coupon.Admin{Store: couponsdb.NewCouponSteps(p.DB)}, p.campaignService()
	files := &upload.Files{Uploads: workdb.NewUploads(p.DB), Tables: p.tables(), Log: p.Log}
	// What pages of several subjects show.
	states := consoledelivery.NewStates(channels, p.circuits(), p.channels)
	sales := coupons.NewSales(coupons.SalesDeps{Templates: p.templates, Stock: p.whereabouts(), Tallies: tallies, Curves: couponsdb.NewLedgers(p.DB), Paces: redisgate.NewShards(p.Redis)})
	return console.New(console.Deps{
		Deps: shell.Deps{Staff: p.staff, Security: p.security, ShopList: templates, Sessions: accessdb.NewSessions(p.DB),
			PublicURL: p.Config.PublicURL, DefaultZone: time.UTC, Now: app.Clock, Log: p.Log},
		Access: access.Deps{Staff: p.staff, Audit: audit, Shops: templates, SingleSignOn: p.singleSignOn(),
			Throttle: shell.NewThrottle(signInBurst, signInEvery, app.Clock), Guesses: shell.NewThrottle(guessesBurst, guessesEvery, app.Clock),
			AllGuesses: shell.NewThrottle(allBurst, allEvery, app.Clock)},
		Audience: audience.Deps{People: p.users, Users: users, Segments: p.segments(), Reminders: p.reminders, Inbox: p.inbox, Coupons: desk,
			Letters: &campaign.Letters{Store: campaignStore}, Jobs: jobs, Files: files, Audit: audit, Channels: p.channels},
		Campaigns: campaigns.Deps{Campaigns: campaignService, Templates: p.templates, Segments: p.segments(), Audit: audit, States: states, Channels: p.channels},
		Coupons: coupons.Deps{Templates: p.templates, Coupons: desk, Codes: p.codes, Grants: p.grants(), Jobs: jobs, Files: files,
			Notices: couponsdb.NewNotices(p.DB), Tallies: tallies, Sales: sales},
		Delivery: consoledelivery.Deps{States: states, Settings: channels, Control: &delivery.Control{Store: channels, Now: app.Clock},
			Tests:  &delivery.ChannelTests{Store: deliverydb.NewChannelTests(p.DB), Configured: p.channels},
			Ledger: &delivery.Ledger{Store: deliverydb.NewLedger(p.DB)}, DeadLetters: p.deadLetters, Templates: p.templates, Channels: p.channels},
		Drops: drops.Deps{Templates: p.templates, Bulks: &template.Bulks{Templates: p.templates, Jobs: jobs}, Jobs: jobs, Shops: templates,
			Reminders: drops.Reminders{Board: boards, Cockpits: dropsdb.NewCockpits(p.DB), Explainer: p.explainer, Receipts: &reminder.Receipts{Store: boards},
				Forecaster:    &reminder.Forecaster{Store: dropsdb.NewForecasts(p.DB), Now: app.Clock},
				Announcements: &reminder.Announcements{Store: dropsdb.NewAnnouncements(p.DB), Now: app.Clock}},
			Users: users, Audit: audit, DeadLetters: p.deadLetters, DeadMessages: deadMessages, Sales: sales,
			Limits: campaigns.Limits{Campaigns: campaignService}, States: states, Channels: p.channels},
		Work: work.Deps{Jobs: jobs, Uploads: workdb.NewUploads(p.DB), DeadMessages: deadMessages, Audit: audit, Monitor: p.monitor.Handler},
	})
}

// circuits returns the circuit breakers of the channels, which Redis keeps.
func (p *program) circuits() consoledelivery.Circuits {
	breaker := redis.NewBreaker(p.Redis, redis.BreakerConfig{})
	return func(ctx context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
		states, err := breaker.States(ctx)
		for _, s := range states {
			all[s.Channel] = delivery.Circuit{State: s.State, Failures: s.Failures, Until: s.Until, Detail: s.Detail}
			if s.HeldUntil.After(app.Clock()) {
				all[s.Channel].HeldUntil = s.HeldUntil
			}
		}
		return all, err
	}
}

// singleSignOn is the identity provider that the environment names, nil if it
// names none. Nothing is asked of it yet: one that is down keeps nobody from
// starting.
func (p *program) singleSignOn() staff.IdentityProvider {
	if p.Config.OIDCIssuer == "" {
		return nil
	}
	return oidc.New(oidc.Options{Issuer: p.Config.OIDCIssuer, ClientID: p.Config.OIDCClientID,
		ClientSecret: p.Config.OIDCClientSecret, PublicURL: p.Config.PublicURL, Now: app.Clock})
}
