// Package campaigns holds the console's pages about campaigns: planning, sending,
// approving and counting them, and what shops may send.
package campaigns

import (
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// Deps are what the pages of this package stand on.
type Deps struct {
	Campaigns *campaign.Service
	Templates shell.Templates
	// Segments names the segments that the form offers; nil = none.
	Segments *segment.Service
	Audit    shell.Records
	// States are the states of the channels.
	States *shell.ChannelStates
	// Channels are those with a configured sender.
	Channels delivery.ChannelSet
}

// handlers answer the requests of this package's pages.
type handlers struct {
	*shell.Shell
	Deps
}

// Routes returns the routes about campaigns and the limits of shops.
func Routes(sh *shell.Shell, d Deps) []shell.Route {
	c := &handlers{Shell: sh, Deps: d}
	const steps = "{step:publish|pause|resume|cancel}"
	return []shell.Route{
		shell.Get("/campaigns", staff.View, c.listCampaigns),
		shell.Get("/campaigns.csv", staff.View, c.exportCampaigns),
		shell.Post("/campaigns", staff.ManageCampaigns, c.createCampaign),
		shell.Get("/campaigns/new", staff.ManageCampaigns, c.newCampaign),
		shell.Post("/campaigns/preview", staff.ManageCampaigns, c.previewCampaign),
		shell.Get("/campaigns/{id}", staff.View, c.showCampaign),
		shell.Live(time.Second, shell.Get("/campaigns/{id}/progress", staff.View, c.campaignProgress)),
		shell.Live(10*time.Second, shell.Get("/campaigns/{id}/results", staff.View, c.campaignResults)),
		shell.Get("/campaigns/{id}/recipients", staff.View, c.listCampaignRecipients),
		shell.Get("/campaigns/{id}/recipients.csv", staff.View, c.exportCampaignRecipients),
		shell.Get("/campaigns/{id}/compare", staff.View, c.compareCampaign),
		shell.Get("/campaigns/{id}/edit", staff.ManageCampaigns, c.editCampaign),
		shell.Post("/campaigns/{id}/edit", staff.ManageCampaigns, c.saveCampaign),
		shell.Post("/campaigns/{id}/test", staff.ManageCampaigns, c.testCampaign),
		shell.Post("/campaigns/{id}/rate", staff.ManageCampaigns, c.changeRate),
		shell.Get("/campaigns/{id}/approval", staff.View, c.showApproval),
		shell.Post("/campaigns/{id}/approve", staff.ManageCampaigns, c.approveCampaign),
		shell.Post("/campaigns/{id}/refuse", staff.ManageCampaigns, c.refuseCampaign),
		shell.Post("/campaigns/{id}/withdraw", staff.ManageCampaigns, c.withdrawRequest),
		shell.Post("/campaigns/{id}/ask", staff.ManageCampaigns, c.askApproval),
		shell.Get("/campaigns/{id}/"+steps, staff.ManageCampaigns, c.confirmCampaignStep),
		shell.Post("/campaigns/{id}/"+steps, staff.ManageCampaigns, c.takeCampaignStep),
		shell.Get("/shops/{id}/limits", staff.ManageStaff, c.showLimits),
		shell.Post("/shops/{id}/limits", staff.ManageStaff, c.saveLimits),
	}
}
