// Package drops holds the console's pages about drops: templates and their steps, reservations, the
// course of a drop's delivery, and the shops that templates belong to.
package drops

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"dropbell/domain/budget"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/draw"
	"dropbell/domain/fault"
	"dropbell/domain/flight"
	"dropbell/domain/forecast"
	"dropbell/domain/job"
	"dropbell/domain/message"
	"dropbell/domain/rehearsal"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/segment"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/web/console/shell"
)

// Reminders are the use cases about messages around an opening.
type Reminders struct {
	Board         reminder.BoardStore
	Figures       Figures
	Cockpits      reminder.CockpitStore
	Forecaster    *forecast.Forecaster
	TextCosts     *forecast.TextCosts // nil = no text messages are sent
	Announcements *reminder.Announcements
	Explainer     *reminder.Explainer
	Receipts      *reminder.Receipts
}

// Figures compare sums that events keep with the rows.
type Figures interface {
	// Off returns by how much the sums of the template differ from its rows.
	Off(ctx context.Context, templateID int64) (int64, error)
}

// DeadMessages lists the events that handlers gave up on.
type DeadMessages interface {
	// Open returns events that were neither replayed nor discarded, the newest first.
	Open(ctx context.Context, before int64, limit int) ([]staff.DeadMessage, error)
}

// Users finds one user.
type Users interface {
	// User returns [user.ErrNotFound] if nothing is known about the id.
	User(ctx context.Context, id user.ID) (user.User, error)
}

// Sales loads the sales of templates.
type Sales interface {
	// Of returns how the template sells; nil for a draft.
	Of(ctx context.Context, t template.Template) (*droppages.Sales, error)
	// Compare sets the drop that the sales are compared with.
	Compare(ctx context.Context, s *droppages.Sales, with template.Template) error
	// Shards returns the distribution of coupons over the shards of a gate; nil for a template that
	// has no gate.
	Shards(ctx context.Context, t template.Template) (*droppages.StockShards, error)
}

// Limits serves the form of the limits of one shop's campaigns.
type Limits interface {
	// Form is the form about the limits of the shop, whose name is shown.
	Form(r *http.Request, shop int64, name string) (droppages.ShopLimits, error)
}

// Audiences estimate the users of an audience.
type Audiences interface {
	// Estimate returns about how many users the audience has, and whether the number is exact.
	Estimate(ctx context.Context, by staff.Actor, a campaign.Audience) (int64, bool, error)
}

// Deps are the dependencies of the pages of this package.
type Deps struct {
	Templates *template.Service
	Models    template.Models
	Series    *series.Service
	Bulks     *template.Bulks
	Jobs      *job.Service
	Shops     Shops
	Reminders
	Users        Users
	Audit        shell.Records
	DeadLetters  *delivery.DeadLetters
	DeadMessages DeadMessages
	Webhooks     Webhooks
	Sales        Sales
	Limits       Limits
	Audiences    Audiences
	Reports      *report.Service
	Budgets      *budget.Service
	Doors        *door.Service
	Flight       *flight.Service
	Rehearsals   *rehearsal.Service
	Dresses      *rehearsal.Dresses
	Segments     *segment.Service
	Texts        Texts
	Approvals    Approvals
	Alerts       Alerts
	Setups       template.Setups
	Draws        *draw.Desk
	// Step is the step about messages in the form.
	Step MessageStep
	// States are the states of the channels.
	States *shell.ChannelStates
	// Channels are the channels with a configured sender.
	Channels delivery.Available
	// Others are the dependencies of the further databases whose drops lists have too.
	Others []Deps
}

// MessageStep is the step of the form about the messages. Its fields are read from the request.
type MessageStep interface {
	// Of returns the step for the drop as it is typed so far.
	Of(r *http.Request, t template.Template) (pageparts.MessageStep, error)
	// Check returns the errors of the drop's own text, if there is a typed text. A text that shows a
	// link is an error in a drop without a claim address.
	Check(r *http.Request, t template.Template) []fault.Field
	// Send sends the reminder over the named channel to the member, and sets the result in the
	// step.
	Send(r *http.Request, t template.Template, over string, p *pageparts.MessageStep) error
	// Save stores the drop's own text, if one is typed. It may be repeated.
	Save(r *http.Request, t template.Template) error
}

// Texts knows the messages of drops.
type Texts interface {
	// Looked reports whether a member has ever looked at the drop's messages.
	Looked(ctx context.Context, template int64) (bool, error)
	// Book returns the texts of the place as they are now.
	Book(ctx context.Context, by staff.Actor, p message.Place) (*message.Book, error)
}

// Approvals knows which campaigns wait for the approval of a member.
type Approvals interface {
	// Awaiting returns the open requests that by may approve or refuse, the oldest first.
	Awaiting(ctx context.Context, by staff.Actor, limit int) ([]campaign.Request, error)
}

