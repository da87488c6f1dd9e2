package past

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// madeCampaign is a campaign that is being stored.
type madeCampaign struct {
	campaignPlan
	ID       int64
	StartsAt time.Time
}

// uses reports whether the campaign asks owners to use their coupon.
func (c *madeCampaign) uses() bool { return c.Kind == campaign.Holds }

// variant is the content that the user gets, or [delivery.HeldOut].
func (c *madeCampaign) variant(id int64) int { return c.Content.Pick(c.ID, user.ID(id)) }

// asks reports whether the campaign moves the user to claim ([coupon.StepLock]) or to use a
// coupon ([coupon.StepConfirm]); chance is between 0 and 1.
func (c *madeCampaign) asks(step coupon.Step, id int64, chance float64) bool {
	return c != nil && c.uses() == (step == coupon.StepConfirm) && chance < c.Effect[c.variant(id)-delivery.HeldOut]
}

// beginCampaign stores the campaign without its recipients: its id decides who gets which version.
func (d *made) beginCampaign(ctx context.Context) error {
	if d.Campaign == nil {
		return nil
	}
	c := &madeCampaign{campaignPlan: *d.Campaign, StartsAt: d.OpensAt.Add(d.Campaign.After)}
	content, err := json.Marshal(c.Content)
	if err != nil {
		return err
	}
	audience, err := json.Marshal(map[string]string{"kind": string(c.Kind), "id": idText(d.id)})
	if err != nil {
		return err
	}
	d.campaign = c
	return d.tx.QueryRow(ctx, `
		insert into campaigns (shop_number, name, channel, content, audience, starts_at, ends_at, state, version, request_key, creator, created_by, created_at, updated_at,
			published_at, published_by, started_at, cut_at)
		values (@shop, @name, @channel, @content, @audience, @starts::timestamptz, @starts + interval '6 hours', 'running', 3, 'demo: ' || @key::text, split_part(@by::text, ' ', 1), @by::text,
			@starts - interval '3 hours', @starts, @starts - interval '2 hours', @by::text, @starts + interval '30 milliseconds', @starts + interval '400 milliseconds')
		returning id`, pgx.StrictNamedArgs{"shop": d.ShopNumber, "name": c.Name, "channel": int16(c.Channel), "content": content,
		"audience": audience, "starts": c.StartsAt, "key": d.Key, "by": d.member()}).Scan(&c.ID)
}

// endCampaign sends the campaign and closes its account.
func (d *made) endCampaign(ctx context.Context) error {
	c := d.campaign
	if c == nil {
		return nil
	}
	known := map[int64]person{}
	for _, p := range d.people {
		known[p.id] = p
	}
	o := d.outbound()
	list := o.send(sending{kind: delivery.KindCampaign, owner: c.ID, channel: c.Channel, due: c.StartsAt, deadline: c.StartsAt.Add(6 * time.Hour), users: d.audience(),
		outcome: func(u int64) outcome {
			if c.variant(u) == delivery.HeldOut {
				return outcome{kind: delivery.Skipped, reason: delivery.ReasonHoldOut}
			}
			return d.outcomeOf(c.Channel, 0, known[u])
		}})
	messages := &table{name: "campaign_messages", columns: []string{"campaign_id", "seq", "from_user", "to_user", "users", "published_at", "stored_at"}}
	openings := &table{name: "campaign_openings", columns: []string{"campaign_id", "user_id", "variant", "opened_at"}}
	var sum delivery.Counts
	end := c.StartsAt
	for i, b := range list {
		sum, end = sum.Plus(b.counts), later(end, b.finished)
		messages.add(c.ID, int32(i), b.users[0], b.users[len(b.users)-1], int32(len(b.users)), c.StartsAt, c.StartsAt.Add(300*time.Millisecond))
		for it := b.sent.Iterator(); it.HasNext(); {
			id := int64(it.Next())
			at := b.finished.Add(time.Duration(30+math.Abs(d.r.ExpFloat64())*7200) * time.Second)
			if v := c.variant(id); d.r.Float64() < c.Opened[v] && at.Before(d.now) {
				openings.add(c.ID, id, int16(v), at)
			}
		}
	}
	if err := o.store(ctx); err != nil {
		return err
	}
	if err := store(ctx, d.tx, messages, openings); err != nil {
		return err
	}
	if c.Channel == delivery.SMS {
		if err := d.storeParts(ctx, "sms_campaign_costs (campaign_id,", c.ID, sum.Sent, c.StartsAt); err != nil {
			return err
		}
	}
	_, err := d.tx.Exec(ctx, `update campaigns set state = 'finished', ended_at = $2, settled_at = $2, people = $3, sent = $4, skipped = $5, expired = $6, dead = $7 where id = $1`,
		c.ID, end.Add(time.Second), sum.Reserved, sum.Sent, sum.Skipped, sum.Expired, sum.Dead)
	return err
}

// audience returns the campaign's recipients: users with a reservation, or with a coupon that
// was unused when the campaign started.
func (d *made) audience() (users []int64) {
	if !d.campaign.uses() {
		for _, b := range d.bookers {
			users = append(users, b.id)
		}
		return users
	}
	for _, c := range d.coupons {
		state := coupon.Unused
		if i := slices.IndexFunc(c.log, func(op coupon.Operation) bool { return op.At.After(d.campaign.StartsAt) }); i > 0 {
			state = c.log[i-1].To
		} else if i < 0 && len(c.log) > 0 {
			state = c.log[len(c.log)-1].To
		}
		if !c.issued.After(d.campaign.StartsAt) && (state == coupon.Unused || state == coupon.Locked) {
			users = append(users, c.user)
		}
	}
	return users
}
