package campaigns

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// Start makes a due campaign running; see [campaign.LaunchStore].
func (s Campaigns) Start(ctx context.Context, id int64) (wait time.Duration, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		c, err := scanCampaign(tx.QueryRow(ctx, `select `+campaignColumns+`, greatest(c.starts_at - clock_timestamp(), interval '0')`+campaignFrom+
			`where c.id = $1 and c.state = 'scheduled' for update of c`, id), &wait)
		if errors.Is(err, pgx.ErrNoRows) {
			return campaign.ErrNotStartable
		}
		if err != nil || wait > 0 {
			return err
		}
		c.State = campaign.Running
		if _, err := tx.Exec(ctx, `update campaigns set state = 'running', started_at = clock_timestamp(), version = version + 1, updated_at = now()
			where id = $1`, id); err != nil {
			return err
		}
		return announceCampaign(ctx, tx, event.CampaignStarted, c)
	})
	return wait, err
}

// BeginCut takes the right to cut; see [campaign.LaunchStore].
func (s Campaigns) BeginCut(ctx context.Context, id int64, lasting time.Duration) (campaign.Cut, error) {
	cut := campaign.Cut{Token: uuid.NewString()}
	err := s.Tx(ctx, func(tx pgx.Tx) (err error) {
		if err := pg.Change(ctx, tx, campaign.ErrNotStartable, `update campaigns set cut_token = $2, cut_lease_until = clock_timestamp() + $3::interval
			where id = $1 and state in ('running', 'paused') and started_at is not null and cut_at is null
				and (cut_token is null or cut_lease_until < clock_timestamp())`, id, cut.Token, lasting); err != nil {
			return err
		}
		cut.Campaign, err = scanCampaign(tx.QueryRow(ctx, `select `+campaignColumns+`, c.cut_after,
			coalesce((select max(seq) + 1 from campaign_messages m where m.campaign_id = c.id), 0), c.people`+campaignFrom+`where c.id = $1`, id),
			&cut.After, &cut.Seq, &cut.People)
		return err
	})
	return cut, err
}

// KeepCut renews the right to cut; see [campaign.LaunchStore].
func (s Campaigns) KeepCut(ctx context.Context, c campaign.Cut, lasting time.Duration) error {
	return pg.KeepCut(ctx, s.DB, `update campaigns set cut_lease_until = clock_timestamp() + $3::interval
		where id = $1 and cut_token = $2 and cut_at is null and state in ('running', 'paused')`, c.ID, c.Token, lasting)
}

// Encode returns users as a roaring bitmap.
func (s Campaigns) Encode(users []user.ID) ([]byte, error) { return pg.EncodeSet(users) }

// storeBatchesSQL stores the batches of the campaign c, which is a row of campaigns. A batch that
// is stored again meets its own row.
const storeBatchesSQL = `
insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at,
	worthless_after, stop_reason, priority, held, next_run_at)
select 'campaign', c.id, coalesce(c.grant_template_id, case when c.audience->>'kind' in ('reserved_template_id', 'holds_template_id')
		then (c.audience->>'id')::bigint end, 0), c.channel, b.from_user, b.to_user, b.n, b.due, c.started_at, c.ends_at,
	case c.state when 'cancelled' then '` + delivery.ReasonCampaignCancel + `' when 'failed' then '` + delivery.ReasonCampaignEnded + `' end,
	@priority, c.state = 'paused' and c.ends_at > clock_timestamp(), clock_timestamp()
from c, unnest(@from_users::bigint[], @to_users::bigint[], @due_counts::int[], @dues::bytea[])
	with ordinality as b (from_user, to_user, n, due, i)
order by b.i
on conflict (kind, owner_id, channel, from_user) do nothing`

// appendSQL stores messages with their batches, if the campaign is still cut under the token. It
// locks the campaign's row, so that a concurrent pause or end either finds the batches or is seen
// here.
const appendSQL = `
with c as (
	update campaigns set cut_lease_until = clock_timestamp() + interval '10 seconds', cut_after = @after, people = people + @people
	where id = @campaign and cut_token = @token and cut_at is null and state in ('running', 'paused') returning *
), stored as (
	insert into campaign_messages (campaign_id, seq, from_user, to_user, users, strangers, published_at, stored_at)
	select c.id, m.*, clock_timestamp(), clock_timestamp()
	from c, unnest(@seqs::int[], @firsts::bigint[], @lasts::bigint[], @users::int[], @strangers::bytea[]) m
), batched as (` + storeBatchesSQL + `)
select 1 from c`

