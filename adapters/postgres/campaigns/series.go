package campaigns

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// earningsSQL returns the orders that users paid with coupons of template $1 from $2 to before $3, by
// user: the user, the instant, and the amount less the discounts. An order counts once however many
// coupons of the template it used, and not if it was refunded since; as in spentSQL.
const earningsSQL = `
select c.user_id, min(c.used_at) as at, (coalesce(max(l.order_amount), 0) - sum(c.discount))::bigint as amount
from coupons c left join coupon_operations l on l.coupon_id = c.id and l.order_id = c.order_id and l.step = 'lock' and l.outcome = 'done'
where c.template_id = $1 and c.state = 'used' and c.used_at >= $2 and c.used_at < $3
group by c.user_id, c.order_id order by c.user_id`

// An earning is what one user paid in orders with coupons of the campaign's template.
type earning struct {
	user   user.ID
	at     time.Time // of the first order
	amount int64
}

// earned calls visit with the sum of every user who paid in the campaign's window.
func (n *counting) earned(ctx context.Context, tx pgx.Tx, visit func(earning)) error {
	rows := pg.Rows(ctx, tx, earningsSQL, n.TemplateID(), n.StartedAt, n.to)
	var now, sum earning
	_, err := pgx.ForEachRow(rows, []any{&now.user, &now.at, &now.amount}, func() error {
		if sum.user != now.user && sum.user != 0 {
			visit(sum)
		}
		if sum.user != now.user {
			sum = earning{user: now.user, at: now.at}
		}
		sum.amount += now.amount
		return nil
	})
	if err == nil && sum.user != 0 {
		visit(sum)
	}
	return err
}

const (
	// sentSeriesSQL returns how many recipients of campaign $1 over channel $2 were sent to, and how
	// many of these were reported as delivered, from $3 to before $4, summed by spans of $5 that begin
	// at $3. A batch counts with the instant at which it finished.
	sentSeriesSQL = `
select date_bin($5, greatest(coalesce(b.finished_at, b.started_at, $3), $3), $3) as at, sum(b.sent_count)::bigint, sum(coalesce(f.delivered_count, 0))::bigint
from batches b left join batch_feedback f on f.batch_id = b.id
where b.kind = 'campaign' and b.owner_id = $1 and b.channel = $2 and b.sent_count > 0 and coalesce(b.finished_at, b.started_at, $3) < $4 group by 1`

	// openedSeriesSQL returns how many recipients of campaign $1 followed a link, by spans as above.
	openedSeriesSQL = `
select date_bin($4, opened_at, $2) as at, count(*) from campaign_openings where campaign_id = $1 and opened_at >= $2 and opened_at < $3 group by 1`

	// claimedSeriesSQL returns the users who got coupons of template $1, each with the first instant.
	claimedSeriesSQL = `
select user_id, min(issued_at) from coupons where template_id = $1 and issued_at >= $2 and issued_at < $3 group by 1`
)

// readSeries reads what the recipients did over time. The batches were read before.
func (n *counting) readSeries(ctx context.Context, tx pgx.Tx) error {
	span := campaign.SeriesSpan(n.to.Sub(*n.StartedAt))
	points := map[time.Time]*campaign.Point{}
	point := func(at time.Time) *campaign.Point {
		at = at.UTC()
		if points[at] == nil {
			points[at] = &campaign.Point{At: at}
		}
		return points[at]
	}
	of := func(at time.Time) *campaign.Point { return point(n.StartedAt.Add(at.Sub(*n.StartedAt).Truncate(span))) }
	var at time.Time
	var a, b int64
	rows, err := tx.Query(ctx, sentSeriesSQL, n.ID, n.Channel, n.StartedAt, n.to, span)
	if err != nil {
		return err
	}
	if _, err := pgx.ForEachRow(rows, []any{&at, &a, &b}, func() error { p := point(at); p.Sent, p.Delivered = a, b; return nil }); err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, openedSeriesSQL, n.ID, n.StartedAt, n.to, span); err != nil {
		return err
	}
	if _, err := pgx.ForEachRow(rows, []any{&at, &a}, func() error { point(at).Opened = a; return nil }); err != nil {
		return err
	}
	if n.TemplateID() != 0 {
		var id user.ID
		if rows, err = tx.Query(ctx, claimedSeriesSQL, n.TemplateID(), n.StartedAt, n.to); err != nil {
			return err
		}
		if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
			if n.meant(id) {
				of(at).Claimed++
			}
			return nil
		}); err != nil {
			return err
		}
		if err := n.earned(ctx, tx, func(e earning) {
			if n.meant(e.user) {
				of(e.at).Earned += e.amount
			}
		}); err != nil {
			return err
		}
	}
	for _, p := range points {
		n.series = append(n.series, *p)
	}
	return nil
}

// meant reports whether the user is in the audience and not held out.
func (n *counting) meant(id user.ID) bool {
	return n.audience.Contains(uint64(id)) && n.Content.Group(n.ID, id) != delivery.HeldOut
}

// storeSeries replaces the series of the campaign.
func (n *counting) storeSeries(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `delete from campaign_series where campaign_id = $1`, n.ID); err != nil {
		return err
	}
	for _, p := range n.series {
		if _, err := tx.Exec(ctx, `insert into campaign_series (campaign_id, at, sent, delivered, opened, claimed, earned) values ($1, $2, $3, $4, $5, $6, $7)`,
			n.ID, p.At, p.Sent, p.Delivered, p.Opened, p.Claimed, p.Earned); err != nil {
			return err
		}
	}
	return nil
}

// Series returns what the campaign brought about over time; see [campaign.ResultStore].
func (s Campaigns) Series(ctx context.Context, id int64) (r campaign.Series, err error) {
	err = s.PlannedTogether(ctx, pg.Read{SQL: `select at, sent, delivered, opened, claimed, earned from campaign_series where campaign_id = $1 order by at`, Args: []any{id},
		Rows: func(rows pgx.Rows) (err error) {
			r.Points, err = pgx.CollectRows(rows, pgx.RowToStructByPos[campaign.Point])
			return err
		}}, pg.Read{SQL: `select coalesce((select t.currency from templates t where t.id = ` + pg.CampaignTemplate + `), '') from campaigns c where c.id = $1`, Args: []any{id},
		Rows: func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&r.Currency}, func() error { return nil })
			return err
		}})
	return r, pg.Translate(err)
}
