// Package wiring makes the use cases of staff and the console from the stores of a database. The
// program web and the fixture of the console's tests use it, so that a test has the use cases that
// the program has.
package wiring

import (
	"context"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/app"
	"dropbell/domain/budget"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/draw"
	"dropbell/domain/flight"
	"dropbell/domain/forecast"
	"dropbell/domain/inbox"
	"dropbell/domain/job"
	"dropbell/domain/message"
	"dropbell/domain/recipe"
	"dropbell/domain/redeemcode"
	"dropbell/domain/rehearsal"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/review"
	"dropbell/domain/segment"
	"dropbell/domain/series"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Surroundings are what the use cases need besides the stores.
type Surroundings struct {
	Stores app.Stores
	Now    func() time.Time
	// Templates stores templates and tells this process of changes. Lookup finds templates, perhaps
	// in a cache.
	Templates template.Store
	Lookup    campaign.Templates
	// Reservations is closed by the caller.
	Reservations *dropsdb.Reservations
	Inbox        inbox.Store
	Texts        message.Source
	Tables       job.Tables
	Channels     delivery.Available
	// Lock admits one of several equal campaigns. QuietCounts is [campaign.Service.QuietCounts].
	Lock        campaign.Lock
	QuietCounts func(ctx context.Context, id int64) (campaign.Waiting, error)
	Stock       gate.Accounts
	CodeKeys    *redeemcode.Keyring
	Forecaster  *forecast.Forecaster
	// Links calls the links of messages; nil = flight checks call none.
	Links flight.Caller
	// Quiet is [rehearsal.Service.Quiet].
	Quiet time.Duration
	// LinkSecret signs the links to reports.
	LinkSecret string
	// NoPasses says that no passes can be issued; see [template.Service.NoPasses].
	NoPasses bool
	// DropPage is the page of a drop without a claim address.
	DropPage campaign.DropPage
	// LocalPush accepts push services of browsers on this machine, for tests.
	LocalPush bool
	// Draws is [template.Service.Draws].
	Draws func(template.Opening) error
	// Erased reports whether a user was erased; nil = no user was.
	Erased func(user.ID) bool
}

// UseCases are the use cases of staff, and those of users that staff see too.
type UseCases struct {
	Reviews     *review.Service
	Jobs        *job.Service
	Templates   *template.Service
	Models      template.Models
	Series      *series.Service
	Doors       *door.Service
	Flight      *flight.Service
	Rehearsals  *rehearsal.Service
	Dresses     *rehearsal.Dresses
	DoorMembers *door.Members
	Reminders   *reminder.Service
	Explainer   *reminder.Explainer
	Draws       *draw.Desk
	Inbox       *inbox.Service
	DeadLetters *delivery.DeadLetters
	Messages    *message.Service
	Reports     *report.Service
	Budgets     *budget.Service
	Users       *user.Service
	Segments    *segment.Service
	Approvals   *approval.Service
	Campaigns   *campaign.Service
	Recipes     *recipe.Service
	Coupons     *coupon.Admin
	Grants      *coupon.Grants
	Codes       *redeemcode.Service
}

// NewUseCases makes the use cases, by subject.
func NewUseCases(s Surroundings) (u UseCases) {
	stores := s.Stores
	u.Jobs = &job.Service{Store: stores.Jobs}

	// Drops and delivery.
	u.Templates = &template.Service{Store: s.Templates, Now: s.Now, Texts: s.Texts, NoPasses: s.NoPasses, Draws: s.Draws}
	u.Doors = NewDoors(stores, u.Templates, s.Now)
	u.Templates.Ready = u.Doors.Ready
	u.Flight = app.NewFlight(stores, app.Flight{Doors: u.Doors, Forecaster: s.Forecaster, Texts: s.Texts, Links: s.Links, Now: s.Now,
		Channels: func(context.Context) (delivery.ChannelSet, error) { return s.Channels.Set(), nil }})
	u.Templates.Flight = u.Flight.Publishable
	u.Rehearsals = &rehearsal.Service{Store: stores.Rehearsals, Templates: u.Templates, Quiet: s.Quiet, Now: s.Now}
	u.Dresses = &rehearsal.Dresses{Doors: u.Doors, Guests: stores.Rehearsals, Lists: stores.Segments}
	u.Models = template.Models{Store: stores.Models, Templates: u.Templates}
	u.Series = &series.Service{Store: stores.Series, Models: u.Models, Templates: u.Templates, Now: s.Now}
	u.Draws = &draw.Desk{Store: stores.Draws, Templates: u.Templates}
	u.DoorMembers = &door.Members{Store: stores.Doors, Now: s.Now}
	u.Reminders = &reminder.Service{Store: s.Reservations, Templates: s.Lookup, Channels: s.Channels, Doors: u.DoorMembers, Erased: s.Erased, Now: s.Now}
	u.Explainer = &reminder.Explainer{Store: s.Reservations, Coupons: stores.CouponSteps, Draws: stores.Draws, Doors: stores.Doors, Reminders: u.Reminders}
	u.Inbox = &inbox.Service{Store: s.Inbox}
	u.Reviews = &review.Service{Store: stores.Reviews, Templates: s.Lookup, Now: s.Now}
	u.DeadLetters = &delivery.DeadLetters{Store: stores.DeadLetters}
	u.Messages = &message.Service{Store: stores.Messages}
	u.Reports = &report.Service{Templates: u.Templates, Reminders: stores.Cockpits, Board: stores.Boards, Stock: s.Stock,
		Tallies: stores.CouponTallies, Curves: stores.StockLedgers, Forecasts: s.Forecaster, Store: stores.Reports, Money: stores.Reports, Brakes: stores.Reviews, Draws: stores.Draws, Doors: stores.Templates,
		Signed: report.Links{Links: user.NewLinks(s.LinkSecret)}, Now: s.Now}

	// Audience and campaigns.
	u.Users = &user.Service{Store: stores.Users, AllowLocalPush: s.LocalPush}
	u.Segments = &segment.Service{Store: stores.Segments, Jobs: u.Jobs, Tables: s.Tables}
	campaigns := stores.Campaigns
	u.Approvals = &approval.Service{Store: campaigns, Publisher: campaign.Publisher{Store: campaigns, Lock: s.Lock, Templates: s.Lookup, Channels: s.Channels, Now: s.Now, DropPage: s.DropPage}}
	u.Campaigns = &campaign.Service{Store: campaigns, Approvals: u.Approvals, Templates: s.Lookup, Users: u.Users, Channels: s.Channels, Texts: s.Texts, Now: s.Now, DropPage: s.DropPage,
		Audiences: campaigns.Audiences(), QuietCounts: s.QuietCounts}
	u.Recipes = &recipe.Service{Store: stores.Recipes}
	u.Budgets = &budget.Service{Store: stores.Budgets, Templates: u.Templates, Campaigns: u.Campaigns}

	// Coupons.
	u.Coupons = &coupon.Admin{Store: stores.CouponSteps, Doors: stores.Doors}
	u.Grants = &coupon.Grants{Store: stores.Grants, Jobs: u.Jobs, Now: s.Now}
	u.Codes = &redeemcode.Service{Store: stores.Codes, Keys: s.CodeKeys, Now: s.Now}
	return u
}
