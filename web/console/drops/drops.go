// Package drops holds the console's pages about drops: templates and their steps,
// what was reserved, how a drop goes while it is delivered, and the shops that
// templates belong to.
package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/job"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

// Reminders are the use cases about what is sent around an opening.
type Reminders struct {
	Board         reminder.BoardStore
	Cockpits      reminder.CockpitStore
	Forecaster    *reminder.Forecaster
	Announcements *reminder.Announcements
	Explainer     *reminder.Explainer
	Receipts      *reminder.Receipts
}

// DeadMessages lists the events that handlers gave up on.
type DeadMessages interface {
	// Open returns events that nobody has dealt with, the newest first.
	Open(ctx context.Context, before int64, limit int) ([]staff.DeadMessage, error)
}

// Users finds one user.
type Users interface {
	// User returns [user.ErrNotFound] if nothing is known about the id.
	User(ctx context.Context, id user.ID) (user.User, error)
}

// Sales tell how templates sell.
type Sales interface {
	// Of returns how the template sells; nil for a draft.
	Of(ctx context.Context, t template.Template) (*droppages.Sales, error)
	// Shards returns where coupons behind a gate are; nil for a template that
	// has no gate.
	Shards(ctx context.Context, t template.Template) (*droppages.StockShards, error)
}

// Limits are what one shop may send.
type Limits interface {
	// Form is the form about the limits of the shop, whose name is shown.
	Form(r *http.Request, shop int64, name string) (droppages.ShopLimits, error)
}

// Deps are what the pages of this package stand on.
type Deps struct {
	Templates *template.Service
	Bulks     *template.Bulks
	Jobs      *job.Service
	Shops     Shops
	Reminders
	Users        Users
	Audit        shell.Records
	DeadLetters  *delivery.DeadLetters
	DeadMessages DeadMessages
	Sales        Sales
	Limits       Limits
	// States are the states of the channels.
	States *shell.ChannelStates
	// Channels are those with a configured sender.
	Channels delivery.ChannelSet
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
	// decks are the cockpits that somebody watches, by template.
	decks *shell.Hub[int64, *deck]
	ahead *shell.Recent[[]reminder.ChannelForecast]
}

func newHandlers(sh *shell.Shell, d Deps) *handlers {
	c := &handlers{Shell: sh, Deps: d}
	c.decks = shell.NewHub(c.deck, shell.Always[*deck](time.Second))
	c.ahead = shell.NewRecent(aheadLife, func(ctx context.Context) ([]reminder.ChannelForecast, error) {
		return c.Forecaster.Forecast(ctx, forecastAhead)
	})
	return c
}

// Routes returns the routes about templates, cockpits and shops, and says what
// pages show of the jobs of bulk steps.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	c := newHandlers(sh, d)
	sh.BeforeClose(c.decks.Close)
	sh.CountWatched(c.decks.Watching)
	c.showBulkJobs()
	return []shell.Route{
		shell.Live(2*time.Second, shell.Get("/", staff.View, c.overview)),
		shell.Get("/templates", staff.View, c.listTemplates),
		shell.Post("/templates", staff.ManageTemplates, c.createTemplate),
		shell.Get("/templates/choices", staff.View, c.chooseTemplate),
		shell.Get("/templates/new", staff.ManageTemplates, c.newTemplate),
		shell.Post("/templates/preview", staff.ManageTemplates, c.previewTemplate),
		shell.Live(time.Second, shell.Get("/templates/{id}", staff.View, c.showTemplate)),
		shell.Get("/templates/{id}/cockpit", staff.View, c.showCockpit),
		shell.Get("/templates/{id}/cockpit/live", staff.View, c.streamCockpit),
		shell.Get("/templates/{id}/edit", staff.ManageTemplates, c.editTemplate),
		shell.Post("/templates/{id}/edit", staff.ManageTemplates, c.saveTemplate),
		shell.Get("/templates/{id}/move", staff.ManageTemplates, c.moveForm),
		shell.Post("/templates/{id}/move", staff.ManageTemplates, c.move),
		shell.Get("/templates/{id}/stock", staff.ManageTemplates, c.stockForm),
		shell.Post("/templates/{id}/stock", staff.ManageTemplates, c.raiseStock),
		shell.Get("/templates/{id}/balance", staff.View, c.balance),
		shell.Get("/templates/{id}/slots/{slot}/receipt.csv", staff.View, c.receipt),
		shell.Get("/templates/{id}/users/{user}", staff.View, c.explain),
		shell.Live(time.Second, shell.Get("/templates/{id}/announcements", staff.View, c.listAnnouncements)),
		shell.Get("/templates/{id}/announcements/{kind}", staff.ManageTemplates, c.confirmAnnouncement),
		shell.Post("/templates/{id}/announcements/{kind}", staff.ManageTemplates, c.sendAnnouncement),
		shell.Get("/templates/{id}/{step:publish|pause|resume|close|cancel}", staff.ManageTemplates, c.confirmStep),
		shell.Post("/templates/{id}/{step:publish|pause|resume|close|cancel}", staff.ManageTemplates, c.takeStep),
		shell.Get("/forecast", staff.View, c.forecast),
		shell.Get("/templates/bulk", staff.ManageTemplates, c.confirmBulk),
		shell.Post("/templates/bulk", staff.ManageTemplates, c.startBulk),
		shell.Get("/templates.csv", staff.View, c.exportTemplates),
		shell.Get("/shops", staff.View, c.listShops),
		shell.Get("/shops.csv", staff.View, c.exportShops),
		shell.Post("/shops", staff.ManageTemplates, c.createShop),
		shell.Get("/shops/new", staff.ManageTemplates, c.newShop),
		shell.Get("/shops/{id}", staff.ManageTemplates, c.editShop),
		shell.Post("/shops/{id}", staff.ManageTemplates, c.saveShop),
	}
}