// Append stores messages and their batches; see [campaign.LaunchStore]. If the campaign was
// cancelled meanwhile, nothing further is cut.
func (s Campaigns) Append(ctx context.Context, c campaign.Cut, ms []campaign.Message) error {
	n, people := len(ms), 0
	seqs, first, last, users, strangers := make([]int32, n), make([]int64, n), make([]int64, n), make([]int32, n), make([][]byte, n)
	var ranges []campaign.Range
	for i, m := range ms {
		seqs[i], first[i], last[i], users[i] = int32(m.Seq), int64(m.From), int64(m.To), int32(m.Users)
		people, ranges = people+m.Users, append(ranges, m.Ranges...)
		if len(m.Strangers) > 0 {
			var err error
			if strangers[i], err = pg.EncodeSet(m.Strangers); err != nil {
				return err
			}
		}
	}
	args := batchArgs(c.ID, ranges)
	maps.Copy(args, pgx.StrictNamedArgs{"token": c.Token, "after": last[n-1], "people": people,
		"seqs": seqs, "firsts": first, "lasts": last, "users": users, "strangers": strangers})
	return s.Tx(ctx, func(tx pgx.Tx) error {
		return pg.Change(ctx, tx, delivery.ErrLeaseLost, appendSQL, args)
	})
}

// batchArgs returns the parameters of [storeBatchesSQL] with the campaign's id.
func batchArgs(id int64, ranges []campaign.Range) pgx.StrictNamedArgs {
	n := len(ranges)
	from, to, counts, due := make([]int64, n), make([]int64, n), make([]int32, n), make([][]byte, n)
	for i, r := range ranges {
		from[i], to[i], counts[i], due[i] = int64(r.From), int64(r.To), int32(r.Users), r.Set
	}
	return pgx.StrictNamedArgs{"campaign": id, "priority": campaignPriority, "from_users": from, "to_users": to, "due_counts": counts, "dues": due}
}

// EndCut records that the whole audience is stored.
func (s Campaigns) EndCut(ctx context.Context, c campaign.Cut) error {
	return pg.Translate(killpoint.Around("campaigns.cut", func() error {
		_, err := s.Pool.Exec(ctx, `update campaigns set cut_at = clock_timestamp(), cut_token = null, cut_lease_until = null
			where id = $1 and cut_token = $2 and cut_at is null`, c.ID, c.Token)
		return err
	}))
}

// Fail ends a campaign that cannot go on; its remaining recipients are skipped.
func (s Campaigns) Fail(ctx context.Context, id int64, reason string) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		c, err := scanCampaign(tx.QueryRow(ctx, `select `+campaignColumns+campaignFrom+`where c.id = $1 and c.state in ('running', 'paused') for update of c`, id))
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		c.State = campaign.Failed
		if _, err := tx.Exec(ctx, `update campaigns set state = 'failed', reason = $2, ended_at = clock_timestamp(), version = version + 1, updated_at = now(),
			cut_token = null, cut_lease_until = null where id = $1`, id, reason); err != nil {
			return err
		}
		if err := stopCampaign(ctx, tx, id, delivery.ReasonCampaignEnded); err != nil {
			return err
		}
		return announceCampaign(ctx, tx, event.CampaignChanged, c)
	})
}

// campaignPriority puts campaigns behind reminders and announcements.
const campaignPriority = 10

// Due returns campaigns that should have started, and abandoned cuts.
func (s Campaigns) Due(ctx context.Context, grace time.Duration, limit int) (start, cut []int64, err error) {
	for _, q := range []struct {
		into *[]int64
		sql  string
	}{
		{&start, `select id from campaigns where state = 'scheduled' and starts_at < statement_timestamp() - $1::interval order by starts_at limit $2`},
		{&cut, `select id from campaigns where state in ('running', 'paused') and settled_at is null and cut_at is null
			and started_at < clock_timestamp() - $1::interval
			and (cut_token is null or cut_lease_until < clock_timestamp()) order by id limit $2`},
	} {
		rows, err := s.Pool.Query(ctx, q.sql, grace, limit)
		if err != nil {
			return nil, nil, pg.Translate(err)
		}
		if *q.into, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return nil, nil, pg.Translate(err)
		}
	}
	return start, cut, nil
}
