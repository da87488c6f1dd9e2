package program

import (
	"time"

	"dropbell/adapters/asynq"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redisgate"
	"dropbell/app"
	"dropbell/domain/alert"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/queue"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/testmessage"
	"dropbell/web/api"
	"dropbell/web/console"
	"dropbell/web/console/access"
	"dropbell/web/console/audience"
	"dropbell/web/console/campaigns"
	"dropbell/web/console/coupons"
	consoledelivery "dropbell/web/console/delivery"
	"dropbell/web/console/docs"
	"dropbell/web/console/drops"
	"dropbell/web/console/messages"
	"dropbell/web/console/search"
	"dropbell/web/console/shell"
	"dropbell/web/console/shell/upload"
	"dropbell/web/console/work"
)

// newConsole gives each subject of the console its dependencies.
func (p *program) newConsole(described *api.API) *console.Console {
	templates, audit, channels := p.Stores.Templates, p.Stores.Audit, p.Stores.Channels
	boards, users, campaignStore := p.Stores.Boards, p.Stores.Users, p.Stores.Campaigns
	tallies, deadMessages := p.Stores.CouponTallies, p.Stores.DeadMessages
	files := &upload.Files{Uploads: p.Stores.Uploads, Tables: p.tables(), Log: p.Log}
	alerts := &alert.Service{Store: workdb.NewAlerts(p.DB, p.addresses)}
	tests := &testmessage.ChannelTests{Store: p.Stores.ChannelTests, Configured: &p.channels, Patience: 3 * time.Second}
	// Parts that pages of several subjects show.
	states := consoledelivery.NewStates(channels, p.circuits(), &p.channels, p.completeSMS)
	sales := coupons.NewSales(coupons.SalesDeps{Templates: p.templates, Stock: p.accounts, Tallies: tallies, Curves: p.Stores.StockLedgers, Histories: p.reports, Paces: redisgate.NewShards(p.Redis)})
	return console.New(console.Deps{
		Deps: shell.Deps{Staff: p.staff, Replica: p.replica(), Security: p.security, ShopList: templates, Unread: alerts.Unread, Sessions: p.Stores.Sessions,
			PublicURL: p.Config.PublicURL, DefaultZone: time.UTC, Now: app.Clock, Log: p.Log},
		Access: access.Deps{Staff: p.staff, Audit: audit, Views: staff.Views{Store: p.Stores.Staff}, Shops: templates, SingleSignOn: p.singleSignOn(),
			Throttle: shell.NewThrottle(signInBurst, signInEvery, app.Clock), Guesses: shell.NewThrottle(guessesBurst, guessesEvery, app.Clock),
			AllGuesses: shell.NewThrottle(allBurst, allEvery, app.Clock)},
		Audience: audience.Deps{People: p.users, Users: users, Segments: p.segments, Reminders: p.reminders, Inbox: p.inbox, Coupons: p.couponAdmin,
			Letters: &campaign.Letters{Store: campaignStore}, Suppressions: p.suppressions(), Jobs: p.jobs, Files: files, Audit: audit, Channels: &p.channels, VerifiedOnly: p.Config.SMS.VerifiedOnly},
		Campaigns: campaigns.Deps{Campaigns: p.campaigns, Templates: p.templates, Segments: p.segments, Audit: audit, States: states, Channels: &p.channels,
			VerifiedOnly: p.Config.SMS.VerifiedOnly, LinkExample: p.campaignLinks().Example(p.Config.PublicURL)},
		Coupons: coupons.Deps{Templates: p.templates, Coupons: p.couponAdmin, Codes: p.codes, Grants: p.grants, Jobs: p.jobs, Files: files,
			Notices: p.Stores.Notices, Tallies: tallies, Sales: sales},
		Delivery: consoledelivery.Deps{States: states, Settings: channels, Control: &delivery.Control{Store: channels, Now: app.Clock},
			Tests:  tests,
			Ledger: &delivery.Ledger{Store: p.Stores.Deliveries}, DeadLetters: p.deadLetters, Templates: p.templates, Channels: &p.channels, Providers: p.consoleProviders(), Mail: p.mailCheck()},
		Docs: docs.Deps{API: described.Pipeline},
		Drops: drops.Deps{Templates: p.templates, Models: template.Models{Store: p.Stores.Models, Templates: p.templates}, Bulks: &template.Bulks{Templates: p.templates, Jobs: p.jobs}, Jobs: p.jobs, Shops: templates,
			Reminders: drops.Reminders{Board: boards, Figures: p.Stores.Figures(), Cockpits: p.Stores.Cockpits, Explainer: p.explainer, Receipts: &reminder.Receipts{Store: boards},
				Forecaster:    p.Forecaster(),
				TextCosts:     p.textCosts(),
				Announcements: &reminder.Announcements{Store: p.Stores.Announcements, Now: app.Clock}},
			Users: users, Audit: audit, DeadLetters: p.deadLetters, DeadMessages: deadMessages, Webhooks: p.Stores.Hooks, Sales: sales, Looks: p.messages, Setups: template.Setups{Store: p.Stores.Setups},
			Limits: campaigns.Limits{Campaigns: p.campaigns}, Reports: p.reports, States: states, Channels: &p.channels},
		Messages: messages.Deps{Messages: p.messages, Templates: p.templates, Users: p.users, Own: p.Stores.Messages, Tests: tests, Pictures: p.pictures, PublicURL: p.Config.PublicURL,
			LinkExample: p.linkExample},
		Search: search.Deps{Templates: p.templates, Campaigns: p.campaigns, Users: users, Coupons: p.couponAdmin, Codes: p.codes, Segments: p.segments},
		Work: work.Deps{Jobs: p.jobs, Alerts: alerts, Browsers: alert.Browsers{Store: p.Stores.Alerts, PublicKey: p.Config.VAPIDPublicKey}, Uploads: p.Stores.Uploads, DeadMessages: deadMessages, Hooks: p.hooks, Audit: audit, Monitor: p.monitor.Handler,
			Queues: &queue.Service{Store: asynq.NewInspector(p.Redis), Audit: audit}},
	})
}
