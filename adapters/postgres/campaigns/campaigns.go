// Package campaigns stores campaigns with their limits and requests for
// approval, cuts their audiences into ranges of users, and counts openings and
// results.
package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/user"
)

// A SegmentReader reads the audiences that are segments and lists.
type SegmentReader interface {
	// MembersBy returns at most limit ids above after, ascending: the ids of a list, or of the
	// users who match the rule, even if the segment has another rule now. Without a rule the
	// segment's current rule is used.
	MembersBy(ctx context.Context, id int64, rule *segment.Rule, after user.ID, limit int) ([]user.ID, error)
	// EstimateRule says about how many users the rule means.
	EstimateRule(ctx context.Context, r segment.Rule) (segment.Estimate, error)
	// Locales says about how many users whom the rule means have each locale.
	Locales(ctx context.Context, r segment.Rule) (map[string]int64, error)
}

// Campaigns stores campaigns, cuts their audiences and counts their results.
type Campaigns struct {
	*pg.DB
	segments SegmentReader
}

// NewCampaigns returns the campaigns of db, some of which are for segments.
func NewCampaigns(db *pg.DB, segments SegmentReader) Campaigns {
	return Campaigns{DB: db, segments: segments}
}

// Audiences returns the kinds of audiences that can be read.
func (s Campaigns) Audiences() []campaign.AudienceKind {
	return []campaign.AudienceKind{campaign.Everybody, campaign.Named, campaign.Reserved, campaign.Holds, campaign.Segment, campaign.List}
}

const campaignColumns = `c.id, coalesce(c.shop_number, 0), c.name, c.channel, c.content, c.audience, c.audience_users,
	coalesce(c.grant_template_id, 0), c.starts_at, c.ends_at, c.rate_per_second, c.state, c.reason, c.version, c.creator, c.created_by,
	coalesce(h.name, ''), coalesce(h.timezone, ''), c.created_at, c.updated_at, c.published_at, c.started_at, c.cut_at, c.ended_at, c.settled_at,
	c.approval_asked_at, c.approved_by, c.held_at, c.published_by, c.segment_version, c.segment_name, c.segment_rule`

const campaignFrom = ` from campaigns c left join shops h on h.number = c.shop_number `

// storedAudience is the stored form of an audience; named users are stored in a bitmap column.
type storedAudience struct {
	Kind campaign.AudienceKind `json:"kind"`
	ID   int64                 `json:"id,string,omitempty"`
}

// scanCampaign reads the columns above, and further columns into more.
func scanCampaign(row pgx.Row, more ...any) (c campaign.Campaign, err error) {
	var audience storedAudience
	var named []byte
	var rule ruleColumns
	fields := append([]any{&c.ID, &c.Shop, &c.Name, &c.Channel, &c.Content, &audience, &named, &c.GrantTemplate, &c.StartsAt, &c.EndsAt,
		&c.RatePerSecond, &c.State, &c.Reason, &c.Version, &c.Creator, &c.CreatedBy, &c.ShopName, &c.ShopTimezone, &c.CreatedAt, &c.UpdatedAt,
		&c.PublishedAt, &c.StartedAt, &c.CutAt, &c.EndedAt, &c.SettledAt, &c.ApprovalAskedAt, &c.ApprovedBy, &c.HeldAt, &c.PublishedBy}, rule.fields()...)
	if err := row.Scan(append(fields, more...)...); err != nil {
		return c, err
	}
	if c.Audience, err = audience.with(named); err != nil {
		return c, err
	}
	c.Rule, err = rule.frozen(c.Audience)
	return c, err
}

