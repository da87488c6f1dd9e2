package program

import (
	"context"
	"math"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// campaignService returns the use cases of staff around campaigns.
func (p *program) campaignService() *campaign.Service {
	store := postgres.NewCampaigns(p.DB)
	return &campaign.Service{Store: store, Latch: redis.NewLatch(p.Redis), Templates: p.lookup, Users: p.users, Channels: p.channels, Now: app.Clock,
		Audiences: store.Audiences(), Sleepers: (&lookup.Sleepers{Count: store.Waiting}).Of}
}

// each returns what a finished in-app batch says to each of the connected users.
type each func(ctx context.Context, batchID int64, connected func(from, to user.ID, reached func(user.ID) bool) []user.ID) (map[user.ID]reminder.InboxItem, error)

// pushEach brings a finished in-app batch to the clients that are connected
// here, each in their language.
func (p *program) pushEach(ctx context.Context, batchID int64, read each) error {
	items, err := read(ctx, batchID, p.hub.Connected)
	if err != nil || len(items) == 0 {
		return err
	}
	p.hub.Notify(0, math.MaxInt64, func(id user.ID) bool { _, ok := items[id]; return ok },
		func(id user.ID) reminder.InboxItem { return items[id] })
	return nil
}

// campaignLinks signs and reads the tracked links of campaigns; without a
// secret there are none.
func (p *program) campaignLinks() campaign.Links {
	return campaign.Links{Links: user.NewLinks(p.Config.LinkSecret)}
}
