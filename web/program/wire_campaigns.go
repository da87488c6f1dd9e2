package program

import (
	"dropbell/adapters/lookup"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/user"
)

// campaignService returns the use cases of staff around campaigns.
func (p *program) campaignService() *campaign.Service {
	store := campaignsdb.NewCampaigns(p.DB, audiencedb.NewSegments(p.DB))
	return &campaign.Service{Store: store, Lock: redis.NewLock(p.Redis), Templates: p.lookup, Users: p.users, Channels: p.channels, Now: app.Clock,
		Audiences: store.Audiences(), Sleepers: (&lookup.Sleepers{Count: store.Waiting}).Of}
}

// campaignLinks signs and reads the tracked links of campaigns; without a
// secret there are none.
func (p *program) campaignLinks() campaign.Links {
	return campaign.Links{Links: user.NewLinks(p.Config.LinkSecret)}
}
