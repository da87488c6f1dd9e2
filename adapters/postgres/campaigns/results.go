package campaigns

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/increment"
	"dropbell/domain/money"
	"dropbell/domain/user"
)

const (
	// countFor bounds one count of a campaign's results. If the results are not stored by then,
	// because a worker died or the count failed, the count is repeated.
	countFor = 5 * time.Minute
	// countLag is how long after the window's end the last count is made, so that late
	// transactions of the window have been committed.
	countLag = time.Minute
)

// CountNext counts and stores the results of the campaign whose count is due. It
// returns false if none is due. A count reads all of the campaign's batches and
// its users' actions in one snapshot; an unfinished count stores nothing.
func (s Campaigns) CountNext(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, countFor)
	defer cancel()
	var id int64
	err := s.Pool.QueryRow(ctx, `
		with next as (
			select id from campaigns where started_at is not null and not archived and count_due_at < 'infinity' and count_due_at <= statement_timestamp()
			order by count_due_at limit 1 for update skip locked
		)
		update campaigns c set count_due_at = clock_timestamp() + $1::interval from next where c.id = next.id returning c.id`, countFor).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, pg.Translate(err)
	}
	began := time.Now()
	n, err := s.countOnce(ctx, id)
	if err != nil {
		return false, err
	}
	return true, s.storeResults(ctx, n, campaign.CountAgain(time.Since(began), n.ended))
}

// countOnce counts the campaign's results in one snapshot.
func (s Campaigns) countOnce(ctx context.Context, id int64) (n *counting, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) (err error) {
		if _, err := tx.Exec(ctx, `set transaction isolation level repeatable read read only`); err != nil {
			return err
		}
		n, err = countResults(ctx, tx, id)
		return err
	})
	return n, err
}

// counting is one count of one campaign's results.
type counting struct {
	campaign.Campaign
	// to is the instant before which everything is counted.
	to time.Time
	// ended is how long ago the campaign ended, last that its window is over.
	ended time.Duration
	last  bool
	off   int64
	// Users by their deeds in the window.
	opened, reserved, claimed, used *roaring64.Bitmap
	// spent are the orders of the users in used.
	spent map[uint64]campaign.Spent
	// by group, the remaining users of a test first
	tallies [4]campaign.Tally
	// audience are the users of the batches.
	audience *roaring64.Bitmap
	series   []campaign.Point
}

func countResults(ctx context.Context, tx pgx.Tx, id int64) (*counting, error) {
	n := &counting{opened: roaring64.New(), reserved: roaring64.New(), claimed: roaring64.New(), used: roaring64.New(), audience: roaring64.New()}
	var err error
	n.Campaign, err = scanCampaign(tx.QueryRow(ctx, `select `+campaignColumns+`, least(clock_timestamp(), c.ended_at + $2::interval),
		coalesce(clock_timestamp() - c.ended_at, interval '0'), coalesce(clock_timestamp() > c.ended_at + $2::interval + $3::interval, false)`+
		campaignFrom+`where c.id = $1`, id, campaign.ResultsFor, countLag), &n.to, &n.ended, &n.last)
	if err != nil {
		return n, err
	}
	if err := n.readDoings(ctx, tx, n.TemplateID()); err != nil {
		return n, err
	}
	if err := n.readBatches(ctx, tx); err != nil {
		return n, err
	}
	if err := n.readSeries(ctx, tx); err != nil {
		return n, err
	}
	b, err := campaignBalance(ctx, tx, id)
	n.off = b.Difference()
	return n, err
}

// readDoings reads the sets of users who opened, reserved, claimed and used; no template has the id
// 0.
func (n *counting) readDoings(ctx context.Context, tx pgx.Tx, template int64) error {
	for _, q := range []struct {
		set *roaring64.Bitmap
		sql string
		id  int64
	}{
		{n.opened, `select user_id from campaign_openings where campaign_id = $1 and opened_at >= $2 and opened_at < $3`, n.ID},
		{n.reserved, `select user_id from reservations where template_id = $1 and created_at >= $2 and created_at < $3`, template},
		{n.claimed, `select user_id from coupons where template_id = $1 and issued_at >= $2 and issued_at < $3`, template},
		{n.used, `select user_id from coupons where template_id = $1 and state = 'used' and used_at >= $2 and used_at < $3`, template},
	} {
		if err := readIDs(ctx, tx, q.set, q.sql, q.id, n.StartedAt, n.to); err != nil {
			return err
		}
	}
	if n.used.IsEmpty() {
		return nil
	}
	return n.readSpent(ctx, tx, template)
}

