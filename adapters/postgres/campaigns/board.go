package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/segment"
)

// progressFrom sums the batches of a running campaign c, a thousand users each. The sums of a
// settled campaign are stored.
const progressFrom = ` left join lateral (
	select sum(b.sent_count) as sent, sum(b.skipped_count) as skipped, sum(b.expired_count) as expired, sum(b.dead_count) as dead
	from batches b where c.started_at is not null and c.settled_at is null and b.kind = 'campaign' and b.owner_id = c.id
) n on true`

const progressColumns = `c.people, case when c.settled_at is null then coalesce(n.sent, 0) else c.sent end,
	case when c.settled_at is null then coalesce(n.skipped, 0) else c.skipped end,
	case when c.settled_at is null then coalesce(n.expired, 0) else c.expired end,
	case when c.settled_at is null then coalesce(n.dead, 0) else c.dead end,
	c.cut_at is not null or c.ended_at is not null, c.state = 'running',
	case when c.sample_before_at is null then 0 else c.sample_before end, coalesce(c.sample_before_at, c.started_at, '0001-01-01'), clock_timestamp()`

type progressRow struct {
	delivery.Counts
	cut, running bool
	before       int64
	since, now   time.Time
}

func (p *progressRow) fields() []any {
	return []any{&p.Reserved, &p.Sent, &p.Skipped, &p.Expired, &p.Dead, &p.cut, &p.running, &p.before, &p.since, &p.now}
}

func (p *progressRow) progress() campaign.Progress {
	p.InFlight = p.Reserved - p.Sent - p.Skipped - p.Expired - p.Dead
	if !p.running { // progress does not change
		p.since = time.Time{}
	}
	return campaign.ProgressOf(p.Counts, p.cut, p.before, p.since, p.now)
}

// Status returns a campaign and how far it has come; see [campaign.Store].
func (s Campaigns) Status(ctx context.Context, id int64) (campaign.Status, error) {
	st, err := scanStatus(s.Pool.QueryRow(ctx, `select `+campaignColumns+`, `+progressColumns+campaignFrom+progressFrom+` where c.id = $1`, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return st, campaign.ErrNotFound
	}
	return st, pg.Translate(err)
}

func scanStatus(row pgx.Row) (st campaign.Status, err error) {
	var p progressRow
	st.Campaign, err = scanCampaign(row, p.fields()...)
	st.Progress = p.progress()
	return st, err
}

// settledSQL is true of campaign c if each recipient has an outcome.
const settledSQL = ` and (c.cut_at is not null or c.ended_at is not null)
	and not exists (select from campaign_messages m where m.campaign_id = c.id and m.stored_at is null)
	and not exists (select from batches b where b.kind = 'campaign' and b.owner_id = c.id and b.state <> 'done')`

// openSQL selects campaigns c whose books are open.
const openSQL = ` from campaigns c where c.state in ('running', 'paused', 'cancelled', 'failed') and c.settled_at is null`

// sampleEvery is how far apart two looks at a campaign's progress are.
const sampleEvery = 3 * time.Second

// CampaignsWait asks for campaigns whose start has come, that are not settled, that have reached
// their end without an approval, or that have messages which are not stored.
const CampaignsWait pg.Question = `
(select 1 from campaigns where state = 'scheduled' and starts_at <= statement_timestamp() order by starts_at limit 1)
union all
(select 1` + openSQL + ` order by c.id limit 1)
union all
(select 1 from campaigns where held_at is not null and ends_at <= statement_timestamp() order by ends_at limit 1)
union all
(select 1 from campaign_messages where stored_at is null order by campaign_id, seq limit 1)`

// Settle closes the books of campaigns that are done; see [campaign.LaunchStore].
func (s Campaigns) Settle(ctx context.Context) (settled int, err error) {
	if err := s.giveUpHeld(ctx); err != nil {
		return 0, err
	}
	// A paused campaign also ends at its end; its remaining recipients expire.
	if _, err := s.Pool.Exec(ctx, `with mine as (select id from batches where kind = 'campaign' and held
			and owner_id in (select c.id`+openSQL+` and c.state = 'paused' and c.ends_at <= clock_timestamp())`+pg.BatchesInOrder+`)
		update batches set held = false where id in (select id from mine)`); err != nil {
		return 0, pg.Translate(err)
	}
	if _, err := s.Pool.Exec(ctx, `
		with open as (
			select c.id`+openSQL+` and c.state = 'running' and (c.sample_at is null or c.sample_at < clock_timestamp() - $1::interval)
			order by c.id limit 100 for update skip locked
		)
		update campaigns c set sample_before_at = c.sample_at, sample_before = c.sample_done, sample_at = clock_timestamp(), sample_done = coalesce(
			(select sum(sent_count + expired_count + dead_count) from batches b where b.kind = 'campaign' and b.owner_id = c.id), 0)
		from open where open.id = c.id`, sampleEvery); err != nil {
		return 0, pg.Translate(err)
	}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		ids, err := pg.LockIDs(ctx, tx, `select c.id`+openSQL+settledSQL+` order by c.id limit 100 for update skip locked`)
		if err != nil || len(ids) == 0 {
			return err
		}
		settled, err = s.settle(ctx, tx, ids)
		return err
	})
	return settled, err
}