// Campaign returns [campaign.ErrNotFound] if there is none.
func (s Campaigns) Campaign(ctx context.Context, id int64) (campaign.Campaign, error) {
	c, err := scanCampaign(s.Pool.QueryRow(ctx, `select `+campaignColumns+campaignFrom+`where c.id = $1`, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return c, campaign.ErrNotFound
	}
	return c, pg.Translate(err)
}

// Campaigns lists campaigns with their progress, the newest first.
func (s Campaigns) Campaigns(ctx context.Context, q campaign.Query) ([]campaign.Status, error) {
	s.DB = s.Reports(ctx)
	if !pg.Findable(q.Search) {
		return nil, nil
	}
	c := campaignFilter(q)
	return pg.Collect(ctx, s.Pool, func(row pgx.CollectableRow) (campaign.Status, error) { return scanStatus(row) }, `select `+campaignColumns+`, `+progressColumns+campaignFrom+progressFrom+
		c.Where()+fmt.Sprintf(" order by c.id desc limit %d", max(1, q.Limit)), c.Params()...)
}

func campaignFilter(q campaign.Query) *pg.Conditions {
	c := &pg.Conditions{}
	if q.Search != "" {
		c.Holds("c.name", "c.id", q.Search)
	}
	if len(q.States) > 0 {
		c.Add("c.state = any(?)", q.States)
	}
	if q.Channel != nil {
		c.Add("c.channel = ?", *q.Channel)
	}
	switch {
	case slices.Contains(q.Shops, 0):
		c.Add("(c.shop_number = any(?) or c.shop_number is null)", q.Shops)
	case len(q.Shops) > 0:
		c.Add("c.shop_number = any(?)", q.Shops)
	}
	if q.Started {
		c.Add("c.started_at is not null")
	}
	if q.From != nil {
		c.Add("c.starts_at >= ?", *q.From)
	}
	if q.To != nil {
		c.Add("c.starts_at < ?", *q.To)
	}
	if n := len(q.Spans); n > 0 {
		zones, from, to := make([]string, n), make([]time.Time, n), make([]time.Time, n)
		for i, sp := range q.Spans {
			zones[i], from[i], to[i] = sp.Zone, sp.From, sp.To
		}
		c.Add(`exists (select from unnest(?::text[], ?::timestamptz[], ?::timestamptz[]) as s (zone, from_at, to_at)
			where s.zone = coalesce(h.timezone, '') and c.starts_at >= s.from_at and c.starts_at < s.to_at)`, zones, from, to)
	}
	if q.BeforeID != 0 {
		c.Add("c.id < ?", q.BeforeID)
	}
	return c
}

// Insert creates a draft, and its shop if the shop is new. A second call with the same request
// key returns the campaign of the first call.
func (s Campaigns) Insert(ctx context.Context, ch campaign.Change) (campaign.Campaign, error) {
	var id int64
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		created, err := insertCampaign(ctx, tx, ch, &id)
		if err != nil || !created {
			return err
		}
		ch.Entry.ObjectID = pg.Itoa(id)
		if err := pg.InsertAudit(ctx, tx, ch.Entry); err != nil {
			return err
		}
		ch.Campaign.ID = id
		return announceCampaign(ctx, tx, ch.Event, ch.Campaign)
	})
	if err != nil {
		return ch.Campaign, err
	}
	return s.Campaign(ctx, id)
}

// insertCampaignSQL returns the id of the new campaign, or nothing if the request was stored
// before.
const insertCampaignSQL = `
insert into campaigns (shop_number, name, channel, content, audience, audience_users, grant_template_id, starts_at, ends_at,
    rate_per_second, state, creator, created_by, request_key)
values (nullif(@shop::bigint, 0), @name, @channel, @content, @audience, @audience_users, nullif(@grant_template::bigint, 0),
    @starts_at, @ends_at, @rate_per_second, 'draft', @creator, @created_by, nullif(@request_key, ''))
on conflict (request_key) do nothing returning id`

func insertCampaign(ctx context.Context, tx pgx.Tx, ch campaign.Change, id *int64) (created bool, err error) {
	c := ch.Campaign
	if c.Shop != 0 {
		if _, err := tx.Exec(ctx, `insert into shops (number, name, timezone) values ($1, 'Shop ' || $1::bigint, 'UTC') on conflict do nothing`, c.Shop); err != nil {
			return false, err
		}
	}
	args, err := specArgs(c.Spec)
	if err != nil {
		return false, err
	}
	args["creator"], args["created_by"], args["request_key"] = c.Creator, c.CreatedBy, ch.RequestKey
	err = tx.QueryRow(ctx, insertCampaignSQL, args).Scan(id)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, tx.QueryRow(ctx, `select id from campaigns where request_key = $1`, ch.RequestKey).Scan(id)
	}
	return err == nil, err
}

// specArgs are the parameters for the columns of a spec.
func specArgs(s campaign.Spec) (pgx.StrictNamedArgs, error) {
	content, err := json.Marshal(s.Content)
	if err != nil {
		return nil, err
	}
	audience, err := json.Marshal(storedAudience{s.Audience.Kind, s.Audience.ID})
	if err != nil {
		return nil, err
	}
	var named []byte
	if s.Audience.Kind == campaign.Named {
		if named, err = pg.EncodeSet(s.Audience.Users); err != nil {
			return nil, err
		}
	}
	return pgx.StrictNamedArgs{"shop": s.Shop, "name": s.Name, "channel": s.Channel, "content": content, "audience": audience,
		"audience_users": named, "grant_template": s.GrantTemplate, "starts_at": s.StartsAt, "ends_at": s.EndsAt,
		"rate_per_second": s.RatePerSecond}, nil
}

// saveCampaignSQL returns nothing; no row changes if the version is no longer
// @version. The cut of a held campaign may continue once it is released.
const saveCampaignSQL = `
update campaigns set shop_number = nullif(@shop::bigint, 0), name = @name, channel = @channel, content = @content,
    audience = @audience, audience_users = @audience_users, grant_template_id = nullif(@grant_template::bigint, 0),
    starts_at = @starts_at, ends_at = @ends_at, rate_per_second = @rate_per_second,
    state = @state, reason = @reason, published_at = @published_at, ended_at = @ended_at,
    approval_asked_at = @approval_asked_at, approved_by = @approved_by, published_by = @published_by, held_at = @held_at,
    cut_token = case when held_at is null or @held_at::timestamptz is not null then cut_token end,
    cut_lease_until = case when held_at is null or @held_at::timestamptz is not null then cut_lease_until end,
    version = version + 1, updated_at = now()
where id = @id and version = @version`

