// Package console is the web console of the people who run drops. Pages are
// drawn by views; what they may do is decided by the use cases; this package
// reads requests, asks one use case and answers.
//
// Every page works without scripts. Where scripts run, htmx asks for parts of
// pages: the same address answers with the part alone.
package console

import (
	"context"
	"io"
	"net/http"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/inbox"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/reminder"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/console/access"
	"dropbell/web/console/shell"
)

// AuditReader reads the audit log.
type AuditReader interface {
	Records(ctx context.Context, q staff.AuditQuery) ([]staff.Record, error)
	Search(ctx context.Context, q staff.AuditQuery) (staff.AuditPage, error)
	// Actions lists every action there is a record of.
	Actions(ctx context.Context) ([]string, error)
	// Record stores an entry about something that changes nothing else.
	Record(ctx context.Context, e staff.Entry) error
}

// Shops keeps the shops.
type Shops interface {
	Shops(ctx context.Context) ([]template.Shop, error)
	// ChangeShop creates the shop or changes its name and time zone, and says
	// in the entry what it was before and is now.
	ChangeShop(ctx context.Context, shop template.Shop, e staff.Entry) error
}

// ChannelSettings keeps what operators decide about channels.
type ChannelSettings interface {
	Settings(ctx context.Context) ([delivery.Channels]delivery.Setting, error)
	Backlogs(ctx context.Context) ([]delivery.Backlog, error)
	// Providers returns how the calls of the channels' providers went lately.
	Providers(ctx context.Context) ([delivery.Channels]delivery.ProviderHealth, error)
}

// DeadMessages keeps the events that handlers gave up on.
type DeadMessages interface {
	Open(ctx context.Context, before int64, limit int) ([]staff.DeadMessage, error)
	Requeue(ctx context.Context, by staff.Actor, id int64) error
	Discard(ctx context.Context, by staff.Actor, id int64) error
}

// Uploads keeps files that jobs read.
type Uploads interface {
	Upload(ctx context.Context, id int64) (job.Upload, error)
	SaveUpload(ctx context.Context, name string, r io.Reader, limit int64, by staff.Actor) (job.Upload, error)
	// SavePreviews keeps what the page of a file shows of it.
	SavePreviews(ctx context.Context, id int64, previews []job.Preview) error
	// RemoveUpload removes a file that was refused.
	RemoveUpload(ctx context.Context, id int64) error
}

// Deps are everything the console stands on. All are required.
type Deps struct {
	shell.Deps
	Access       access.Deps
	Templates    *template.Service
	Reminders    *reminder.Service
	Inbox        *inbox.Service
	Board        reminder.BoardStore
	Users        reminder.Users
	Audit        AuditReader
	Shops        Shops
	Settings     ChannelSettings
	DeadMessages DeadMessages
	DeadLetters  *delivery.DeadLetters
	Explainer    *reminder.Explainer
	Forecaster   *reminder.Forecaster
	// Announcements are corrections and notices.
	Announcements *reminder.Announcements
	Campaigns     *campaign.Service
	Receipts      *reminder.Receipts
	Jobs          *job.Service
	Ledger        *delivery.Ledger
	Bulks         *template.Bulks
	Uploads       Uploads
	// Tables reads uploaded files.
	Tables   job.Tables
	People   *user.Service
	Letters  *campaign.Letters
	Segments *segment.Service
	Cockpits reminder.CockpitStore
	Sales    Sales
	Control  *delivery.Control
	// Stock tells where coupons are.
	Stock gate.Whereabouts
	// Paces knows how fast the claim gate gives coupons away; nil = there is none.
	Paces Paces
	Tests *delivery.ChannelTests
	// Circuits returns the circuit breakers of all channels.
	Circuits func(ctx context.Context) ([delivery.Channels]delivery.Circuit, error)
	Codes    *redeemcode.Service
	Coupons  *coupon.Desk
	Notices  NoticeCalendar
	Tallies  Tallies
	Grants   *coupon.Grants
	// Channels are those with a configured sender.
	Channels delivery.ChannelSet
	// Monitor returns the queue dashboard, which serves [MonitorPath] and
	// everything below and sets its own content security policy.
	Monitor func(writable bool) http.Handler
}

// Console serves the console.
type Console struct {
	Deps
	*shell.Shell
	decks  *shell.Hub[int64, *deck]
	sales  salesDesk
	status *shell.Recent[[delivery.Channels]delivery.ChannelStatus]
	ahead  *shell.Recent[[]reminder.ChannelForecast]
	// table lists every route except static files and the queue dashboard.
	table   []shell.Route
	handler http.Handler
}

// New returns the console. It panics if its own catalogues or assets, which
// are part of the program, cannot be read.
func New(d Deps) *Console {
	c := &Console{Deps: d, Shell: shell.New(d.Deps)}
	c.decks = shell.NewHub(c.deck, shell.Always[*deck](time.Second))
	c.status = shell.NewRecent(statusLife, c.channelStatus)
	c.ahead = shell.NewRecent(aheadLife, func(ctx context.Context) ([]reminder.ChannelForecast, error) {
		return c.Forecaster.Forecast(ctx, forecastAhead)
	})
	c.table = c.routesOfSubjects()
	c.handler = c.routes()
	return c
}

// ServeHTTP answers every address that is not the API's.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// Close ends all live streams, which would never end by themselves, and waits
// for what is still being recorded.
func (c *Console) Close() {
	c.Shell.Close()
	c.decks.Close()
}
