package campaigns

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

// ApprovedReach returns the largest approved reach; see [campaign.SizeStore].
func (s Campaigns) ApprovedReach(ctx context.Context, id int64) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(reach), 0) from campaign_requests where campaign_id = $1 and state = 'approved'`, id).Scan(&n)
	return n, pg.Translate(err)
}

// Hold pauses a campaign that is being cut; see [campaign.LaunchStore]. The cut's lease is given
// to a token that no worker has, and never expires.
func (s Campaigns) Hold(ctx context.Context, c campaign.Cut, ch campaign.Change) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, delivery.ErrLeaseLost, `update campaigns set state = 'paused', held_at = clock_timestamp(), approval_asked_at = clock_timestamp(), approved_by = $3,
				cut_token = $4, cut_lease_until = 'infinity', version = version + 1, updated_at = now()
			where id = $1 and cut_token = $2 and cut_at is null and state in ('running', 'paused')`, c.ID, c.Token, ch.Ask.AskedBy, uuid.NewString()); err != nil {
			return err
		}
		if err := insertRequest(ctx, tx, ch.Campaign, *ch.Ask); err != nil {
			return err
		}
		if err := steer(ctx, tx, ch.Campaign, ch.Step); err != nil {
			return err
		}
		if err := pg.InsertAudit(ctx, tx, ch.Entry); err != nil {
			return err
		}
		return announceCampaign(ctx, tx, ch.Event, ch.Campaign)
	})
}

// giveUpHeld ends the cut of held campaigns that reached their end without an approval: their
// audience consists of the part that was cut.
func (s Campaigns) giveUpHeld(ctx context.Context) error {
	_, err := s.Pool.Exec(ctx, `
		with late as (
			select id from campaigns where held_at is not null and ends_at <= statement_timestamp() order by id limit 100 for update skip locked
		), lapsed as (
			update campaign_requests r set state = 'lapsed', decided_by = $1, decided_at = clock_timestamp()
			from late where r.campaign_id = late.id and r.state = 'asked'
		)
		update campaigns c set held_at = null, approval_asked_at = null, approved_by = '', reason = 'approval_missing',
			cut_at = clock_timestamp(), cut_token = null, cut_lease_until = null, version = version + 1, updated_at = now()
		from late where c.id = late.id`, pg.AuditActor(staff.System()))
	return pg.Translate(err)
}
