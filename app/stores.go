package app

import (
	"dropbell/adapters/postgres"
	accessdb "dropbell/adapters/postgres/access"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	messagesdb "dropbell/adapters/postgres/messages"
	workdb "dropbell/adapters/postgres/work"
)

// Stores are the stores of one database, by subject. Stores that group requests have
// goroutines and are not here: a program opens and closes them.
type Stores struct {
	Audit    accessdb.Audit
	Sessions accessdb.Sessions
	Staff    accessdb.Staff

	Doors         audiencedb.Doors
	Segments      audiencedb.Segments
	Users         audiencedb.Users
	Verifications audiencedb.Verifications

	Campaigns campaignsdb.Campaigns
	Recipes   campaignsdb.Recipes

	Codes         couponsdb.Codes
	CouponSteps   couponsdb.CouponSteps
	CouponTallies couponsdb.CouponTallies
	GateRecorder  couponsdb.GateRecorder
	Gates         couponsdb.Gates
	Grants        couponsdb.Grants
	Notices       couponsdb.Notices
	Orders        couponsdb.Orders
	Reviews       couponsdb.Reviews
	StockLedgers  couponsdb.Ledgers
	Wallet        couponsdb.Wallet

	Batches      deliverydb.Batches
	Channels     deliverydb.Channels
	ChannelTests deliverydb.ChannelTests
	DeadLetters  deliverydb.DeadLetters
	Deliveries   deliverydb.Ledger
	Providers    deliverydb.Configured
	Serials      deliverydb.Serials
	Suppressions deliverydb.Suppressions
	WarmUps      deliverydb.WarmUps

	Announcements dropsdb.Announcements
	Boards        dropsdb.Boards
	Budgets       dropsdb.Budgets
	Cockpits      dropsdb.Cockpits
	Counters      dropsdb.Counters
	Draws         dropsdb.Draws
	Exports       dropsdb.Exports
	Flights       dropsdb.Flights
	Forecasts     dropsdb.Forecasts
	Live          dropsdb.Live
	Models        dropsdb.Models
	Openings      dropsdb.Openings
	Rehearsals    dropsdb.Rehearsals
	Reports       dropsdb.Reports
	Series        dropsdb.Series
	Setups        dropsdb.Setups
	Slots         dropsdb.Slots
	Templates     dropsdb.Templates

	Messages     messagesdb.Messages
	PictureFiles messagesdb.PictureFiles
	Pictures     messagesdb.Pictures

	// Alerts has no key: it neither seals nor reads sealed addresses.
	Alerts       workdb.Alerts
	Cells        workdb.Cells
	DeadMessages workdb.DeadMessages
	Hooks        workdb.Hooks
	Housekeeping workdb.Housekeeping
	Jobs         workdb.Jobs
	Outbox       workdb.Outbox
	Processes    workdb.Processes
	Timers       workdb.Timers
	Uploads      workdb.Uploads
}

// NewStores returns the stores of db. If db has a replica, lists, exports, estimates and
// receipts of the console's reports may be read from the replica; all other statements use
// the primary.
func NewStores(db *postgres.DB) Stores {
	segments, batches, doors := audiencedb.NewSegments(db), deliverydb.NewBatches(db), audiencedb.NewDoors(db)
	slots, announcements := dropsdb.NewSlots(db, batches), dropsdb.NewAnnouncements(db)
	exports := dropsdb.NewExports(db)
	slots.Doors, announcements.Doors, exports.Doors = doors, doors, doors
	return Stores{
		Audit: accessdb.NewAudit(db), Sessions: accessdb.NewSessions(db), Staff: accessdb.NewStaff(db),

		Doors: doors, Segments: segments, Users: audiencedb.NewUsers(db), Verifications: audiencedb.NewVerifications(db),

		Campaigns: campaignsdb.NewCampaigns(db, segments), Recipes: campaignsdb.NewRecipes(db),

		Codes: couponsdb.NewCodes(db), CouponSteps: couponsdb.NewCouponSteps(db), CouponTallies: couponsdb.NewCouponTallies(db),
		GateRecorder: couponsdb.NewGateRecorder(db), Gates: couponsdb.NewGates(db), Grants: couponsdb.NewGrants(db),
		Notices: couponsdb.NewNotices(db), Orders: couponsdb.NewOrders(db), Reviews: couponsdb.NewReviews(db), StockLedgers: couponsdb.NewLedgers(db), Wallet: couponsdb.NewWallet(db),

		Batches: batches, Channels: deliverydb.NewChannels(db), ChannelTests: deliverydb.NewChannelTests(db),
		DeadLetters: deliverydb.NewDeadLetters(db), Deliveries: deliverydb.NewLedger(db),
		Providers: deliverydb.NewConfigured(db), Serials: deliverydb.NewSerials(db), Suppressions: deliverydb.NewSuppressions(db),
		WarmUps: deliverydb.NewWarmUps(db),

		Announcements: announcements, Boards: dropsdb.NewBoards(db), Budgets: dropsdb.NewBudgets(db), Cockpits: dropsdb.NewCockpits(db),
		Counters: dropsdb.NewCounters(db), Draws: dropsdb.NewDraws(db), Exports: exports, Flights: dropsdb.NewFlights(db), Forecasts: dropsdb.NewForecasts(db), Live: dropsdb.NewLive(db), Models: dropsdb.NewModels(db),
		Openings: dropsdb.NewOpenings(db), Rehearsals: dropsdb.NewRehearsals(db), Reports: dropsdb.NewReports(db), Series: dropsdb.NewSeries(db), Setups: dropsdb.NewSetups(db),
		Slots: slots, Templates: dropsdb.NewTemplates(db),

		Messages: messagesdb.NewMessages(db), PictureFiles: messagesdb.NewPictureFiles(db), Pictures: messagesdb.NewPictures(db),

		Alerts: workdb.NewAlerts(db, nil), Cells: workdb.NewCells(db), DeadMessages: workdb.NewDeadMessages(db), Hooks: workdb.NewHooks(db),
		Housekeeping: workdb.NewHousekeeping(db), Jobs: workdb.NewJobs(db), Outbox: workdb.NewOutbox(db), Processes: workdb.NewProcesses(db), Timers: workdb.NewTimers(db),
		Uploads: workdb.NewUploads(db),
	}
}
