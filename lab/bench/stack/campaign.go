package stack

import (
	"context"
	"fmt"
	"time"

	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// startsIn is how long a campaign waits for its start, like a campaign that was published in
// time.
const startsIn = 3 * time.Second

// Took has the times from the start of a campaign to its steps.
type Took struct {
	Cut time.Duration // its whole audience was stored
	All time.Duration // the last outcome was recorded
}

// Wording is a text in one language for all users.
func Wording(body string) delivery.Copy {
	return delivery.Copy{Link: "https://shop.example/spring", Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: "Spring", Body: body}}}}}
}

// SendCampaign publishes the campaign and waits until each recipient has an outcome. It returns
// an error unless the balance adds up and all n recipients were sent to.
func (s *Stack) SendCampaign(ctx context.Context, spec campaign.Spec, n int) (t Took, err error) {
	client, err := s.RedisClient()
	if err != nil {
		return t, err
	}
	defer client.Close()
	now := func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
	store, templates := campaignsdb.NewCampaigns(s.DB, audiencedb.NewSegments(s.DB)), dropsdb.NewTemplates(s.DB)
	publisher := campaign.Publisher{Store: store, Lock: redis.NewLock(client), Templates: templates, Channels: delivery.ChannelSetOf(spec.Channel), Now: now}
	service := &campaign.Service{Store: store, Approvals: &approval.Service{Store: store, Publisher: publisher}, Templates: templates,
		Users: &user.Service{Store: audiencedb.NewUsers(s.DB)}, Channels: publisher.Channels, Audiences: campaign.AudienceKinds(), Now: now}
	spec.StartsAt, spec.EndsAt = now().Add(startsIn), now().Add(2*time.Hour)
	spec.Name = fmt.Sprintf("Bench %d", spec.StartsAt.UnixMicro())
	c, err := service.Create(ctx, staff.System(), spec, "")
	if err != nil {
		return t, err
	}
	if _, err := service.Do(ctx, staff.System(), c.ID, 0, campaign.Publishing, ""); err != nil {
		return t, err
	}
	if err := Until(ctx, 50*time.Millisecond, func() (done bool, err error) { // by a question that costs next to nothing
		err = s.SQL.QueryRow(ctx, `select settled_at is not null from campaigns where id = $1`, c.ID).Scan(&done)
		return done, err
	}); err != nil {
		return t, err
	}
	if err := s.SQL.QueryRow(ctx, `select cut_at - started_at, (select max(finished_at) from batches where kind = 'campaign' and owner_id = c.id) - started_at
		from campaigns c where id = $1`, c.ID).Scan(&t.Cut, &t.All); err != nil {
		return t, err
	}
	b, err := service.Balance(ctx, staff.System(), c.ID)
	if err == nil && (b.Difference() != 0 || b.Counted.Sent != int64(n)) {
		err = fmt.Errorf("the account does not add up: %+v", b)
	}
	return t, err
}
