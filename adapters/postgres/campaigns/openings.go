package campaigns

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// targetSQL returns where the link of campaign $1 leads, if it was sent: its id, its content, and
// the claim page and the id of the template that it is about (see [campaign.Spec.TemplateID]), "" and
// 0 if there is none.
const targetSQL = `
select c.id, c.content, coalesce(` + pg.ClaimURL + `, '') as claim_url, coalesce(t.id, 0) from campaigns c left join templates t on t.id = ` + pg.CampaignTemplate + `
left join shops h on h.number = t.shop_number where c.id = $1 and c.started_at is not null`

// openingSQL records that user $2, of variant $3, followed a link; it returns nothing.
const openingSQL = `
insert into campaign_openings (campaign_id, user_id, variant, opened_at) values ($1, $2, $3, clock_timestamp()) on conflict do nothing`

// Target returns where the link of a campaign leads. It returns [user.ErrLink] if the link leads
// nowhere.
func (s Campaigns) Target(ctx context.Context, r campaign.Reader) (to campaign.Destination, err error) {
	var id int64
	var content delivery.Copy
	err = s.Pool.QueryRow(ctx, targetSQL, r.CampaignID).Scan(&id, &content, &to.URL, &to.TemplateID)
	if errors.Is(err, pgx.ErrNoRows) {
		return to, user.ErrLink
	}
	if err != nil {
		return to, pg.Translate(err)
	}
	if to.URL = content.TargetOf(to.URL, r.Target, campaign.TargetMark); to.URL == "" && (r.Target != 0 || to.TemplateID == 0) {
		return campaign.Destination{}, user.ErrLink
	}
	return to, nil
}

// Open is [Campaigns.Target], and also records that the reader has opened a link. Only the first
// time is recorded.
func (s Campaigns) Open(ctx context.Context, r campaign.Reader) (to campaign.Destination, err error) {
	if to, err = s.Target(ctx, r); err != nil {
		return to, err
	}
	_, err = s.Pool.Exec(ctx, openingSQL, r.CampaignID, r.UserID, r.Variant)
	return to, pg.Translate(err)
}