// spentSQL returns, for each user who used coupons of template $1 from $2 to before $3, the
// user, the currency, and the number, amount and discount of their orders.
const spentSQL = `
select o.user_id, t.currency, count(*), sum(o.amount)::bigint, sum(o.discount)::bigint
from (select c.user_id, c.order_id, coalesce(max(l.order_amount), 0) as amount, sum(c.discount) as discount
    from coupons c left join coupon_operations l on l.coupon_id = c.id and l.order_id = c.order_id and l.step = 'lock' and l.outcome = 'done'
    where c.template_id = $1 and c.state = 'used' and c.used_at >= $2 and c.used_at < $3 group by 1, 2) o, templates t
where t.id = $1 group by 1, 2`

func (n *counting) readSpent(ctx context.Context, tx pgx.Tx, template int64) error {
	rows, err := tx.Query(ctx, spentSQL, template, n.StartedAt, n.to)
	if err != nil {
		return err
	}
	n.spent = map[uint64]campaign.Spent{}
	var id uint64
	var s campaign.Spent
	_, err = pgx.ForEachRow(rows, []any{&id, &s.Currency, &s.Orders, &s.Ordered, &s.Discount}, func() error {
		n.spent[id] = s.OfUser()
		return nil
	})
	return err
}

// readIDs adds the ids that the query yields to set.
func readIDs(ctx context.Context, tx pgx.Tx, set *roaring64.Bitmap, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		set.Add(pg.Uint64(rows.RawValues()[0])) // the generic scanner costs more than the query
	}
	return rows.Err()
}

// readBatches divides the users of the campaign's batches into groups.
func (n *counting) readBatches(ctx context.Context, tx pgx.Tx) error {
	for i := range n.tallies {
		n.tallies[i].Variant = i + delivery.Remaining
	}
	rows := pg.Rows(ctx, tx, `select due, sent from batches where kind = 'campaign' and owner_id = $1 and channel = $2 order by from_user`, n.ID, n.Channel)
	var due, sent []byte
	_, err := pgx.ForEachRow(rows, []any{&due, &sent}, func() error {
		dueSet, err := pg.DecodeSet(due)
		if err != nil {
			return err
		}
		sentSet, err := pg.DecodeSet(sent)
		if err != nil {
			return err
		}
		n.audience.Or(dueSet)
		n.add(dueSet, sentSet)
		return nil
	})
	return err
}

func (n *counting) add(due, sent *roaring64.Bitmap) {
	if !n.Content.Divided() {
		n.count(0, due, sent)
		return
	}
	var groups [len(n.tallies)]*roaring64.Bitmap
	for i := range groups {
		groups[i] = roaring64.New()
	}
	for it := due.Iterator(); it.HasNext(); {
		id := it.Next()
		groups[n.Content.Group(n.ID, user.ID(id))-delivery.Remaining].Add(id)
	}
	for i, g := range groups {
		n.count(i+delivery.Remaining, g, sent)
	}
}

func (n *counting) count(variant int, group, sent *roaring64.Bitmap) {
	t := &n.tallies[variant-delivery.Remaining]
	t.Assigned += int64(group.GetCardinality())
	for _, x := range []struct {
		sum *int64
		set *roaring64.Bitmap
	}{{&t.Sent, sent}, {&t.Opened, n.opened}, {&t.Reserved, n.reserved}, {&t.Claimed, n.claimed}, {&t.Used, n.used}} {
		if !x.set.IsEmpty() {
			*x.sum += int64(group.AndCardinality(x.set))
		}
	}
	if len(n.spent) == 0 {
		return
	}
	for it := roaring64.And(group, n.used).Iterator(); it.HasNext(); {
		t.Spent = t.Spent.Plus(n.spent[it.Next()])
	}
}

// storeResultSQL returns nothing.
const storeResultSQL = `
insert into campaign_results (campaign_id, variant, assigned, sent, opened, reserved, claimed, used, orders, ordered, discount, currency,
    order_squares, order_cubes, revenue_squares, revenue_cubes)
values (@campaign, @variant, @assigned, @sent, @opened, @reserved, @claimed, @used, @orders, @ordered, @discount, @currency,
    @order_squares, @order_cubes, @revenue_squares, @revenue_cubes)
on conflict (campaign_id, variant) do update set assigned = excluded.assigned, sent = excluded.sent, opened = excluded.opened,
    reserved = excluded.reserved, claimed = excluded.claimed, used = excluded.used, orders = excluded.orders, ordered = excluded.ordered,
    discount = excluded.discount, currency = excluded.currency, order_squares = excluded.order_squares, order_cubes = excluded.order_cubes,
    revenue_squares = excluded.revenue_squares, revenue_cubes = excluded.revenue_cubes`

