package campaigns

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/user"
)

// targetSQL finds the claim page of campaign $1, if it was sent and is about a
// template; see [campaign.Spec.TemplateID].
const targetSQL = `
select c.id, ` + pg.ClaimURL + ` as claim_url from campaigns c join templates t on t.id = ` + pg.CampaignTemplate + `
join shops h on h.number = t.shop_number where c.id = $1 and c.started_at is not null and ` + pg.ClaimURL + ` <> ''`

// openingSQL notes in the same statement that user $2, of variant $3, was there.
const openingSQL = `
with target as (` + targetSQL + `), noted as (
	insert into campaign_openings (campaign_id, user_id, variant, opened_at) select id, $2, $3, clock_timestamp() from target
	on conflict do nothing
)
select claim_url from target`

// Target returns the URL to which the link of a campaign leads. It returns [user.ErrLink] if the
// link leads nowhere.
func (s Campaigns) Target(ctx context.Context, r campaign.Reader) (url string, err error) {
	err = s.Pool.QueryRow(ctx, `select claim_url from (`+targetSQL+`) t`, r.CampaignID).Scan(&url)
	return url, linkError(err)
}

// Open is [Campaigns.Target], and also records that the reader has opened the link. Only the
// first time is recorded.
func (s Campaigns) Open(ctx context.Context, r campaign.Reader) (url string, err error) {
	err = s.Pool.QueryRow(ctx, openingSQL, r.CampaignID, r.UserID, r.Variant).Scan(&url)
	return url, linkError(err)
}

func linkError(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return user.ErrLink
	}
	return pg.Translate(err)
}
