package coupons

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/user"
)

// loadAffordable returns, for campaigns with a budget, how many more coupons the budget pays for. It
// runs after the templates' rows are locked; setting a budget takes the same lock. A budget in
// another currency than the coupons pays for none.
const loadAffordable = `
select b.subject, case when t.currency = b.currency and t.worth > 0 then greatest(0, floor(b.amount / t.worth) - b.given)::bigint else 0 end
from budgets b join campaigns c on c.id = b.subject
join lateral (select currency, (case kind when 'percent_off' then max_off else amount_off end)::numeric as worth from templates where id = c.grant_template_id) t on true
where b.scope = 'campaign' and b.subject = any($1)`

// Affordable returns how many further coupons the campaign's budget pays for as of now, and which of the
// users have their coupon of the campaign; limited is false without a budget.
func (s Gates) Affordable(ctx context.Context, campaignID int64, users []user.ID) (left int64, limited bool, have map[user.ID]bool, err error) {
	keys := make([]string, len(users))
	for i, id := range users {
		keys[i] = claim.CampaignKey(campaignID, id)
	}
	have = map[user.ID]bool{}
	var b pgx.Batch
	// The coupons are read last: what was given meanwhile is a coupon that its user has.
	b.Queue(loadAffordable, []int64{campaignID}).Query(func(rows pgx.Rows) error {
		var id int64
		_, err := pgx.ForEachRow(rows, []any{&id, &left}, func() error { limited = true; return nil })
		return err
	})
	b.Queue(`select user_id from coupons where origin = 'campaign' and origin_key = any($1)`, keys).Query(func(rows pgx.Rows) error {
		var id user.ID
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error { have[id] = true; return nil })
		return err
	})
	return left, limited, have, pg.Translate(s.Pool.SendBatch(ctx, &b).Close())
}

// addGiven counts the coupons that campaigns with a budget have given.
const addGiven = `
update budgets b set given = b.given + a.n from unnest($1::bigint[], $2::bigint[]) as a (id, n) where b.scope = 'campaign' and b.subject = a.id`

// queueAffordable queues the query for the budgets of the group's campaigns. It queues nothing for a
// group without campaigns.
func queueAffordable(b *pgx.Batch, d *claim.Decider, group []claim.Request) {
	campaigns := map[int64]bool{}
	for _, r := range group {
		if id := r.Campaign(); id != 0 {
			campaigns[id] = true
		}
	}
	if len(campaigns) == 0 {
		return
	}
	b.Queue(loadAffordable, slices.Sorted(maps.Keys(campaigns))).Query(func(rows pgx.Rows) error {
		d.Affordable = map[int64]int64{}
		var id, left int64
		_, err := pgx.ForEachRow(rows, []any{&id, &left}, func() error {
			d.Affordable[id] = left
			return nil
		})
		return err
	})
}

// queueGiven counts the coupons of campaigns with a budget.
func queueGiven(b *pgx.Batch, d *claim.Decider) {
	given := map[int64]int64{}
	for _, n := range d.Fresh() {
		if id := n.Request.Campaign(); id != 0 {
			if _, limited := d.Affordable[id]; limited {
				given[id]++
			}
		}
	}
	if len(given) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(given))
	sums := make([]int64, len(ids))
	for i, id := range ids {
		sums[i] = given[id]
	}
	b.Queue(addGiven, ids, sums)
}
