package campaigns

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// testSQL inserts a batch of one recipient, or makes the existing batch ready again. A batch
// that is still being sent is not changed.
const testSQL = `
insert into batches as b (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at, worthless_after, priority, next_run_at, variant)
values ('test', $1, $2, $3, $4, $4, 1, $5, clock_timestamp(), clock_timestamp() + interval '10 minutes', 0, clock_timestamp(), $6)
on conflict (kind, owner_id, channel, from_user) do update set state = 'ready', variant = excluded.variant, template_id = excluded.template_id, due_at = excluded.due_at,
	worthless_after = excluded.worthless_after, messages_upto = excluded.messages_upto, next_run_at = excluded.next_run_at, runs = 0, sent = null, sent_count = 0, skipped_count = 0,
	expired_count = 0, dead_count = 0, failed_count = 0, rest_outcome = null, rest_reason = null, started_at = null, finished_at = null
where b.state = 'done'
returning b.id`

// SendTest stores a test message; see [campaign.Store].
func (s Campaigns) SendTest(ctx context.Context, c campaign.Campaign, to user.ID, variant *int, e staff.Entry) error {
	due, err := pg.EncodeSet([]user.ID{to})
	if err != nil {
		return err
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, testSQL, c.ID, c.TemplateID(), c.Channel, to, due, variant).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // on its way
		}
		if err != nil {
			return err
		}
		for _, table := range []string{"exceptions", "batch_providers"} {
			if _, err := tx.Exec(ctx, `delete from `+table+` where batch_id = $1`, id); err != nil {
				return err
			}
		}
		if err := pg.InsertAudit(ctx, tx, e); err != nil {
			return err
		}
		return announceCampaign(ctx, tx, event.CampaignChanged, c)
	})
}

// Outcome returns the outcome of the message to one recipient; see [campaign.Store].
func (s Campaigns) Outcome(ctx context.Context, kind delivery.Kind, c campaign.Campaign, id user.ID) (o campaign.Outcome, found bool, err error) {
	var due, sent []byte
	var known pg.Recorded
	var variant *int // of a test
	var at *time.Time
	var span pg.SendSpan
	o.UserID, o.Channel, o.Variant = id, c.Channel, c.Content.Pick(c.ID, id)
	err = s.Pool.QueryRow(ctx, `
		select b.id, b.due, b.sent, coalesce(b.rest_outcome, ''), coalesce(b.rest_reason, ''), coalesce(e.outcome, ''), coalesce(e.reason, ''),
			coalesce(e.detail, ''), coalesce(e.attempts, 0), e.last_at, e.next_retry_at,
			(select o.opened_at from campaign_openings o where $1 = 'campaign' and o.campaign_id = $2 and o.user_id = $4), b.variant, `+pg.SpanColumns+`
		from (select * from batches where kind = $1 and owner_id = $2 and channel = $3 and from_user <= $4 order by from_user desc limit 1) b
		left join exceptions e on e.batch_id = b.id and e.user_id = $4 where b.to_user >= $4`, kind, c.ID, c.Channel, id).
		Scan(&o.BatchID, &due, &sent, &known.Rest, &known.RestReason, &known.Exception, &known.Reason, &o.Detail, &o.Attempts, &at,
			&o.NextRetryAt, &o.OpenedAt, &variant, &span.Started, &span.Finished, &span.Planned, &span.Late, &span.Recovered)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, false, nil
	}
	if err != nil {
		return o, false, pg.Translate(err)
	}
	if variant != nil {
		o.Variant = *variant
	}
	if meant, err := pg.SetHolds(due, id); err != nil || !meant {
		return o, false, err
	}
	known.Reached, err = pg.SetHolds(sent, id)
	o.Outcome, o.Reason = known.Outcome()
	switch {
	case o.Outcome == delivery.InFlight:
	case at != nil:
		o.At = *at
	default:
		span.Tell(&o)
	}
	return o, true, err
}

// Subject returns the subject of the campaign's messages.
func (s Campaigns) Subject(ctx context.Context, c campaign.Campaign) (delivery.Subject, error) {
	sub := delivery.Subject{Kind: delivery.KindCampaign, OwnerID: c.ID, Copy: &c.Content, TemplateID: c.TemplateID(), ShopName: c.ShopName,
		EndsAt: c.EndsAt, DueAt: c.StartsAt}
	if c.Shop != 0 {
		sub.ShopNumber = pg.Itoa(c.Shop)
	}
	if sub.TemplateID == 0 {
		return sub, nil
	}
	err := s.Pool.QueryRow(ctx, `select t.name, `+pg.ClaimURL+`, t.opens_at, `+pg.SubjectColumns+` from templates t join shops h on h.number = t.shop_number where t.id = $1`, sub.TemplateID).
		Scan(append([]any{&sub.TemplateName, &sub.ClaimURL, &sub.OpensAt}, pg.SubjectFields(&sub)...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return sub, nil
	}
	return sub, pg.Translate(err)
}
