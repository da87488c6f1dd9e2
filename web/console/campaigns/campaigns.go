// Package campaigns holds the console's pages about campaigns: planning, sending, approving and
// counting them, and the limits of shops.
package campaigns

import (
	"net/http"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/recipe"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	pageparts "dropbell/views/pages/parts"
	"dropbell/web/console/shell"
)

// Deps are the dependencies of the pages of this package.
type Deps struct {
	Campaigns *campaign.Service
	Approvals *approval.Service
	Recipes   *recipe.Service
	Templates shell.Templates
	// Segments names the segments that the form offers; nil = none.
	Segments *segment.Service
	// Messages are the parts that pages about texts share.
	Messages Messages
	// LinkExample is a tracked link as long as the links in messages, for previews; "" = messages
	// contain the address itself.
	LinkExample string
	Audit       shell.Records
	// States are the states of the channels.
	States *shell.ChannelStates
	// Channels are the channels with a configured sender.
	Channels delivery.Available
	// VerifiedOnly is whether text messages go to verified numbers alone.
	VerifiedOnly bool
	// Others are the dependencies of the further databases whose campaigns lists have too.
	Others []Deps
}

// Messages are the functions that the pages of campaigns share with the pages about the texts of
// drops.
type Messages interface {
	// Reader returns the user with the number, or for 0 a made-up person in the zone.
	Reader(r *http.Request, id user.ID, zone *time.Location) (user.User, error)
	// Pictures is the library of the shop, empty for members who may not change it.
	Pictures(r *http.Request, shop int64) (pageparts.Pictures, error)
	// Own is where the member can be reached.
	Own(r *http.Request) (pageparts.Own, error)
	// Send sends the draft of a text to the member over the channel. shop is the shop of the text
	// (0 = none), templateID the template that it is about (0 = none).
	Send(r *http.Request, shop int64, c delivery.Channel, templateID int64, d message.Draft) (pageparts.Try, error)
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
	// cells are the handlers of all databases, these first.
	cells []*handlers
}

// Routes returns the routes about campaigns and the limits of shops.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	h := &handlers{Shell: sh, Deps: d}
	h.cells = []*handlers{h}
	for _, o := range d.Others {
		h.cells = append(h.cells, &handlers{Shell: sh, Deps: o})
	}
	for _, o := range h.cells {
		o.cells = h.cells
	}
	const steps = "{step:publish|pause|resume|cancel}"
	return shell.Framing([]shell.Route{
		shell.Report(shell.Get("/campaigns", staff.View, h.listCampaigns)),
		shell.Report(shell.Get("/campaigns.csv", staff.View, h.exportCampaigns)),
		shell.Post("/campaigns", staff.ManageCampaigns, h.formAt((*handlers).createCampaign)),
		shell.Get("/recipes", staff.View, h.showRecipes),
		shell.Post("/recipes/{id}/{form}", staff.ManageCampaigns, h.saveRecipe),
		shell.Get("/campaigns/new", staff.ManageCampaigns, h.newCampaign),
		shell.Report(shell.Post("/campaigns/preview", staff.ManageCampaigns, h.formAt((*handlers).previewCampaign))),
		shell.Get("/campaigns/{id}", staff.View, h.showCampaign),
		shell.Live(time.Second, shell.Get("/campaigns/{id}/progress", staff.View, h.campaignProgress)),
		shell.Live(10*time.Second, shell.Get("/campaigns/{id}/results", staff.View, shell.With(h.loadCampaign, h.campaignResults))),
		shell.Report(shell.Get("/campaigns/{id}/recipients", staff.View, h.listCampaignRecipients)),
		shell.Sure(shell.Report(shell.Get("/campaigns/{id}/recipients.csv", staff.View, shell.With(shell.PathID, h.exportCampaignRecipients)))),
		shell.Get("/campaigns/{id}/compare", staff.View, shell.With(h.loadCampaign, h.compareCampaign)),
		shell.Get("/campaigns/{id}/edit", staff.ManageCampaigns, shell.With(h.loadDraft, h.editCampaign)),
		shell.Post("/campaigns/{id}/edit", staff.ManageCampaigns, shell.With(h.loadDraft, h.saveCampaign)),
		shell.Post("/campaigns/{id}/send", staff.ManageCampaigns, shell.With(h.loadCampaign, h.sendCampaign)),
		shell.Post("/campaigns/{id}/test", staff.ManageCampaigns, shell.With(h.loadCampaign, h.testCampaign)),
		shell.Post("/campaigns/{id}/rate", staff.ManageCampaigns, shell.With(h.loadCampaign, h.changeRate)),
		shell.Get("/campaigns/{id}/approval", staff.View, shell.With(h.approvalPage, h.showApproval)),
		shell.Post("/campaigns/{id}/approve", staff.ManageCampaigns, h.approveCampaign),
		shell.Post("/campaigns/{id}/refuse", staff.ManageCampaigns, h.refuseCampaign),
		shell.Post("/campaigns/{id}/withdraw", staff.ManageCampaigns, h.withdrawRequest),
		shell.Post("/campaigns/{id}/ask", staff.ManageCampaigns, h.askApproval),
		shell.Get("/campaigns/{id}/"+steps, staff.ManageCampaigns, h.confirmCampaignStep),
		shell.Post("/campaigns/{id}/"+steps, staff.ManageCampaigns, h.takeCampaignStep),
		shell.Post("/campaigns/{id}/undo", staff.ManageCampaigns, shell.With(shell.PathID, h.undoPause)),
		shell.Get("/campaigns/{id}/delete", staff.ManageCampaigns, shell.With(h.loadCampaign, h.confirmDelete)),
		shell.Post("/campaigns/{id}/delete", staff.ManageCampaigns, shell.With(shell.PathID, h.deleteDraft)),
		shell.Post("/campaigns/{id}/restore", staff.ManageCampaigns, shell.With(shell.PathID, h.restoreDraft)),
		shell.Sure(shell.Get("/shops/{id}/limits", staff.ManageStaff, shell.With(h.limitsOf, h.showLimits))),
		shell.Sure(shell.Post("/shops/{id}/limits", staff.ManageStaff, h.saveLimits)),
	})
}
