package program

import (
	"context"

	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/recipe"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// recipes makes what begins the rounds of recipes. Their campaigns are published by the rules by which staff publish.
func (p *program) recipes(templates campaign.Templates) *recipe.Keeper {
	store, channels := p.Stores.Campaigns, providedChannels{p}
	page := campaign.DropPage(reminder.NewLinks(p.Config.LinkSecret).Page(p.Config.PublicURL))
	approvals := &approval.Service{Store: store, Publisher: campaign.Publisher{Store: store, Lock: redis.NewLock(p.Redis), Templates: templates, Channels: channels, Now: app.Clock, DropPage: page}}
	return &recipe.Keeper{Store: p.Stores.Recipes, Templates: templates, Campaigns: &campaign.Service{Store: store, Approvals: approvals, Templates: templates,
		Users: &user.Service{Store: p.Stores.Users}, Channels: channels, Texts: message.Stored{Store: p.Stores.Messages}, Audiences: store.Audiences(), Now: app.Clock, DropPage: page, QuietCounts: store.Waiting}}
}

// providedChannels are the channels that have a sender, as they are at each question.
type providedChannels struct{ *program }

// Has reports whether the channel has a sender.
func (c providedChannels) Has(over delivery.Channel) bool { return c.Set().Has(over) }

// Set returns the channels that have a sender. Providers that cannot be read count as none.
func (c providedChannels) Set() delivery.ChannelSet {
	set, err := c.Provided(context.Background())
	if err != nil {
		return app.Configured(c.Config)
	}
	return set | app.Configured(c.Config)
}
