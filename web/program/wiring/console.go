package wiring

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/event/hook"
	"dropbell/domain/forecast"
	"dropbell/domain/picture"
	"dropbell/domain/queue"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/domain/template"
	"dropbell/domain/testmessage"
	"dropbell/domain/timeline"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
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

// A Console is what the console needs besides use cases and stores.
type Console struct {
	UseCases
	Surroundings
	// Shell has what all pages share. NewConsole sets the lists of shops and of alerts, and sessions.
	Shell shell.Deps
	// Access has the throttles of the sign-in and single sign-on. NewConsole sets everything else.
	Access access.Deps
	API    *pipeline.Pipeline // its document is shown
	Alerts *alert.Service
	Tests  *testmessage.ChannelTests
	Hooks  *hook.Service
	// Providers, Mail and TextCosts are [consoledelivery.Deps.Providers], [consoledelivery.Deps.Mail]
	// and [drops.Reminders.TextCosts].
	Providers consoledelivery.Providers
	Mail      consoledelivery.MailCheck
	TextCosts *forecast.TextCosts
	// Circuits reads the circuit breakers of the channels. Complete adds further values to the
	// states of channels; it may be nil.
	Circuits consoledelivery.Circuits
	Complete func(context.Context, *[delivery.Channels]delivery.ChannelStatus) error
	Paces    coupons.Paces // nil = there is no claim gate
	Browsers alert.Browsers
	Queues   queue.Store
	// Pictures are the shops' pictures, which messages show at PicturesURL.
	Pictures    *picture.Service
	PicturesURL string
	Monitor     func(writable bool) http.Handler
	// VerifiedOnly is whether text messages go to verified numbers alone.
	VerifiedOnly bool
	// Patience is how long a page waits for a worker that gives a coupon.
	Patience time.Duration
	// CampaignLink and DropLink are examples of tracked links; see [campaigns.Deps.LinkExample] and
	// [messages.Deps.LinkExample].
	CampaignLink string
	DropLink     func(templateID int64, to user.ID) string
}

// Deps gives each subject of the console its dependencies.
func (c Console) Deps() console.Deps {
	stores, u, channels := c.Stores, c.UseCases, c.Channels
	shops, audit := stores.Templates, stores.Audit
	files := &upload.Files{Uploads: stores.Uploads, Tables: c.Tables, Log: c.Shell.Log}
	// Parts that pages of several subjects show.
	states := consoledelivery.NewStates(stores.Channels, c.Circuits, channels, c.Complete)
	sales := coupons.NewSales(coupons.SalesDeps{Templates: u.Templates, Stock: c.Stock, Tallies: stores.CouponTallies, Curves: stores.StockLedgers, Histories: u.Reports, Doors: stores.Templates, Paces: c.Paces})

	sh := c.Shell
	sh.ShopList, sh.Unread, sh.Sessions, sh.Now = shops, c.Alerts.Unread, stores.Sessions, c.Now
	in := c.Access
	in.Staff, in.Audit, in.Views, in.Shops = sh.Staff, audit, staff.Views{Store: stores.Staff}, shops
	return console.Deps{
		Deps:   sh,
		Access: in,
		Audience: audience.Deps{Timeline: &timeline.Service{Store: stores.Users, Batches: &delivery.Ledger{Store: stores.Deliveries}, Customers: stores.Users, Purse: stores.CouponSteps}, Reports: u.Reports, People: u.Users, Users: stores.Users, Segments: u.Segments, Reminders: u.Reminders, Inbox: u.Inbox, Coupons: u.Coupons,
			Letters: &campaign.Letters{Store: stores.Campaigns}, Suppressions: &feedback.Suppressions{Store: stores.Suppressions}, Jobs: u.Jobs, Files: files, Carts: stores.CouponSteps,
			Audit: audit, Channels: channels, VerifiedOnly: c.VerifiedOnly},
		Campaigns: campaigns.Deps{Campaigns: u.Campaigns, Approvals: u.Approvals, Recipes: u.Recipes, Templates: u.Templates, Segments: u.Segments, Audit: audit, States: states, Channels: channels,
			VerifiedOnly: c.VerifiedOnly, LinkExample: c.CampaignLink},
		Coupons: coupons.Deps{Templates: u.Templates, Coupons: u.Coupons, Codes: u.Codes, Grants: u.Grants, Jobs: u.Jobs, Files: files,
			Notices: stores.Notices, Tallies: stores.CouponTallies, Sales: sales, Reviews: u.Reviews, Carts: stores.CouponSteps, Patience: c.Patience},
		Delivery: consoledelivery.Deps{States: states, Settings: stores.Channels, Control: &delivery.Control{Store: stores.Channels, Now: c.Now}, Tests: c.Tests,
			Ledger: &delivery.Ledger{Store: stores.Deliveries}, DeadLetters: u.DeadLetters, Templates: u.Templates, Channels: channels, Providers: c.Providers, Mail: c.Mail},
		Docs: docs.Deps{API: c.API},
		Drops: drops.Deps{Templates: u.Templates, Models: u.Models, Series: u.Series, Bulks: &template.Bulks{Templates: u.Templates, Jobs: u.Jobs},
			Jobs: u.Jobs, Shops: shops,
			Reminders: drops.Reminders{Board: stores.Boards, Figures: stores.Figures(), Cockpits: stores.Cockpits, Explainer: u.Explainer, Receipts: &reminder.Receipts{Store: stores.Boards},
				Forecaster: c.Forecaster, TextCosts: c.TextCosts, Announcements: &reminder.Announcements{Store: stores.Announcements, Now: c.Now}},
			Users: stores.Users, Audit: audit, DeadLetters: u.DeadLetters, DeadMessages: stores.DeadMessages, Webhooks: stores.Hooks, Sales: sales, Texts: u.Messages, Approvals: u.Approvals, Alerts: c.Alerts,
			Draws: u.Draws, Setups: template.Setups{Store: stores.Setups}, Limits: campaigns.Limits{Campaigns: u.Campaigns}, Audiences: u.Campaigns, Reports: u.Reports, Budgets: u.Budgets, Doors: u.Doors, Flight: u.Flight, Rehearsals: u.Rehearsals, Dresses: u.Dresses, Segments: u.Segments, States: states, Channels: channels},
		Messages: messages.Deps{Messages: u.Messages, Templates: u.Templates, Users: u.Users, Own: stores.Messages, Readers: u.Campaigns, Tests: c.Tests, LinkExample: c.DropLink,
			Pictures: c.Pictures, PublicURL: c.PicturesURL},
		Search: search.Deps{Templates: u.Templates, Campaigns: u.Campaigns, Users: stores.Users, Coupons: u.Coupons, Codes: u.Codes, Segments: u.Segments},
		Work: work.Deps{Jobs: u.Jobs, Alerts: c.Alerts, Browsers: c.Browsers, Uploads: stores.Uploads, DeadMessages: stores.DeadMessages, Hooks: c.Hooks, Audit: audit,
			Queues: &queue.Service{Store: c.Queues, Audit: audit}, Monitor: c.Monitor, Housekeeping: stores.Housekeeping},
	}
}