// countedSQL returns nothing; no row changes if later results are stored. Neither the last count
// nor the count of a campaign that was settled meanwhile is postponed.
const countedSQL = `
update campaigns set counted_to = @to, account_off = @off, compared = true,
    count_due_at = case when @last then 'infinity'::timestamptz
        when settled_at > @to and @to < ended_at + @results_for::interval then clock_timestamp()
        else least(clock_timestamp() + @again::interval, ended_at + @results_for::interval + @lag::interval) end
where id = @id and not archived and (counted_to is null or counted_to <= @to)`

// storeResults replaces the campaign's results, unless later results are stored, or the
// campaign's batches are being removed and may have been read in part.
func (s Campaigns) storeResults(ctx context.Context, n *counting, again time.Duration) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, countedSQL, pgx.StrictNamedArgs{"id": n.ID, "to": n.to, "off": n.off, "last": n.last,
			"again": again, "results_for": campaign.ResultsFor, "lag": 2 * countLag})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if err := n.storeSeries(ctx, tx); err != nil {
			return err
		}
		for _, variant := range n.Content.Groups() {
			t := n.tallies[variant-delivery.Remaining]
			if _, err := tx.Exec(ctx, storeResultSQL, pgx.StrictNamedArgs{"campaign": n.ID, "variant": variant, "assigned": t.Assigned,
				"sent": t.Sent, "opened": t.Opened, "reserved": t.Reserved, "claimed": t.Claimed, "used": t.Used,
				"orders": t.Spent.Orders, "ordered": int64(t.Spent.Ordered), "discount": int64(t.Spent.Discount), "currency": t.Spent.Currency,
				"order_squares": t.Spent.OrderPowers.Squares, "order_cubes": t.Spent.OrderPowers.Cubes,
				"revenue_squares": t.Spent.RevenuePowers.Squares, "revenue_cubes": t.Spent.RevenuePowers.Cubes}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Results returns the results of the last count; see [campaign.ResultStore].
func (s Campaigns) Results(ctx context.Context, ids []int64) (map[int64]campaign.Results, error) {
	rows := pg.Rows(ctx, s.Pool, `
		select c.id, c.counted_to, c.ended_at + $2::interval, c.count_due_at = 'infinity' or c.archived, c.compared, c.account_off,
			r.variant, r.assigned, r.sent, r.opened, r.reserved, r.claimed, r.used, r.orders, r.ordered, r.discount, r.currency,
			r.order_squares, r.order_cubes, r.revenue_squares, r.revenue_cubes, `+pg.SMSCosts("sms_campaign_costs s where s.campaign_id = c.id")+`
		from campaigns c left join campaign_results r on r.campaign_id = c.id
		-- Groups without a version of their own, whose numbers are below 0, come last.
		where c.id = any($1) order by c.id, r.variant < 0, r.variant`, ids, campaign.ResultsFor)
	all := map[int64]campaign.Results{}
	var id int64
	var head campaign.Results
	var variant *int
	var n [9]*int64
	var currency *string
	var powers [4]*float64
	var costs delivery.SMSCosts
	_, err := pgx.ForEachRow(rows, []any{&id, &head.CountedTo, &head.Until, &head.Final, &head.Compared, &head.AccountOff,
		&variant, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8], &currency, &powers[0], &powers[1], &powers[2], &powers[3], &costs}, func() error {
		r, known := all[id]
		if !known {
			r = head
			r.SMS = slices.Clone(costs)
		}
		if variant != nil {
			r.Groups = append(r.Groups, campaign.Tally{Variant: *variant, Assigned: *n[0], Sent: *n[1], Opened: *n[2], Reserved: *n[3], Claimed: *n[4], Used: *n[5],
				Spent: campaign.Spent{Currency: *currency, Orders: *n[6], Ordered: money.Amount(*n[7]), Discount: money.Amount(*n[8]),
					OrderPowers: increment.Powers{Squares: *powers[0], Cubes: *powers[1]}, RevenuePowers: increment.Powers{Squares: *powers[2], Cubes: *powers[3]}}})
		}
		all[id] = r
		return nil
	})
	if err != nil {
		return nil, pg.Translate(err)
	}
	sums, err := pg.Tallies(ctx, s.DB, delivery.KindCampaign, ids)
	for _, sum := range sums {
		if r, known := all[sum.OwnerID]; known {
			r.Reported = r.Reported.Plus(sum.Tally)
			all[sum.OwnerID] = r
		}
	}
	return all, err
}