// settle writes the results of locked campaigns. It checks the conditions again: a dead letter
// may have been revived, or a message stored, before the lock was granted.
func (s Campaigns) settle(ctx context.Context, tx pgx.Tx, ids []int64) (int, error) {
	rows := pg.Rows(ctx, tx, `
		update campaigns c set settled_at = clock_timestamp(), ended_at = coalesce(c.ended_at, clock_timestamp()),
			state = case when c.state in ('running', 'paused') then 'finished' else c.state end,
			version = case when c.state in ('running', 'paused') then c.version + 1 else c.version end,
			-- What was counted last may lack the last messages.
			count_due_at = case when c.count_due_at < 'infinity' then clock_timestamp() else c.count_due_at end,
			sent = n.sent, skipped = n.skipped, expired = n.expired, dead = n.dead
		from unnest($1::bigint[]) as i (id), lateral (
			select coalesce(sum(b.sent_count), 0) as sent, coalesce(sum(b.skipped_count), 0) as skipped,
				coalesce(sum(b.expired_count), 0) as expired, coalesce(sum(b.dead_count), 0) as dead
			from batches b where b.kind = 'campaign' and b.owner_id = i.id) n
		where c.id = i.id`+settledSQL+` returning c.id, c.state, c.starts_at`, ids)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c campaign.Campaign, err error) {
		return c, row.Scan(&c.ID, &c.State, &c.StartsAt)
	})
	if err != nil {
		return 0, err
	}
	for _, c := range list {
		if err := announceCampaign(ctx, tx, event.CampaignChanged, c); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// Balance recomputes the campaign's account from messages, bitmaps and exception rows, all from
// one snapshot.
func (s Campaigns) Balance(ctx context.Context, id int64) (b campaign.Balance, err error) {
	err = s.Instant(ctx, func(tx pgx.Tx) error {
		b, err = campaignBalance(ctx, tx, id)
		return err
	})
	return b, err
}

func campaignBalance(ctx context.Context, tx pgx.Tx, id int64) (b campaign.Balance, err error) {
	var p progressRow
	var archived bool
	err = tx.QueryRow(ctx, `select c.archived, c.settled_at is not null, `+progressColumns+campaignFrom+progressFrom+` where c.id = $1`, id).
		Scan(append([]any{&archived, &b.Final}, p.fields()...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, campaign.ErrNotFound
	}
	if err != nil {
		return b, err
	}
	b.Kept = p.progress().Counts
	if archived { // the rows it would be counted from are past their retention
		b.Counted = b.Kept
		return b, nil
	}
	if err := countCampaign(ctx, tx, id, &b); err != nil {
		return b, err
	}
	var waiting int64
	err = tx.QueryRow(ctx, `select coalesce(sum(users), 0), coalesce(sum(users) filter (where stored_at is null), 0)
		from campaign_messages where campaign_id = $1`, id).Scan(&b.Counted.Reserved, &waiting)
	b.Counted.InFlight += waiting
	return b, err
}

func countCampaign(ctx context.Context, tx pgx.Tx, id int64, b *campaign.Balance) error {
	rows, err := tx.Query(ctx, `
		select b.due, b.sent, coalesce(b.rest_outcome, ''), coalesce(e.outcomes, '{}'), coalesce(e.counts, '{}')
		from batches b left join lateral (
			select array_agg(outcome) as outcomes, array_agg(n) as counts
			from (select outcome, count(*) as n from exceptions x where x.batch_id = b.id group by 1) g
		) e on true
		where b.kind = 'campaign' and b.owner_id = $1 order by b.from_user`, id)
	if err != nil {
		return err
	}
	seen, _ := pg.DecodeSet(nil)
	var due, sent []byte
	var rest string
	var outcomes []string
	var counts []int64
	_, err = pgx.ForEachRow(rows, []any{&due, &sent, &rest, &outcomes, &counts}, func() error {
		dueSet, err := pg.DecodeSet(due)
		if err != nil {
			return err
		}
		sentSet, err := pg.DecodeSet(sent)
		if err != nil {
			return err
		}
		by := map[delivery.Outcome]int64{}
		for i, o := range outcomes {
			by[delivery.Outcome(o)] = counts[i]
		}
		b.Twice += int64(seen.AndCardinality(dueSet))
		seen.Or(dueSet)
		pg.CountBatch(&b.Counted, int64(dueSet.GetCardinality()), int64(sentSet.AndCardinality(dueSet)), rest, by)
		return nil
	})
	return err
}

// RecentDifferences recounts campaigns that are running or were settled within the window, at
// most limit campaigns. It returns the differences that are not 0, by campaign, and the number
// of campaigns.
func (s Campaigns) RecentDifferences(ctx context.Context, window time.Duration, limit int) (off map[int64]int64, looked int, err error) {
	rows := pg.Rows(ctx, s.Pool, `select id from campaigns where started_at is not null and not archived
		and (settled_at is null or settled_at > now() - $1::interval) order by id desc limit $2`, window, limit)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, 0, pg.Translate(err)
	}
	off = map[int64]int64{}
	for _, id := range ids {
		b, err := s.Balance(ctx, id)
		if err != nil {
			return nil, 0, err
		}
		if d := b.Difference(); d != 0 {
			off[id] = d
		}
	}
	return off, len(ids), nil
}

// countUpTo is how many users an estimate counts exactly. An exact count is tried only if the
// planner expects at most worthCounting users: the owners of many coupons have to be sorted
// before the first owner can be counted.
const (
	countUpTo     = 10_000
	worthCounting = 3 * countUpTo
)

// Estimate counts a small audience and takes the planner's estimate of a large audience; see
// [campaign.Store]. It takes a fraction of a second whatever the size.
func (s Campaigns) Estimate(ctx context.Context, a campaign.Audience) (n int64, exact bool, err error) {
	s.DB = s.Reports(ctx)
	if a.Kind == campaign.Named {
		return int64(len(a.Users)), true, nil
	}
	sql := audienceSQL[a.Kind]
	if sql == "" {
		return s.estimateMembers(ctx, a)
	}
	planned, err := s.planned(ctx, sql, 0, int64(1)<<50, time.Now(), a.ID)
	if err != nil || planned > worthCounting {
		return planned, false, err
	}
	err = s.Pool.QueryRow(ctx, `select count(*) from (`+sql+`) q`, 0, countUpTo+1, time.Now(), a.ID).Scan(&n)
	if err != nil || n <= countUpTo {
		return n, true, pg.Translate(err)
	}
	return max(n, planned), false, nil
}

// contactSQL has the conditions on user u for the kinds of contacts.
var contactSQL = map[string]string{"email": "u.email <> ''", "sms": "u.phone <> ''", "webpush": "(u.push <> '[]' or u.devices <> '[]')",
	segment.PhoneVerified: "u.phone_verified_at is not null"}

// EstimateContact counts the contacts of a small audience, and samples the contacts of a segment.
// For any other audience it returns the estimate for all users. See [campaign.Store].
func (s Campaigns) EstimateContact(ctx context.Context, a campaign.Audience, kind string) (n int64, err error) {
	s.DB = s.Reports(ctx)
	count := func(ids string, args ...any) (int64, error) {
		err := s.Pool.QueryRow(ctx, `select count(*) from `+ids+` as i (id) join users u on u.id = i.id where `+contactSQL[kind], args...).Scan(&n)
		return n, pg.Translate(err)
	}
	if a.Kind == campaign.Named {
		return count(`unnest($1::bigint[])`, a.Users)
	}
	rule := segment.Leaf(segment.Contact, "", segment.Has, kind)
	switch sql := audienceSQL[a.Kind]; {
	case sql == "":
		g, err := currentSegment(ctx, s.Pool, a.ID)
		if err != nil {
			return 0, err
		}
		if g.Kind == segment.ByRules {
			rule = segment.Rule{Match: segment.All, Rules: []segment.Rule{g.Rule, rule}}
		}
	case a.Kind != campaign.Everybody:
		all, exact, err := s.Estimate(ctx, a)
		if err != nil {
			return 0, err
		}
		if exact {
			return count(`(`+sql+`)`, 0, all, time.Now(), a.ID)
		}
	}
	e, err := s.segments.EstimateRule(ctx, rule)
	return e.Members, err
}

// planned returns how many rows the planner expects of a query.
func (s Campaigns) planned(ctx context.Context, sql string, args ...any) (int64, error) {
	var raw []byte
	if err := s.Pool.QueryRow(ctx, `explain (format json) `+sql, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&raw); err != nil {
		return 0, pg.Translate(err)
	}
	var plan []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}
	if err := json.Unmarshal(raw, &plan); err != nil || len(plan) == 0 {
		return 0, err
	}
	return int64(plan[0].Plan.Rows), nil
}

// estimateMembers returns the stored number of members of a segment or list without reading the
// members.
func (s Campaigns) estimateMembers(ctx context.Context, a campaign.Audience) (int64, bool, error) {
	g, err := currentSegment(ctx, s.Pool, a.ID)
	switch {
	case err != nil:
		return 0, false, err
	case g.Members != nil:
		return *g.Members, g.Kind == segment.ByList, nil
	case g.Kind == segment.ByList:
		return 0, true, nil
	}
	e, err := s.segments.EstimateRule(ctx, g.Rule)
	return e.Members, err == nil && e.Margin == 0, err
}
