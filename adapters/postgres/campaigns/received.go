package campaigns

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// receivedWindow is how many of the newest campaigns are read for one user.
const receivedWindow = 200

// receivedSQL finds the batches of the newest campaigns that contain user $1, with one lookup
// per campaign in the unique index of ranges. $2 = shops, none = all.
const receivedSQL = `
with recent as (
    select id, name, shop_number, channel, started_at from campaigns
    where started_at is not null and (cardinality($2::bigint[]) = 0 or shop_number = any($2)) order by started_at desc limit $3
)
select c.id, c.name, coalesce(c.shop_number, 0), coalesce(h.name, ''), c.channel, b.id, b.due, b.sent,
    coalesce(b.rest_outcome, ''), coalesce(b.rest_reason, ''), coalesce(e.outcome, ''), coalesce(e.reason, ''),
    coalesce(e.last_at, b.finished_at, b.started_at, b.created_at), coalesce(b.finished_at, b.started_at, b.created_at)
from recent c
left join shops h on h.number = c.shop_number
cross join lateral (
    select * from batches b where b.kind = 'campaign' and b.owner_id = c.id and b.channel = c.channel and b.from_user <= $1
    order by b.from_user desc limit 1
) b
left join exceptions e on e.batch_id = b.id and e.user_id = $1
where b.to_user >= $1
order by c.started_at desc, c.id desc`

// ReceivedRows returns the newest campaigns' messages for the user; see
// [campaign.LetterStore].
func (s Campaigns) ReceivedRows(ctx context.Context, to user.ID, shops []int64) (m campaign.ReceivedRows, err error) {
	shops = append([]int64{}, shops...)
	err = s.Pool.QueryRow(ctx, `select clock_timestamp(), coalesce((select started_at from campaigns
		where started_at is not null and (cardinality($1::bigint[]) = 0 or shop_number = any($1))
		order by started_at desc offset $2 limit 1), '0001-01-01')`, shops, receivedWindow).Scan(&m.Now, &m.Passed)
	if err != nil {
		return m, pg.Translate(err)
	}
	if m.Letters, err = s.lettersTo(ctx, to, shops); err != nil {
		return m, err
	}
	m.Limits, err = s.limitsOf(ctx, m.Letters)
	return m, err
}

func (s Campaigns) lettersTo(ctx context.Context, to user.ID, shops []int64) (list []campaign.Letter, err error) {
	rows := pg.Rows(ctx, s.Pool, receivedSQL, to, shops, receivedWindow)
	var l campaign.Letter
	var due, sent pgtype.DriverBytes // looked at before the next row
	var known pg.Recorded
	_, err = pgx.ForEachRow(rows, []any{&l.CampaignID, &l.Name, &l.Shop, &l.ShopName, &l.Channel, &l.BatchID, &due, &sent,
		&known.Rest, &known.RestReason, &known.Exception, &known.Reason, &l.At, &l.CountsAt}, func() error {
		if meant, err := pg.SetHolds(due, to); err != nil || !meant {
			return err
		}
		if known.Reached, err = pg.SetHolds(sent, to); err != nil {
			return err
		}
		letter := l
		if letter.Outcome, letter.Reason = known.Outcome(); letter.Outcome == delivery.InFlight {
			letter.At = time.Time{}
		}
		list = append(list, letter)
		return nil
	})
	return list, pg.Translate(err)
}

// limitsOf returns the campaign limits of the letters' shops.
func (s Campaigns) limitsOf(ctx context.Context, letters []campaign.Letter) (map[int64]campaign.Limits, error) {
	shops := make([]int64, len(letters))
	for i, l := range letters {
		shops[i] = l.Shop
	}
	rows := pg.Rows(ctx, s.Pool, `select shop_number, per_day, per_week, approval_above from campaign_limits where shop_number = any($1)`, shops)
	limits := map[int64]campaign.Limits{}
	var shop int64
	var l campaign.Limits
	_, err := pgx.ForEachRow(rows, []any{&shop, &l.PerDay, &l.PerWeek, &l.ApprovalAbove}, func() error {
		limits[shop] = l
		return nil
	})
	return limits, pg.Translate(err)
}
