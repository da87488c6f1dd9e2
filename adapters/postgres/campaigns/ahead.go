package campaigns

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/forecast"
	"dropbell/domain/segment"
)

// Ahead returns the campaigns that start between the instants, with an estimate of the users of
// their audiences who have a contact and are not held out.
func (s Campaigns) Ahead(ctx context.Context, from, until time.Time) (list []forecast.CampaignAhead, err error) {
	rows := pg.Rows(ctx, s.Pool, `select `+campaignColumns+campaignFrom+`
		where c.state in ('scheduled', 'running') and c.starts_at between $1 and $2 order by c.starts_at, c.id`, from, until)
	planned, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (campaign.Campaign, error) { return scanCampaign(row) })
	if err != nil {
		return nil, pg.Translate(err)
	}
	for _, c := range planned {
		n, _, err := s.Estimate(ctx, c.Audience)
		if err != nil {
			return nil, err
		}
		if slices.Contains(segment.ContactKinds(), c.Channel.String()) {
			with, err := s.EstimateContact(ctx, c.Audience, c.Channel.String())
			if err != nil {
				return nil, err
			}
			n = min(n, with)
		}
		list = append(list, forecast.CampaignAhead{ID: c.ID, Name: c.Name, Timezone: c.ShopTimezone, Channel: c.Channel, StartsAt: c.StartsAt,
			PerSecond: int64(c.RatePerSecond), Messages: n * int64(100-c.Content.HoldOut) / 100})
	}
	return list, nil
}