// Save stores a change of an existing campaign, the resulting changes of its batches, its audit
// entry and its event, in one transaction.
func (s Campaigns) Save(ctx context.Context, ch campaign.Change) (campaign.Campaign, error) {
	c := ch.Campaign
	args, err := specArgs(c.Spec)
	if err != nil {
		return c, err
	}
	args["id"], args["version"], args["state"], args["reason"] = c.ID, c.Version, c.State, c.Reason
	args["published_at"], args["ended_at"], args["held_at"] = c.PublishedAt, c.EndedAt, c.HeldAt
	args["approval_asked_at"], args["approved_by"], args["published_by"] = c.ApprovalAskedAt, c.ApprovedBy, c.PublishedBy
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if ch.Step == campaign.Publishing {
			if err := claimPublication(ctx, tx, c); err != nil {
				return err
			}
		}
		if err := pg.Change(ctx, tx, fault.ErrStale, saveCampaignSQL, args); err != nil {
			return err
		}
		if ch.Step == campaign.Publishing {
			if err := freeze(ctx, tx, c, ch.Rule); err != nil {
				return err
			}
		}
		if err := settleRequest(ctx, tx, ch); err != nil {
			return err
		}
		if err := steer(ctx, tx, c, ch.Step); err != nil {
			return err
		}
		if err := pg.InsertAudit(ctx, tx, ch.Entry); err != nil {
			return err
		}
		return announceCampaign(ctx, tx, ch.Event, c)
	})
	if pg.Violates(err, "campaigns_shop_number_fkey") {
		e := &fault.Fields{}
		e.Add("shop_number", "rule.unknown_shop", "there is no such shop")
		return c, e
	}
	if err != nil {
		return c, err
	}
	return s.Campaign(ctx, c.ID)
}

// claimPublication refuses the second of two equal campaigns. The primary key makes two
// concurrent publications wait for each other, and the database's clock decides.
func claimPublication(ctx context.Context, tx pgx.Tx, c campaign.Campaign) error {
	key := c.Fingerprint()
	return pg.Change(ctx, tx, campaign.ErrPublished, `insert into campaign_publications as p (fingerprint, campaign_id, published_at) values ($1, $2, clock_timestamp())
		on conflict (fingerprint) do update set campaign_id = excluded.campaign_id, published_at = excluded.published_at
		where p.published_at <= clock_timestamp() - $3::interval`, key[:], c.ID, campaign.RepublishAfter)
}

// steer applies a transition to the campaign's batches. Transactions that are storing batches
// wait for steer, or steer waits for them.
func steer(ctx context.Context, tx pgx.Tx, c campaign.Campaign, step campaign.Transition) error {
	var err error
	switch step {
	case campaign.Pausing:
		_, err = tx.Exec(ctx, `with mine as (select id from batches where kind = 'campaign' and owner_id = $1 and state <> 'done'`+pg.BatchesInOrder+`)
			update batches set held = true where id in (select id from mine)`, c.ID)
	case campaign.Resuming:
		_, err = tx.Exec(ctx, resumeSQL, c.ID)
	case campaign.Cancelling:
		err = stopCampaign(ctx, tx, c.ID, c.Reason)
	}
	return err
}

// resumeSQL releases the held batches of campaign $1. While the campaign is paused, all batches
// that are not done are held. Batches that wait for a retry are leased early and then wait
// again.
const resumeSQL = `with mine as (select id from batches where kind = 'campaign' and owner_id = $1 and held` + pg.BatchesInOrder + `)
	update batches set held = false, next_run_at = least(next_run_at, clock_timestamp()) where id in (select id from mine)`

// stopCampaign makes workers skip the remaining recipients, including recipients of held
// batches. If there are none, it finishes the campaign at once.
func stopCampaign(ctx context.Context, tx pgx.Tx, id int64, reason string) error {
	if _, err := tx.Exec(ctx, resumeSQL, id); err != nil {
		return err
	}
	if err := pg.StopBatches(ctx, tx, []pg.BatchOwner{{Kind: delivery.KindCampaign, ID: id}}, reason); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update campaigns set settled_at = now() where id = $1 and started_at is null`, id)
	return err
}

func announceCampaign(ctx context.Context, tx pgx.Tx, topic string, c campaign.Campaign) error {
	return pg.Announce(ctx, tx, topic, event.Campaign{CampaignID: c.ID, State: string(c.State), StartsAt: c.StartsAt, At: time.Now().UTC()})
}