// Alerts knows what staff were notified of.
type Alerts interface {
	// Lasting returns the member's unread alerts about conditions that last, the newest first.
	Lasting(ctx context.Context, m staff.Member) ([]alert.Alert, error)
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
	// cells are the handlers of all databases, these first.
	cells []*handlers
	// cockpits are the cockpits with viewers, by template.
	cockpits *shell.Hub[int64, *snapshots]
	ahead    *shell.Recent[[]forecast.ChannelForecast]
	texts    *textCosts
	// settled is set once all first steps of the installation are taken.
	settled atomic.Bool
}

func newHandlers(sh *shell.Shell, d Deps) *handlers {
	h := &handlers{Shell: sh, Deps: d}
	h.texts = &textCosts{handlers: h, of: map[int64]*textCost{}}
	h.cockpits = shell.NewHub(h.readSnapshots, shell.Always[*snapshots](time.Second))
	h.ahead = shell.NewRecent(aheadLife, func(ctx context.Context) ([]forecast.ChannelForecast, error) {
		return h.Forecaster.Forecast(ctx, forecastAhead)
	})
	return h
}

// Routes returns the routes about templates, cockpits and shops. It also sets the content of the
// job pages of bulk steps.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := newHandlers(sh, d)
	sh.BeforeClose(h.cockpits.Close)
	sh.CountWatched(h.cockpits.Watching)
	h.withOthers()
	h.showBulkJobs()
	// The form shows previews of messages, some of them mails in frames.
	forms := shell.Framing([]shell.Route{
		shell.Post("/templates", staff.ManageTemplates, shell.AtShop(sh, h.cells, "shop_number", (*handlers).createTemplate)),
		shell.Get("/templates/new", staff.ManageTemplates, h.newTemplate),
		shell.Post("/templates/message", staff.ManageTemplates, h.ofForm((*handlers).messageStep)),
		shell.Get("/templates/{id}/edit", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.editTemplate)),
		shell.Post("/templates/{id}/edit", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.saveTemplate)),
	})
	forms = append(forms, h.drawRoutes()...)
	return append(forms, []shell.Route{
		shell.Live(2*time.Second, shell.Get("/", staff.View, h.overview)),
		shell.Report(shell.Get("/templates", staff.View, h.listTemplates)),
		shell.Get("/templates/choices", staff.View, h.chooseTemplate),
		shell.Get("/templates/models", staff.ManageTemplates, h.showModels),
		shell.Post("/templates/models/{id}/rename", staff.ManageTemplates, shell.With(shell.PathID, h.renameModel)),
		shell.Post("/templates/models/{id}/delete", staff.ManageTemplates, shell.With(shell.PathID, h.deleteModel)),
		shell.Post("/templates/models/{id}/restore", staff.ManageTemplates, shell.With(shell.PathID, h.restoreModel)),
		shell.Get("/templates/{id}/model", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.modelForm)),
		shell.Post("/templates/{id}/model", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.saveModel)),
		shell.Post("/templates/preview", staff.ManageTemplates, h.ofForm((*handlers).previewTemplate)),
		shell.Live(time.Second, shell.Get("/templates/{id}", staff.View, h.showTemplate)),
		shell.Get("/templates/{id}/cockpit", staff.View, shell.With(shell.TemplateOf(h.Templates), h.showCockpit)),
		shell.Get("/templates/{id}/cockpit/live", staff.View, shell.With(shell.TemplateOf(h.Templates), h.streamCockpit)),
		shell.Live(time.Second, shell.Get("/templates/{id}/wave", staff.View, shell.With(shell.TemplateOf(h.Templates), h.showWave))),
		shell.Get("/templates/{id}/compare", staff.View, shell.With(shell.TemplateOf(h.Templates), h.chooseOther)),
		shell.Get("/templates/{id}/move", staff.ManageTemplates, shell.With(h.movable, h.moveForm)),
		shell.Post("/templates/{id}/move", staff.ManageTemplates, shell.With(h.movable, h.move)),
		shell.Get("/templates/{id}/doors", staff.View, shell.With(shell.PathID, h.showDoors)),
		shell.Post("/templates/{id}/doors", staff.ManageTemplates, shell.With(shell.PathID, h.saveDoors)),
		shell.Get("/templates/{id}/flight", staff.View, shell.With(shell.TemplateOf(h.Templates), h.showFlight)),
		shell.Live(time.Second, shell.Get("/templates/{id}/rehearsal", staff.View, shell.With(shell.TemplateOf(h.Templates), h.showRehearsals))),
		shell.Post("/templates/{id}/rehearsal", staff.ManageTemplates, h.rehearse),
		shell.Get("/templates/{id}/dress", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.dressForm)),
		shell.Post("/templates/{id}/dress", staff.ManageTemplates, h.dress),
		shell.Get("/templates/{id}/stock", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.stockForm)),
		shell.Post("/templates/{id}/stock", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.raiseStock)),
		shell.Report(shell.Get("/templates/{id}/balance", staff.View, shell.With(shell.TemplateOf(h.Templates), h.balance))),
		shell.Report(shell.Get("/templates/{id}/slots/{slot}/receipt.csv", staff.View, shell.With(shell.TemplateOf(h.Templates), h.receipt))),
		shell.Report(shell.Get("/templates/{id}/report", staff.View, h.showReport)),
		shell.Post("/templates/{id}/report/links", staff.ManageTemplates, shell.With(shell.PathID, h.shareReport)),
		shell.Post("/templates/{id}/report/links/{link}/revoke", staff.ManageTemplates, shell.With(shell.PathID, h.revokeReport)),
		shell.Report(shell.Get("/results", staff.View, shell.With(h.AllShopsOf, h.showResults))),
		shell.Report(shell.Get("/results.csv", staff.View, h.exportResults)),
		shell.Get("/templates/{id}/users/{user}", staff.View, shell.With(shell.TemplateOf(h.Templates), h.explain)),
		shell.Live(time.Second, shell.Get("/templates/{id}/announcements", staff.View, shell.With(shell.TemplateOf(h.Templates), h.listAnnouncements))),
		shell.Get("/templates/{id}/announcements/{kind}", staff.ManageTemplates, shell.With(announcementKind, h.confirmAnnouncement)),
		shell.Post("/templates/{id}/announcements/{kind}", staff.ManageTemplates, shell.With(announcementKind, h.sendAnnouncement)),
		shell.Get("/templates/{id}/{step:publish|pause|resume|close|cancel}", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.confirmStep)),
		shell.Post("/templates/{id}/{step:publish|pause|resume|close|cancel}", staff.ManageTemplates, shell.With(shell.PathID, h.takeStep)),
		shell.Post("/templates/{id}/undo", staff.ManageTemplates, shell.With(shell.PathID, h.undoStep)),
		shell.Get("/templates/{id}/delete", staff.ManageTemplates, shell.With(shell.OwnTemplate(h.Templates), h.confirmDelete)),
		shell.Post("/templates/{id}/delete", staff.ManageTemplates, shell.With(shell.PathID, h.deleteDraft)),
		shell.Post("/templates/{id}/restore", staff.ManageTemplates, shell.With(shell.PathID, h.restoreDraft)),
		shell.Get("/forecast", staff.View, h.forecast),
		shell.Get("/templates/bulk", staff.ManageTemplates, h.confirmBulk),
		shell.Post("/templates/bulk", staff.ManageTemplates, h.startBulk),
		shell.Report(shell.Get("/templates.csv", staff.View, h.exportTemplates)),
		shell.Report(shell.Get("/templates/{id}/money.csv", staff.View, shell.With(shell.PathID, h.exportMoney))),
		shell.Report(shell.Get("/money.csv", staff.View, h.exportEarned)),
		shell.Get("/budgets", staff.View, h.showBudgets),
		shell.Post("/budgets", staff.ManageTemplates, h.setBudget),
		shell.Get("/series", staff.View, h.listSeries),
		shell.Post("/series", staff.ManageTemplates, h.createSeries),
		shell.Get("/series/new", staff.ManageTemplates, h.newSeries),
		shell.Post("/series/preview", staff.ManageTemplates, h.previewSeries),
		shell.Get("/series/{id}", staff.View, h.showSeries),
		shell.Get("/series/{id}/edit", staff.ManageTemplates, shell.With(shell.PathID, h.editSeries)),
		shell.Post("/series/{id}/edit", staff.ManageTemplates, shell.With(shell.PathID, h.saveSeries)),
		shell.Get("/series/{id}/{step:pause|resume|end}", staff.ManageTemplates, h.confirmSeries),
		shell.Post("/series/{id}/{step:pause|resume|end}", staff.ManageTemplates, h.takeSeries),
		shell.Post("/series/{id}/holidays", staff.ManageTemplates, shell.With(shell.PathID, h.saveHolidays)),
		shell.Get("/shops", staff.View, shell.With(h.AllShopsOf, h.listShops)),
		shell.Get("/shops.csv", staff.View, shell.With(h.AllShopsOf, h.exportShops)),
		shell.Post("/shops", staff.ManageTemplates, h.createShop),
		shell.Get("/shops/new", staff.ManageTemplates, h.newShop),
		shell.Get("/shops/{id}", staff.ManageTemplates, h.editShop),
		shell.Post("/shops/{id}", staff.ManageTemplates, shell.With(h.Shop, h.saveShop)),
	}...)
}
