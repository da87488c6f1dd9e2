package campaigns

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
)

// namesSegment reports whether the audience is a segment or list.
func namesSegment(a campaign.Audience) bool {
	return a.Kind == campaign.Segment || a.Kind == campaign.List
}

// SegmentRule returns the current rule of the audience's segment; see [campaign.RuleStore].
func (s Campaigns) SegmentRule(ctx context.Context, a campaign.Audience) (*campaign.FrozenRule, error) {
	if !namesSegment(a) {
		return nil, nil
	}
	g, err := currentSegment(ctx, s.Pool, a.ID)
	if errors.Is(err, segment.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return frozen(g), nil
}

// currentSegment reads a segment or list as it is now.
func currentSegment(ctx context.Context, q pg.Querier, id int64) (segment.Segment, error) {
	return pg.OneSegment(ctx, q, `select `+pg.SegmentColumns+` from segments where id = $1`, id)
}

func frozen(g segment.Segment) *campaign.FrozenRule {
	f := &campaign.FrozenRule{SegmentID: g.ID, Version: g.Version, Name: g.Name, Kind: g.Kind}
	if g.Kind == segment.ByRules {
		f.Rule = g.Rule
	} else {
		f.Members = g.Members
	}
	return f
}

// heldRule returns the rule of the audience's segment and locks the segment against changes
// until the transaction ends. It returns a [fault.Fields] if the segment is gone.
func heldRule(ctx context.Context, tx pgx.Tx, a campaign.Audience) (*campaign.FrozenRule, error) {
	if !namesSegment(a) {
		return nil, nil
	}
	g, err := pg.OneSegment(ctx, tx, `select `+pg.SegmentColumns+` from segments where id = $1 for share`, a.ID)
	if errors.Is(err, segment.ErrNotFound) {
		e := &fault.Fields{}
		e.Add("audience."+string(a.Kind), "rule.unknown_audience", "does not exist")
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	return frozen(g), nil
}

// freeze stores the rule of the segment with the campaign that is being published. If about is
// not nil, the rule must be the rule that the publication names; otherwise freeze returns
// [fault.ErrStale].
func freeze(ctx context.Context, tx pgx.Tx, c campaign.Campaign, about *campaign.FrozenRule) error {
	rule, err := heldRule(ctx, tx, c.Audience)
	if err != nil || rule == nil {
		return err
	}
	if about != nil && !about.Holds(rule) {
		return fault.ErrStale
	}
	if err := wholeList(ctx, tx, rule); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update campaigns set segment_version = $2, segment_name = $3, segment_rule = $4 where id = $1`,
		c.ID, rule.Version, rule.Name, storedRule(rule))
	return err
}

// wholeList returns [segment.ErrFilling] while files of the list are being read: users who are
// not in the list yet would silently get no message.
func wholeList(ctx context.Context, tx pgx.Tx, rule *campaign.FrozenRule) error {
	if rule.Kind != segment.ByList {
		return nil
	}
	var filling bool
	err := tx.QueryRow(ctx, `select exists (select from jobs j where j.kind = 'segment.list' and j.params ->> 'segment_id' = $1
		and j.state in ('waiting', 'running'))`, pg.Itoa(rule.SegmentID)).Scan(&filling)
	if err == nil && filling {
		return segment.ErrFilling
	}
	return err
}

// storedRule is the value of the column: null for a list.
func storedRule(f *campaign.FrozenRule) any {
	if f == nil || f.Kind != segment.ByRules {
		return nil
	}
	raw, _ := json.Marshal(f.Rule) // strings and lists of them
	return raw
}

// ruleColumns are the columns of a frozen rule as they are read.
type ruleColumns struct {
	version *int64
	name    *string
	rule    []byte
}

func (r *ruleColumns) fields() []any { return []any{&r.version, &r.name, &r.rule} }

func (r *ruleColumns) frozen(a campaign.Audience) (*campaign.FrozenRule, error) {
	if r.version == nil || r.name == nil {
		return nil, nil
	}
	f := &campaign.FrozenRule{SegmentID: a.ID, Version: *r.version, Name: *r.name, Kind: segment.ByList}
	if r.rule == nil {
		return f, nil
	}
	f.Kind = segment.ByRules
	return f, json.Unmarshal(r.rule, &f.Rule)
}

// settleRequest ends the open request of a campaign as the change says, and stores the new
// request that the change makes.
func settleRequest(ctx context.Context, tx pgx.Tx, ch campaign.Change) error {
	c := ch.Campaign
	switch {
	case ch.Decision != nil:
		if err := pg.Change(ctx, tx, approval.ErrLapsed, `update campaign_requests set state = $3, decided_by = $4, decided_reason = $5, decided_at = clock_timestamp()
			where id = $1 and campaign_id = $2 and state = 'asked'`,
			ch.Decision.Request, c.ID, string(ch.Decision.State), pg.AuditActor(ch.Entry.Actor), ch.Decision.Reason); err != nil {
			return err
		}
	case c.ApprovalAskedAt == nil || ch.Ask != nil:
		if _, err := tx.Exec(ctx, `update campaign_requests set state = 'lapsed', decided_by = $2, decided_at = clock_timestamp()
			where campaign_id = $1 and state = 'asked'`, c.ID, pg.AuditActor(ch.Entry.Actor)); err != nil {
			return err
		}
	}
	if ch.Ask == nil {
		return nil
	}
	return insertRequest(ctx, tx, c, *ch.Ask)
}

// insertRequestSQL returns nothing.
const insertRequestSQL = `
insert into campaign_requests (shop_number, name, channel, content, audience, audience_users, grant_template_id, starts_at, ends_at,
    rate_per_second, campaign_id, reach, reach_exact, reach_at, asked_by, asked_name, reason, allowed,
    segment_version, segment_name, segment_rule)
values (@shop, @name, @channel, @content, @audience, @audience_users, @grant_template, @starts_at, @ends_at,
    @rate_per_second, @campaign, @reach, @reach_exact, @reach_at, @asked_by, @asked_name, @reason, @allowed,
    @segment_version, @segment_name, @segment_rule)`

func insertRequest(ctx context.Context, tx pgx.Tx, c campaign.Campaign, r campaign.Request) error {
	args, err := specArgs(c.Spec)
	if err != nil {
		return err
	}
	rule := c.Rule
	if c.PublishedAt == nil {
		rule, err = heldRule(ctx, tx, c.Audience)
	}
	if err == nil && rule != nil && c.PublishedAt == nil { // the approver sees how many it reaches
		err = wholeList(ctx, tx, rule)
	}
	if err != nil {
		return err
	}
	args["campaign"], args["reach"], args["reach_exact"], args["reach_at"] = c.ID, r.Reach.Users, r.Reach.Exact, r.Reach.At
	args["asked_by"], args["asked_name"], args["reason"], args["allowed"] = r.AskedBy, r.AskedName, r.Reason, r.Allowed
	args["segment_version"], args["segment_name"], args["segment_rule"] = nil, nil, nil
	if rule != nil {
		args["segment_version"], args["segment_name"], args["segment_rule"] = rule.Version, rule.Name, storedRule(rule)
	}
	_, err = tx.Exec(ctx, insertRequestSQL, args)
	return err
}

// requestColumns are the columns that [scanRequest] reads.
const requestColumns = `r.id, r.campaign_id, r.shop_number, r.name, r.channel, r.content, r.audience, r.audience_users, r.grant_template_id,
	r.starts_at, r.ends_at, r.rate_per_second, r.segment_version, r.segment_name, r.segment_rule, r.reach, r.reach_exact, r.reach_at, r.state,
	r.asked_by, r.asked_name, r.asked_at, r.reason, r.decided_by, r.decided_at, r.decided_reason, r.allowed`

// Requests returns the requests for approval, the latest first; see
// [approval.Store].
func (s Campaigns) Requests(ctx context.Context, id int64, limit int) ([]campaign.Request, error) {
	return s.requests(ctx, `from campaign_requests r where r.campaign_id = $1 order by r.id desc limit $2`, id, max(1, limit))
}

// Awaiting returns the open requests that the member may decide; see [approval.Store].
func (s Campaigns) Awaiting(ctx context.Context, shops []int64, label string, limit int) ([]campaign.Request, error) {
	return s.requests(ctx, `from campaign_requests r join campaigns c on c.id = r.campaign_id
		where r.state = 'asked' and r.ends_at > clock_timestamp() and r.asked_by <> $1 and c.creator <> $1
			and (cardinality($2::bigint[]) = 0 or r.shop_number = any($2)) order by r.id limit $3`, label, append([]int64{}, shops...), limit)
}

func (s Campaigns) requests(ctx context.Context, from string, args ...any) ([]campaign.Request, error) {
	return pg.Collect(ctx, s.Pool, scanRequest, `select `+requestColumns+` `+from, args...)
}

func scanRequest(row pgx.CollectableRow) (r campaign.Request, err error) {
	var audience storedAudience
	var named []byte
	var rule ruleColumns
	fields := append([]any{&r.ID, &r.CampaignID, &r.Shop, &r.Name, &r.Channel, &r.Content, &audience, &named, &r.GrantTemplate,
		&r.StartsAt, &r.EndsAt, &r.RatePerSecond}, rule.fields()...)
	if err := row.Scan(append(fields, &r.Reach.Users, &r.Reach.Exact, &r.Reach.At, &r.State, &r.AskedBy, &r.AskedName, &r.AskedAt, &r.Reason,
		&r.DecidedBy, &r.DecidedAt, &r.DecidedReason, &r.Allowed)...); err != nil {
		return r, err
	}
	if r.Audience, err = audience.with(named); err != nil {
		return r, err
	}
	r.Rule, err = rule.frozen(r.Audience)
	return r, err
}

// with returns the audience with the users it names.
func (a storedAudience) with(named []byte) (campaign.Audience, error) {
	out := campaign.Audience{Kind: a.Kind, ID: a.ID}
	if named == nil {
		return out, nil
	}
	set, err := pg.DecodeSet(named)
	if err == nil {
		out.Users = pg.SetIDs(set)
	}
	return out, err
}

// SaveLimits stores a shop's limits for its campaigns, with the audit entry; see
// [campaign.Store].
func (s Campaigns) SaveLimits(ctx context.Context, shop int64, was *campaign.Limits, l campaign.Limits, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := knownShop(ctx, tx, shop); err != nil {
			return err
		}
		// The row lock puts concurrent changes into an order.
		if _, err := tx.Exec(ctx, `insert into campaign_limits (shop_number) values ($1) on conflict do nothing`, shop); err != nil {
			return err
		}
		var before campaign.Limits
		if err := tx.QueryRow(ctx, `select per_day, per_week, approval_above from campaign_limits where shop_number = $1 for update`, shop).
			Scan(&before.PerDay, &before.PerWeek, &before.ApprovalAbove); err != nil {
			return err
		}
		if was != nil && *was != before {
			return fault.ErrStale
		}
		if before == l {
			return nil
		}
		if _, err := tx.Exec(ctx, `update campaign_limits set per_day = $2, per_week = $3, approval_above = $4, updated_at = now()
			where shop_number = $1`, shop, l.PerDay, l.PerWeek, l.ApprovalAbove); err != nil {
			return err
		}
		e.Before = before
		return pg.InsertAudit(ctx, tx, e)
	})
}

func knownShop(ctx context.Context, tx pgx.Tx, shop int64) error {
	var known bool
	if err := tx.QueryRow(ctx, `select $1::bigint = 0 or exists (select from shops where number = $1)`, shop).Scan(&known); err != nil || known {
		return err
	}
	f := &fault.Fields{}
	f.Add("shop_number", "rule.unknown_shop", "there is no such shop")
	return f
}
